// SPDX-License-Identifier: Apache-2.0
// A comparison as one HTML page: a table with bars, then a picture for each layer. Pictures are SVG in the page; no
// scripts, nothing is loaded from elsewhere. Names come from foreign files and are escaped.
#include <algorithm>
#include <cmath>

#include "base/html.h"
#include "base/version.h"
#include "evaluate/compare.h"

namespace reef::evaluate {
namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 "
    "1rem;color:#1c2733;background:#fff}"
    "table{border-collapse:collapse;width:100%}td,th{padding:.25rem .6rem;text-align:right;border-bottom:1px solid "
    "#dde3e8;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}th{font-weight:600}td "
    "svg{min-width:5rem}td:nth-child(2),th:nth-child(2){text-align:left;"
    "white-space:normal;overflow-wrap:anywhere}"
    "h2{margin-top:2.5rem}section{border-top:1px solid #dde3e8;padding:1rem 0}h3{margin:.2rem 0;overflow-wrap:anywhere}"
    "ul{margin:.4rem 0}small,.q{color:#5a6b7b}a{color:#0b6e7f}.num{display:flex;flex-wrap:wrap;gap:.2rem 1.6rem}"
    "svg{display:block;margin:.5rem 0;max-width:100%}";

std::string html_decibels(double value) {
  return std::isnan(value) ? "&ndash;" : std::isinf(value) ? "exact" : fmt::format("{:.1f} dB", value);
}

std::string share_bar(double share) {
  return fmt::format(
      "<svg width=\"90\" height=\"12\" role=\"img\" aria-label=\"{:.1f} %\"><rect width=\"90\" height=\"12\" "
      "fill=\"#e8edf1\"/><rect width=\"{:.1f}\" height=\"12\" fill=\"#c2410c\"/></svg>",
      100 * share, 90 * std::clamp(share, 0.0, 1.0));
}

// Counts on a logarithmic scale, so that outliers show; what the integers can represent is shaded.
std::string histogram(const LayerReport& layer) {
  constexpr int kBars = 128;
  constexpr double kWidth = 640, kHeight = 130, kAxis = 18;
  const std::vector<std::int64_t> bars = layer.values.bars(kBars);
  const auto most = static_cast<double>(std::max<std::int64_t>(1, *std::max_element(bars.begin(), bars.end())));
  const double low = layer.values.low(), high = layer.values.high();
  const auto at = [&](double value) { return std::clamp((value - low) / (high - low), 0.0, 1.0) * kWidth; };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" role=\"img\" aria-label=\"histogram of "
      "the float model's values\">",
      kWidth, kHeight + kAxis, kWidth);
  if (layer.range.is_quantized) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"#dff1ee\"/>",
                       at(layer.range.low), at(layer.range.high) - at(layer.range.low), kHeight);
  }
  for (std::size_t i = 0; i < bars.size(); ++i) {
    if (bars[i] == 0) continue;
    const double size = kHeight * (0.06 + 0.94 * std::log1p(static_cast<double>(bars[i])) / std::log1p(most));
    const double centre = low + (static_cast<double>(i) + 0.5) * (high - low) / kBars;
    const bool is_outside = layer.range.is_quantized && (centre < layer.range.low || centre > layer.range.high);
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>",
                       static_cast<double>(i) * kWidth / kBars, kHeight - size, kWidth / kBars - 0.6, size,
                       is_outside ? "#c2410c" : "#0b6e7f");
  }
  const auto mark = [&](double value, std::string_view anchor) {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.0f}\" font-size=\"11\" text-anchor=\"{}\" fill=\"#5a6b7b\">{:.4g}</text>", at(value),
        kHeight + kAxis - 4, anchor, value);
  };
  svg += mark(low, "start") + mark(high, "end");
  if (layer.range.is_quantized) svg += mark(layer.range.low, "middle") + mark(layer.range.high, "middle");
  return svg + "</svg>";
}

