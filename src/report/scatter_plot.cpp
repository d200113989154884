// SPDX-License-Identifier: Apache-2.0
#include "report/scatter_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/html.h"

namespace reef::report {
namespace {

constexpr double kScatterPlotWidth = 720, kScatterPlotHeight = 360, kScatterPlotLeft = 72, kScatterPlotRight = 24,
                 kScatterPlotTop = 24, kScatterPlotBottom = 56;
constexpr int kScatterPlotTicks = 5;

// An axis from `low` to `high`, in steps that people count in.
struct Scale {
  double low = 0, high = 1, step = 0.2;
};

Scale scale_of(double least, double most) {
  const double spread = most > least ? most - least : std::max(std::abs(most), 1.0);
  const double raw = spread / kScatterPlotTicks, scatter_plot_power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * scatter_plot_power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * scatter_plot_power >= raw) {
      step = factor * scatter_plot_power;
      break;
    }
  }
  return {std::floor(least / step) * step, std::ceil(most / step) * step + (most == least ? step : 0), step};
}

struct Frame {
  Scale x, y;
  double at_x(double value) const {
    return kScatterPlotLeft +
           (value - x.low) / (x.high - x.low) * (kScatterPlotWidth - kScatterPlotLeft - kScatterPlotRight);
  }
  double at_y(double value) const {
    return kScatterPlotHeight - kScatterPlotBottom -
           (value - y.low) / (y.high - y.low) * (kScatterPlotHeight - kScatterPlotTop - kScatterPlotBottom);
  }
};

std::string grid(const ScatterPlot& plot, const Frame& frame) {
  std::string svg;
  for (double v = frame.y.low; v <= frame.y.high + frame.y.step / 2; v += frame.y.step) {
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>", kScatterPlotLeft,
                       frame.at_y(v), kScatterPlotWidth - kScatterPlotRight, frame.at_y(v));
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n", kScatterPlotLeft - 8,
                       frame.at_y(v) + 4, v);
  }
  for (double v = frame.x.low; v <= frame.x.high + frame.x.step / 2; v += frame.x.step) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g}</text>\n", frame.at_x(v),
                       kScatterPlotHeight - kScatterPlotBottom + 20, v);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (kScatterPlotLeft + kScatterPlotWidth - kScatterPlotRight) / 2, kScatterPlotHeight - 12,
                     html_escaped(plot.x_title));
  return svg + fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kScatterPlotLeft, kScatterPlotTop - 8,
                           html_escaped(plot.y_title));
}

constexpr std::string_view kStyle = "svg text{font-size:13px;fill:#495057} .grid{stroke:#e9ecef}";

// `attributes`: of the svg element, beside its size.
std::string drawn(const ScatterPlot& plot, std::string_view attributes = "", std::string_view before = "") {
  if (plot.points.empty()) return "";
  const auto [left, right] = std::minmax_element(plot.points.begin(), plot.points.end(),
                                                 [](const auto& a, const auto& b) { return a.x < b.x; });
  const auto [low, high] = std::minmax_element(plot.points.begin(), plot.points.end(),
                                               [](const auto& a, const auto& b) { return a.y < b.y; });
  const Frame frame{scale_of(left->x, right->x), scale_of(low->y, high->y)};
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\"{}>\n{}", kScatterPlotWidth, kScatterPlotHeight,
                                attributes, before) +
                    grid(plot, frame);
  std::string path, marks;
  for (const ScatterPlot::Point& point : plot.points) {
    const double x = frame.at_x(point.x), y = frame.at_y(point.y);
    if (!point.is_apart) path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", x, y);
    const bool is_right = x > (kScatterPlotLeft + kScatterPlotWidth - kScatterPlotRight) / 2;
    marks += fmt::format("<circle fill=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title></circle>",
                         point.is_apart ? "#adb5bd" : "#0b7285", x, y, html_escaped(point.name));
    marks += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x + (is_right ? -8 : 8),
                         y - 8, is_right ? "end" : "start", html_escaped(point.name));
  }
  return svg + fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#0b7285\" stroke-opacity=\"0.4\"/>\n{}</svg>\n", path,
                           marks);
}

}  // namespace

std::string scatter_page(const std::string& title, const std::string& subtitle, const std::vector<ScatterPlot>& plots) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n<style>\n"
      "body{{font:15px/1.5 system-ui,sans-serif;max-width:760px;margin:2rem auto;padding:0 1rem;color:#212529;"
      "background:#fff}}\nsvg{{width:100%;height:auto}} {}\n</style></head><body>\n<h1>{}</h1>\n<p>{}</p>\n",
      html_escaped(title), kStyle, html_escaped(title), html_escaped(subtitle));
  for (const ScatterPlot& plot : plots) page += drawn(plot);
  return page + "</body></html>\n";
}

std::string scatter_svg(const std::string& title, const ScatterPlot& plot) {
  const std::string before = fmt::format(
      "<title>{}</title>\n<style>svg{{font-family:system-ui,sans-serif}} {}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      html_escaped(title), kStyle);
  return drawn(plot, " xmlns=\"http://www.w3.org/2000/svg\"", before);
}

}  // namespace reef::report
