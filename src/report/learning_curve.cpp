// SPDX-License-Identifier: Apache-2.0
#include "report/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/html.h"

namespace reef::report {
namespace {

constexpr double kWidth = 720, kHeight = 400, kLeft = 64, kRight = 24, kTop = 20, kBottom = 56;
constexpr const char* kColours[] = {"#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e"};
constexpr double kTicks[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};

// Pictures on a logarithmic axis, accuracy from `lowest` to 1.
struct Axes {
  double most = 1, lowest = 0;
  double x(double images) const {
    const double share = most > 1 ? std::log(images) / std::log(most) : 0.5;
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double y(double accuracy) const {
    const double share = (std::clamp(accuracy, lowest, 1.0) - lowest) / (1 - lowest);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }
};

Axes axes_of(const std::vector<CurveSeries>& series, double chance) {
  Axes axes;
  double least = chance;
  for (const CurveSeries& each : series) {
    for (const learn::CurvePoint& point : each.points) {
      axes.most = std::max(axes.most, static_cast<double>(point.images));
      least = std::min(least, point.accuracy - point.spread);
    }
  }
  axes.lowest = std::clamp(std::floor(least * 10) / 10, 0.0, 0.9);
  return axes;
}

std::string grid(const Axes& axes, double chance) {
  std::string svg;
  for (int tenth = static_cast<int>(std::lround(axes.lowest * 10)); tenth <= 10; ++tenth) {
    const double y = axes.y(tenth / 10.0);
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>", kLeft, y,
                       kWidth - kRight, y);
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{} %</text>\n", kLeft - 8, y + 4, 10 * tenth);
  }
  for (const double tick : kTicks) {
    if (tick > axes.most) break;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", axes.x(tick),
                       kHeight - kBottom + 20, tick);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">pictures of each class</text>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 12);
  svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">guessing</text>\n", kWidth - kRight,
                     axes.y(chance) - 6);
  svg += fmt::format(
      "<line class=\"chance\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"><title>guessing: {:.1f} "
      "%</title></line>\n",
      kLeft, axes.y(chance), kWidth - kRight, axes.y(chance), 100 * chance);
  return svg;
}

// Names stand at the ends of their curves, above them; of two that end close together the lower one's below.
std::vector<double> name_heights(const std::vector<CurveSeries>& series, const Axes& axes) {
  constexpr double kAbove = 12, kBelow = 22, kClose = 30;
  std::vector<double> ends, heights;
  for (const CurveSeries& each : series) {
    ends.push_back(each.points.empty() ? kTop : axes.y(each.points.back().accuracy));
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    bool is_lower = false;
    for (std::size_t k = 0; k < ends.size(); ++k) {
      const double lower_by = ends[i] - ends[k];
      is_lower = is_lower || (k != i && lower_by < kClose && (lower_by > 0 || (lower_by == 0 && i > k)));
    }
    heights.push_back(is_lower ? ends[i] + kBelow : std::max(ends[i] - kAbove, kTop - 6));
  }
  return heights;
}

std::string drawn(const CurveSeries& series, const Axes& axes, const char* colour, double name_height) {
  std::string path, marks;
  for (const learn::CurvePoint& point : series.points) {
    const double x = axes.x(point.images), y = axes.y(point.accuracy);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", x, y);
    if (point.spread > 0) {
      marks += fmt::format("<line stroke=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", colour, x,
                           axes.y(point.accuracy - point.spread), x, axes.y(point.accuracy + point.spread));
    }
    marks += fmt::format(
        "<circle fill=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}: {} pictures, {:.1f} %</title></circle>\n",
        colour, x, y, html_escaped(series.name), point.images, 100 * point.accuracy);
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n{}", path, colour, marks) +
         fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\" style=\"fill:{};font-weight:600\">{}</text>\n",
                     kWidth - kRight, name_height, colour, html_escaped(series.name));
}

std::string table(const std::vector<CurveSeries>& series) {
  std::set<int> steps;
  for (const CurveSeries& each : series) {
    for (const learn::CurvePoint& point : each.points) steps.insert(point.images);
  }
  std::string html = "<table><tr><th>pictures of each class</th>";
  for (const CurveSeries& each : series) html += fmt::format("<th>{}</th>", html_escaped(each.name));
  html += "</tr>\n";
  for (const int step : steps) {
    html += fmt::format("<tr><td>{}</td>", step);
    for (const CurveSeries& each : series) {
      const auto found = std::find_if(each.points.begin(), each.points.end(),
                                      [&](const learn::CurvePoint& point) { return point.images == step; });
      if (found == each.points.end()) {
        html += "<td></td>";
      } else {
        html +=
            fmt::format("<td>{:.1f} %{}</td>", 100 * found->accuracy,
                        found->draws > 1 ? fmt::format(" <small>&plusmn; {:.1f}</small>", 100 * found->spread) : "");
      }
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace

std::string learning_curve_page(const std::string& title, const std::string& subtitle,
                                const std::vector<CurveSeries>& series, double chance) {
  const Axes axes = axes_of(series, chance);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n<style>\n"
      "body{{font:15px/1.5 system-ui,sans-serif;max-width:760px;margin:2rem auto;padding:0 1rem;color:#212529;"
      "background:#fff}}\n"
      "svg{{width:100%;height:auto}} svg text{{font-size:13px;fill:#495057}} .grid{{stroke:#e9ecef}}\n"
      ".chance{{stroke:#adb5bd;stroke-dasharray:5 4}} table{{border-collapse:collapse}}\n"
      "td,th{{padding:.25rem .8rem;border-bottom:1px solid #e9ecef;text-align:right}} small{{color:#868e96}}\n"
      "</style></head><body>\n<h1>{}</h1>\n<p>{}</p>\n<svg viewBox=\"0 0 {} {}\" role=\"img\">\n",
      html_escaped(title), html_escaped(title), html_escaped(subtitle), kWidth, kHeight);
  page += grid(axes, chance);
  const std::vector<double> heights = name_heights(series, axes);
  for (std::size_t i = 0; i < series.size(); ++i) {
    page += drawn(series[i], axes, kColours[i % std::size(kColours)], heights[i]);
  }
  page += "</svg>\n" + table(series);
  page +=
      "<p><small>Right answers on pictures that were not learned from (measured). Bars and &plusmn;: standard "
      "deviation over draws of the pictures; one draw where all are taken. Dashed: "
      "guessing.</small></p>\n</body></html>\n";
  return page;
}

}  // namespace reef::report