std::string layer_section(const LayerReport& layer, std::size_t place, bool has_effects) {
  std::string html = fmt::format("<section id=\"l{}\"><h3>{}. {} <small>{}</small></h3>", place, place,
                                 html_escaped(layer.type), html_escaped(layer.name));
  html += "<div class=\"num\">";
  const auto add = [&](std::string_view what, const std::string& value) {
    html += fmt::format("<span><span class=\"q\">{}</span> {}</span>", what, value);
  };
  if (layer.op >= 0) add("operator", std::to_string(layer.op));
  if (has_effects) add("share of the effect on outputs", fmt::format("{:.2f} %", 100 * layer.share));
  add("own error", html_decibels(layer.own.sqnr_db()));
  add("with everything before it", html_decibels(layer.cumulative.sqnr_db()));
  add("largest own error", fmt::format("{:.4g}", layer.own.largest));
  add("mean own error", fmt::format("{:.3g}", layer.own.mean()));
  add("type", ir::type_name(layer.data_type));
  if (layer.range.is_quantized) {
    add("scale", fmt::format("{:.6g}, zero point {}", layer.range.scale, layer.range.zero_point));
    add("saturated", fmt::format("{:.3f} %", 100 * layer.values.clipped()));
    add("at the ends", fmt::format("{:.3f} %", 100 * layer.at_ends));
  }
  if (layer.weights) add("weights", html_decibels(layer.weights->sqnr_db));
  html += "</div>";
  if (layer.values.count() > 0) html += histogram(layer);
  if (!layer.advice.empty()) {
    html += "<ul>";
    for (const std::string& advice : layer.advice) html += "<li>" + html_escaped(advice) + "</li>";
    html += "</ul>";
  }
  return html + "</section>\n";
}

std::string table(const Comparison& comparison, bool has_effects) {
  std::string html = "<table><tr><th>#</th><th>layer</th>";
  if (has_effects) html += "<th colspan=\"2\">effect on outputs</th>";
  html += "<th>own error</th><th>cumulative</th><th>saturated</th></tr>\n";
  for (std::size_t i = 0; i < comparison.ranking.size(); ++i) {
    const LayerReport& layer = comparison.layers[comparison.ranking[i]];
    html += fmt::format("<tr><td>{}</td><td><a href=\"#l{}\">{}</a> <small>{}</small></td>", i + 1, i + 1,
                        html_escaped(layer.type), html_escaped(layer.name));
    if (has_effects) html += fmt::format("<td>{}</td><td>{:.1f} %</td>", share_bar(layer.share), 100 * layer.share);
    html += fmt::format("<td>{}</td><td>{}</td><td>{}</td></tr>\n", html_decibels(layer.own.sqnr_db()),
                        html_decibels(layer.cumulative.sqnr_db()),
                        layer.range.is_quantized ? fmt::format("{:.2f} %", 100 * layer.values.clipped()) : "&ndash;");
  }
  return html + "</table>\n";
}

}  // namespace

std::string comparison_html(const Comparison& comparison, const std::string& float_path, const std::string& path) {
  const bool has_effects = comparison.effect_samples > 0;
  std::string html = fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0} against {1}</title><style>{2}</style></head><body>\n"
      "<h1>What quantization did</h1><p>{0} against {1}, {3} samples, all on the CPU (measured).</p>\n",
      html_escaped(path), html_escaped(float_path), kStyle, comparison.samples);
  html += "<ul>";
  for (const OutputReport& output : comparison.outputs) {
    html += fmt::format("<li>output {}: SQNR {}, largest error {:.4g}</li>", html_escaped(output.name),
                        html_decibels(output.error.sqnr_db()), output.error.largest);
  }
  html += "</ul>\n<h2>Layers, worst first</h2>\n<p class=\"q\">";
  if (has_effects) {
    html += fmt::format(
        "Effect: the float model with this layer's own error added, all else float; its share of all layers' effects "
        "({} "
        "samples). ",
        comparison.effect_samples);
  }
  html +=
      "Own error: the layer fed the float model's values, quantized, against the float operator on the same. "
      "Cumulative: the "
      "whole model quantized. Higher is better.</p>\n";
  html += table(comparison, has_effects);
  html +=
      "<h2>Layer by layer</h2>\n<p class=\"q\">Bars: the float model's values, counts on a logarithmic scale. Shaded: "
      "what "
      "the integers can represent. Red: values outside of it.</p>\n";
  for (std::size_t i = 0; i < comparison.ranking.size(); ++i)
    html += layer_section(comparison.layers[comparison.ranking[i]], i + 1, has_effects);
  if (!comparison.match.unmatched.empty()) {
    html += "<h2>Not in the float model</h2><ul>";
    for (const std::string& name : comparison.match.unmatched) html += "<li>" + html_escaped(name) + "</li>";
    html += "</ul>\n";
  }
  return html + fmt::format("<p class=\"q\">reef {}</p></body></html>\n", reef_version());
}

}  // namespace reef::evaluate
