// SPDX-License-Identifier: Apache-2.0
// A comparison as text and as JSON.
#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "evaluate/compare.h"

namespace reef::evaluate {
namespace {

using Json = nlohmann::ordered_json;

std::string decibels(double value) {
  return std::isnan(value) ? "-" : std::isinf(value) ? "exact" : fmt::format("{:.1f}", value);
}

// The end of a long name says more than its start.
std::string short_name(const std::string& name, std::size_t most) {
  return name.size() <= most ? name : fmt::format("...{}", std::string_view(name).substr(name.size() - (most - 3)));
}

// null: infinite (nothing differs) or not known.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json error_json(const ErrorSums& error) {
  return {{"sqnr_db", number(error.sqnr_db())},
          {"max_error", error.largest},
          {"mean_error", error.mean()},
          {"rms_error", error.rms()},
          {"values", error.count}};
}

Json layer_json(const LayerReport& layer, bool has_effects) {
  Json json = {{"op", layer.op},
               {"type", layer.type},
               {"name", layer.name},
               {"float_name", layer.float_name},
               {"data_type", ir::type_name(layer.data_type)}};
  if (layer.range.is_quantized) {
    json["scale"] = layer.range.scale;
    json["zero_point"] = layer.range.zero_point;
    json["representable"] = {layer.range.low, layer.range.high};
    json["saturated"] = layer.values.clipped();
    json["at_ends"] = layer.at_ends;
  }
  if (layer.values.count() > 0) {
    json["float_range"] = {layer.values.min(), layer.values.max()};
    json["float_range_99_99"] = {layer.values.quantile(0.00005), layer.values.quantile(0.99995)};
    json["histogram"] = {{"from", layer.values.low()}, {"to", layer.values.high()}, {"counts", layer.values.bars(64)}};
  }
  json["cumulative"] = error_json(layer.cumulative);
  json["own"] = error_json(layer.own);
  if (has_effects) {
    json["effect_noise"] = layer.effect;
    json["effect_sqnr_db"] = layer.effect > 0 ? number(-10 * std::log10(layer.effect)) : Json();
    json["share"] = layer.share;
  }
  if (layer.weights) {
    json["weights"] = {{"sqnr_db", number(layer.weights->sqnr_db)},
                       {"gain", layer.weights->gain},
                       {"rescaled_sqnr_db", number(layer.weights->rescaled_sqnr_db)},
                       {"rescaling", layer.weights->rescaling},
                       {"channel_ratio", layer.weights->channel_ratio},
                       {"per_channel", layer.weights->is_per_channel}};
  }
  json["advice"] = layer.advice;
  return json;
}

}  // namespace

std::string comparison_text(const Comparison& comparison, std::size_t most) {
  std::string text;
  for (const OutputReport& output : comparison.outputs) {
    text += fmt::format("output '{}': SQNR {} dB, largest error {:.4g}\n", output.name,
                        decibels(output.error.sqnr_db()), output.error.largest);
  }
  const bool has_effects = comparison.effect_samples > 0;
  text += fmt::format("{} layers on {} samples, worst first by {}\n", comparison.ranking.size(), comparison.samples,
                      has_effects
                          ? fmt::format("what each alone does to the outputs ({} samples)", comparison.effect_samples)
                          : "their own error");
  text += fmt::format("{:>7}  {:>7}  {:>6}  {:>10}  {:>9}  {:>23}  {:>4} {}\n", "share", "own dB", "cum dB", "own max",
                      "saturated", "range", "op", "layer");
  const std::size_t count = most == 0 ? comparison.ranking.size() : std::min(most, comparison.ranking.size());
  for (std::size_t i = 0; i < count; ++i) {
    const LayerReport& layer = comparison.layers[comparison.ranking[i]];
    text += fmt::format("{:>7}  {:>7}  {:>6}  {:>10.4g}  {:>9}  {:>23}  {:>4} {} '{}'\n",
                        has_effects ? fmt::format("{:.1f} %", 100 * layer.share) : "-", decibels(layer.own.sqnr_db()),
                        decibels(layer.cumulative.sqnr_db()), layer.own.largest,
                        layer.range.is_quantized ? fmt::format("{:.2f} %", 100 * layer.values.clipped()) : "-",
                        layer.range.is_quantized ? fmt::format("{:.4g} to {:.4g}", layer.range.low, layer.range.high)
                                                 : ir::type_name(layer.data_type),
                        layer.op >= 0 ? std::to_string(layer.op) : "", layer.type, short_name(layer.name, 48));
    for (const std::string& advice : layer.advice) text += fmt::format("         -> {}\n", advice);
  }
  if (count < comparison.ranking.size())
    text += fmt::format("{} more layers are not shown (--all)\n", comparison.ranking.size() - count);
  if (!comparison.roles.empty() && has_effects) {
    text += "where this transformer loses, by what layers are for\n";
    for (const RoleReport& role : comparison.roles) {
      text += fmt::format("{:>7}  {:>3} {} (worst own {} dB)\n", fmt::format("{:.1f} %", 100 * role.share), role.layers,
                          to_string(role.role), decibels(role.least_own_db));
    }
  }
  if (!comparison.match.unmatched.empty()) {
    text += fmt::format(
        "not in the float model: {} of the quantized model's results: {}{}\n", comparison.match.unmatched.size(),
        fmt::join(comparison.match.unmatched.begin(),
                  comparison.match.unmatched.begin() +
                      static_cast<std::ptrdiff_t>(std::min<std::size_t>(4, comparison.match.unmatched.size())),
                  ", "),
        comparison.match.unmatched.size() > 4 ? ", ..." : "");
  }
  return text;
}

std::string comparison_json(const Comparison& comparison, const std::string& float_path, const std::string& path) {
  Json json = {{"float_model", float_path},
               {"quantized_model", path},
               {"samples", comparison.samples},
               {"effect_samples", comparison.effect_samples},
               {"effect_points", comparison.effect_points}};
  json["outputs"] = Json::array();
  for (const OutputReport& output : comparison.outputs) {
    Json entry = error_json(output.error);
    entry["name"] = output.name;
    json["outputs"].push_back(std::move(entry));
  }
  json["layers"] = Json::array();
  for (const std::size_t index : comparison.ranking)
    json["layers"].push_back(layer_json(comparison.layers[index], comparison.effect_samples > 0));
  json["roles"] = Json::array();
  for (const RoleReport& role : comparison.roles) {
    json["roles"].push_back({{"role", to_string(role.role)}, {"layers", role.layers}, {"share", role.share}});
  }
  json["matched"] = {{"by_list", comparison.match.by_list},
                     {"by_name", comparison.match.by_name},
                     {"by_structure", comparison.match.by_structure}};
  json["unmatched"] = comparison.match.unmatched;
  json["time"] = {{"kind", "measured"}, {"seconds", comparison.seconds}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reef::evaluate
