// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalization: where one layer's output goes to one other layer alone, a channel can be divided by a
// factor in the first and multiplied by it in the second. What the network computes stays the same, but all channels of
// the tensor between them come to use the same share of its one scale.
//
// With a scale per output channel, the first layer's weights do not care; the factor balances the range of the
// channel's values a against the largest weight b that reads it: sqrt(a / b). A depthwise layer has a scale for each
// channel that it reads, so there a alone decides. ReLU commutes with the division; of ReLU6 only channels that stay
// below 6 (and after the division, too) can be divided.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/op.h"
#include "quantize/graph_constants.h"
#include "quantize/op_rules.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

constexpr float kHalfRoom =
    4;  // samples after which half of the room is left: a fifth of what 16 showed, a fiftieth of 200
constexpr float kLargestFactor = 64;
constexpr float kCap = 6, kClear = 0.98f;  // of ReLU6; a channel counts as never capped below kClear * kCap

bool is_layer(const ir::Operator& op) {
  return op.type == Op::CONV_2D || op.type == Op::DEPTHWISE_CONV_2D || op.type == Op::FULLY_CONNECTED;
}

struct Pair {
  std::size_t first, second;  // operators
  std::int32_t between;       // tensor
};

class Equalizer {
 public:
  Equalizer(ir::Model& model, const Calibration& calibration, ChannelFactors& factors)
      : model_(model), graph_(model.subgraphs[0]), index_(model), calibration_(calibration), factors_(factors) {}

