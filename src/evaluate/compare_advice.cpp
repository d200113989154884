// SPDX-License-Identifier: Apache-2.0
// What a layer's numbers mean and what to do about it. Each rule is a sentence with the numbers that made it fire; the
// thresholds are set where the cure was worth its trouble on the models of this project, and are not laws.
#include <algorithm>
#include <cmath>

#include "base/shell_word.h"
#include "evaluate/compare.h"
#include "ir/op.h"
#include "quantize/op_rules.h"

namespace reef::evaluate {
namespace {

constexpr double kWorthAdvice = 0.02;  // share of the whole effect
constexpr double kPoorSqnr = 20;       // dB; 8 bits of a well used range give 30 to 45
constexpr double kClipped = 0.001;     // share of values outside of the range
constexpr double kBulk = 0.9999;       // share of values that makes up the bulk
constexpr double kUsed = 0.5;          // share of the range that the bulk should fill
constexpr double kChannelRatio = 16;   // of ranges of channels under one scale: 4 of 8 bits lost
constexpr double kGain = 0.02;         // by which quantized weights may be too large or too small

constexpr double kHarm = 1e-4;  // noise at the outputs, as a share of their signal: 40 dB
constexpr double kMuchHarm = 1e-3;

// TFLite prescribes the ranges of their results.
bool has_fixed_range(const LayerReport& layer) {
  const quantize::OpRule* const rule = quantize::rule_of(layer.type);
  return rule != nullptr && rule->kind == quantize::RuleKind::kUnit;
}

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

// Some operators must give results of their operand's scale.
bool has_scale_of_operand(const ir::Model& model, const LayerReport& layer) {
  if (layer.op < 0 || layer.weights || layer.is_conversion) return false;
  const ir::Operator& op = model.subgraphs[0].operators[at(layer.op)];
  if (op.inputs.empty() || op.inputs[0] < 0) return false;
  const ir::Tensor& operand = model.subgraphs[0].tensors[at(op.inputs[0])];
  const Representable range = Representable::of(operand.type, operand.quantization);
  return range.is_quantized && range.scale == layer.range.scale && range.zero_point == layer.range.zero_point;
}

void advise_range(const ir::Model& model, const LayerReport& layer, std::vector<std::string>& advice) {
  const ValueStatistics& values = layer.values;
  if (!layer.range.is_quantized || values.count() == 0 || has_fixed_range(layer)) return;
  if (values.clipped() > kClipped) {
    advice.push_back(
        fmt::format("the range {:.4g} to {:.4g} is narrower than the data ({:.4g} to {:.4g}): {} of the values "
                    "saturate. Calibrate with "
                    "samples like these, or take the whole range (--calibration minmax)",
                    layer.range.low, layer.range.high, values.min(), values.max(), percent(values.clipped())));
    return;
  }
  const double low = values.quantile((1 - kBulk) / 2), high = values.quantile(1 - (1 - kBulk) / 2);
  const double span = layer.range.high - layer.range.low;
  const double bulk = std::max(high, 0.0) - std::min(low, 0.0),
               all = std::max(values.max(), 0.0) - std::min(values.min(), 0.0);
  if (bulk >= kUsed * span) return;
  if (has_scale_of_operand(model, layer)) {
    advice.push_back(fmt::format(
        "only {} of the range {:.4g} to {:.4g} is used: it has its operand's scale, as TFLite requires of {}{}",
        percent(all / span), layer.range.low, layer.range.high, layer.type,
        layer.type == Op::AVERAGE_POOL_2D ? "; a MEAN in its place has its own" : ""));
    return;
  }
  if (all >= kUsed * span) {
    const auto outliers = static_cast<std::int64_t>(std::llround((1 - kBulk) * static_cast<double>(values.count())));
    advice.push_back(
        fmt::format("the range {:.4g} to {:.4g} is set by about {} outliers of {} values, the others lie in {:.4g} to "
                    "{:.4g}: clip them "
                    "(--calibration percentile --percentile 99.99)",
                    layer.range.low, layer.range.high, std::max<std::int64_t>(outliers, 1), values.count(), low, high));
  } else {
    advice.push_back(
        fmt::format("only {} of the range {:.4g} to {:.4g} is used (the data lie in {:.4g} to {:.4g}): calibrate with "
                    "data like these",
                    percent(all / span), layer.range.low, layer.range.high, values.min(), values.max()));
  }
}

void advise_weights(const LayerReport& layer, std::vector<std::string>& advice) {
  if (!layer.weights) return;
  const WeightsReport& weights = *layer.weights;
  constexpr double kMuchBetter = 10, kRescaled = 1.1;
  if (weights.rescaled_sqnr_db > std::max(kPoorSqnr, weights.sqnr_db + kMuchBetter) && weights.rescaling > kRescaled) {
    advice.push_back(
        fmt::format("its weights are the float model's with channels rescaled, up to {:.3g} times: if it was "
                    "equalized, compare with the "
                    "float model that was (reef quantize --report does); else scales of channels are wrong",
                    weights.rescaling));
  } else if (std::abs(weights.gain - 1) > kGain) {
    advice.push_back(
        fmt::format("its weights are {:.3g} times those of the float model at best fit: a scale is wrong, or the "
                    "models are not versions "
                    "of each other. Quantize again",
                    weights.gain));
  } else if (weights.sqnr_db < kPoorSqnr) {
    advice.push_back(fmt::format(
        "its weights are only {:.1f} dB from the float model's: {}", weights.sqnr_db,
        weights.is_per_channel ? "damaged or from another model? Quantize again" : "one scale is too coarse for them"));
  }
  if (!weights.is_per_channel && weights.channel_ratio > kChannelRatio) {
    advice.push_back(
        fmt::format("the ranges of its weights' channels differ {:.0f} times, under one scale: use a scale per channel "
                    "(--per-channel-dense for FULLY_CONNECTED), or equalize",
                    weights.channel_ratio));
  }
}

// Channels of an output, such as boxes and scores, that need very different ranges. Inside a network such channels are
// common, and meet weights that make up for it.
void advise_mixture(const LayerReport& layer, std::vector<std::string>& advice) {
  const std::vector<float>& maxima = layer.values.channel_maxima();
  if (!layer.range.is_quantized || maxima.size() < 2 || !(layer.is_output || layer.type == Op::CONCATENATION) ||
      layer.own.sqnr_db() > 2 * kPoorSqnr)
    return;
  const auto [low, high] = std::minmax_element(maxima.begin(), maxima.end());
  if (!(*high > kChannelRatio * std::max(*low, 1e-12F)) || *low == 0) return;
  advice.push_back(
      fmt::format("its channels mix ranges: channel {} reaches {:.3g}, channel {} only {:.3g}, {} steps of the common "
                  "scale: split it{}",
                  high - maxima.begin(), *high, low - maxima.begin(), *low,
                  fmt::format("{:.2g}", static_cast<double>(*low) / layer.range.scale),
                  layer.type == Op::CONCATENATION ? " (--split-outputs, if it is an output)" : ""));
}

void advise_bias(const LayerReport& layer, std::vector<std::string>& advice) {
  const double rms = layer.own.rms(), mean = layer.own.mean();
  if (rms > 0 && std::abs(mean) > 0.7 * rms && layer.range.is_quantized && std::abs(mean) > layer.range.scale) {
    advice.push_back(
        fmt::format("its error is one-sided, {:+.3g} on average ({:.1f} steps): a wrong zero point or bias; correcting "
                    "biases helps",
                    mean, std::abs(mean) / layer.range.scale));
  }
}

}  // namespace

void add_advice(const ir::Model& quantized, Comparison& comparison) {
  const bool has_effects = comparison.effect_samples > 0;
  for (std::size_t place = 0; place < comparison.ranking.size(); ++place) {
    LayerReport& layer = comparison.layers[comparison.ranking[place]];
    layer.advice.clear();
    const bool is_worth_it =
        has_effects ? layer.share > kWorthAdvice && layer.effect > kHarm : layer.own.sqnr_db() < 1.5 * kPoorSqnr;
    if (!is_worth_it) continue;
    advise_range(quantized, layer, layer.advice);
    advise_weights(layer, layer.advice);
    advise_mixture(layer, layer.advice);
    advise_bias(layer, layer.advice);
    if (layer.type != "input" && !layer.is_conversion && layer.range.is_quantized &&
        ((layer.share > 0.1 && layer.effect > kMuchHarm) || layer.own.sqnr_db() < kPoorSqnr)) {
      layer.advice.push_back(
          fmt::format("{} --keep-float {}",
                      layer.advice.empty() ? "keep it float:" : "or keep it float:", shell_word(layer.float_name)));
    }
  }
}

void add_roles(const ir::Model& quantized, Comparison& comparison) {
  const std::vector<Role> roles = transformer_roles(quantized);
  const auto role_of = [&](const LayerReport& layer) { return layer.op < 0 ? Role::kOther : roles[at(layer.op)]; };
  comparison.roles.clear();
  if (std::all_of(roles.begin(), roles.end(), [](Role role) { return role == Role::kOther; })) return;
  for (const LayerReport& layer : comparison.layers) {
    const Role role = role_of(layer);
    auto found = std::find_if(comparison.roles.begin(), comparison.roles.end(),
                              [&](const RoleReport& report) { return report.role == role; });
    if (found == comparison.roles.end()) {
      comparison.roles.push_back({role, 0, 0, layer.own.sqnr_db()});
      found = comparison.roles.end() - 1;
    }
    ++found->layers;
    found->share += layer.share;
    found->least_own_db = std::min(found->least_own_db, layer.own.sqnr_db());
  }
  std::stable_sort(comparison.roles.begin(), comparison.roles.end(),
                   [](const RoleReport& a, const RoleReport& b) { return a.share > b.share; });
}

}  // namespace reef::evaluate