  int run() {
    int count = 0;
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (const auto pair = pair_from(i)) count += scale(*pair) ? 1 : 0;
    }
    return count;
  }

 private:
  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[at(t)]; }
  bool owns_constant(std::int32_t t) const { return is_own_constant(model_, index_, t); }

  std::optional<Pair> pair_from(std::size_t number) const {
    const ir::Operator& a = graph_.operators[number];
    if (!is_layer(a) || a.inputs.size() < 2 || !owns_constant(a.inputs[1])) return std::nullopt;
    if (a.inputs.size() > 2 && a.inputs[2] >= 0 && !owns_constant(a.inputs[2])) return std::nullopt;
    const std::string_view activation = a.attributes.get_enum("fused_activation_function", "NONE");
    if (activation != "NONE" && activation != "RELU" && activation != "RELU6") return std::nullopt;
    const std::int32_t between = a.outputs[0];
    if (!index_.has_one_use(between)) return std::nullopt;
    const auto second = static_cast<std::size_t>(index_.consumers(between)[0]);
    const ir::Operator& b = graph_.operators[second];
    if (!is_layer(b) || b.inputs[0] != between || !owns_constant(b.inputs[1])) return std::nullopt;
    const ir::Shape &from = tensor(between).shape, &weights = tensor(b.inputs[1]).shape;
    if (from.rank() < 2) return std::nullopt;
    // Weights' last dimension is the input's channels, but of a depthwise layer with a multiplier or a grouped one.
    if (weights.last() != from.last()) return std::nullopt;
    return Pair{number, second, between};
  }

  std::vector<float> largest_per_input(const ir::Operator& b, std::size_t channels) const {
    std::vector<float> largest(channels, 0);
    const std::vector<float> values = float_values(model_, tensor(b.inputs[1]));
    for (std::size_t k = 0; k < values.size(); ++k) {
      largest[k % channels] = std::max(largest[k % channels], std::abs(values[k]));
    }
    return largest;
  }

  bool scale(const Pair& pair) {
    const ir::Operator &a = graph_.operators[pair.first], &b = graph_.operators[pair.second];
    const std::vector<float> range = channel_limits(calibration_, pair.between);
    const std::size_t channels = static_cast<std::size_t>(tensor(pair.between).shape.last());
    if (range.empty() || range.size() != channels) return false;
    const bool capped = a.attributes.get_enum("fused_activation_function", "NONE") == "RELU6";
    const std::vector<float> weights = largest_per_input(b, channels);
    std::vector<float> factor(channels, 1);
    const float widest = *std::max_element(range.begin(), range.end());
    if (!(widest > 0)) return false;
    double sum = 0, count = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      if (!(range[c] > widest * 1e-4f) || !(weights[c] > 0)) continue;
      factor[c] = b.type == Op::DEPTHWISE_CONV_2D ? range[c] / widest : std::sqrt(range[c] / weights[c]);
      sum += std::log(factor[c]);
      ++count;
    }
    if (count == 0) return false;
    // The factors' common part changes nothing; without it, those left at 1 keep their place among the others.
    const auto usual = static_cast<float>(b.type == Op::DEPTHWISE_CONV_2D ? 1 : std::exp(sum / count));
    for (std::size_t c = 0; c < channels; ++c) {
      if (!(range[c] > widest * 1e-4f) || !(weights[c] > 0)) continue;
      factor[c] = std::clamp(factor[c] / usual, 1 / kLargestFactor, kLargestFactor);
      if (!capped) continue;
      factor[c] = range[c] < kClear * kCap ? std::max(factor[c], range[c] / (kClear * kCap)) : 1;
    }
    apply(a, b, factor);
    return true;
  }

  void apply(const ir::Operator& a, const ir::Operator& b, const std::vector<float>& factor) {
    const std::size_t channels = factor.size();
    const auto change = [&](std::int32_t t, auto&& channel_of, bool divide) {
      std::vector<float> values = float_values(model_, tensor(t));
      for (std::size_t k = 0; k < values.size(); ++k) {
        const float f = factor[channel_of(k, values.size())];
        values[k] = divide ? values[k] / f : values[k] * f;
      }
      set_constant(model_, graph_.tensors[at(t)], values);
    };
    const auto innermost = [&](std::size_t k, std::size_t) { return k % channels; };
    const auto outermost = [&](std::size_t k, std::size_t size) { return k / (size / channels); };
    if (a.type == Op::DEPTHWISE_CONV_2D) {
      change(a.inputs[1], innermost, true);
    } else {
      change(a.inputs[1], outermost, true);
    }
    if (a.inputs.size() > 2 && a.inputs[2] >= 0) change(a.inputs[2], innermost, true);
    change(b.inputs[1], innermost, false);
    graph_.tensors[at(a.outputs[0])].name += kEqualizedSuffix;
    factors_[a.outputs[0]] = factor;
  }

  ir::Model& model_;
  ir::Subgraph& graph_;
  ir::Uses index_;
  const Calibration& calibration_;
  ChannelFactors& factors_;
};

}  // namespace

std::vector<float> channel_limits(const Calibration& calibration, std::int32_t tensor) {
  const ChannelStatistics& seen = calibration.tensors[at(tensor)].channels;
  if (seen.count == 0) return {};
  const float room = 1 + kHalfRoom / (kHalfRoom + static_cast<float>(calibration.samples));
  std::vector<float> limits(seen.sum.size());
  for (std::size_t c = 0; c < limits.size(); ++c) limits[c] = std::max(std::abs(seen.min[c]), std::abs(seen.max[c]));
  const float widest = limits.empty() ? 0 : *std::max_element(limits.begin(), limits.end());
  for (float& limit : limits) limit = std::min(room * limit, widest);
  return limits;
}

int equalize_layers(ir::Model& model, const Calibration& calibration, ChannelFactors& factors) {
  return Equalizer(model, calibration, factors).run();
}

Status equalize(Session& session) {
  ir::Model model = *session.best().model;
  ChannelFactors factors;
  const int pairs = equalize_layers(model, *session.best().calibration, factors);
  if (pairs == 0) return ok_status();
  const bool is_asked = session.options().equalize == Choice::kOn;
  return session.consider_rewritten(std::move(model),
                                    fmt::format("equalization of {} pair{} of layers", pairs, pairs == 1 ? "" : "s"),
                                    is_asked ? Session::Proof::kAsked : Session::Proof::kBetter, factors);
}

}  // namespace reef::quantize
