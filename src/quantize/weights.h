// SPDX-License-Identifier: Apache-2.0
// Weights and biases in integers: weights symmetric in [-127, 127], biases at the scale of the products.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/model.h"
#include "quantize/op_rules.h"

namespace reef::quantize {

// How a tensor's elements fall to the indices of one dimension: element i belongs to (i / inner) % count.
struct ChannelLayout {
  std::int64_t count = 1, inner = 1;
  std::size_t channel(std::size_t element) const {
    return (element / static_cast<std::size_t>(inner)) % static_cast<std::size_t>(count);
  }
};
// axis -1: one channel.
ChannelLayout channel_layout(const ir::Shape& shape, int axis);

struct WeightRequest {
  ChannelLayout layout;
  bool clip = false;            // narrower than the largest weight where that lowers the mean square error
  std::span<const float> bias;  // empty: none
  double input_scale = 0;       // of the activations, for the bias
};

// One scale per channel. Raised where the bias would not fit into 31 bits, and by raise_to_limits.
std::vector<float> weight_scales(std::span<const float> weights, const WeightRequest& request);
// Weights too small for any scale (scale_limits.h), those of dead channels and of layers whose input is next to
// nothing, get the smallest one that also leaves the bias inside the limits, at which they may round to 0.
void raise_to_limits(std::vector<float>& scales, double input_scale);

std::vector<std::int8_t> round_weights(std::span<const float> weights, const ChannelLayout& layout,
                                       std::span<const float> scales);

// T: int32 or int64. `scales` has one element or one per bias.
template <typename T>
std::vector<T> round_bias(std::span<const float> bias, std::span<const float> scales);
// input scale times weight scale, in the arithmetic of TFLite's check.
std::vector<float> bias_scales(double input_scale, std::span<const float> weight_scales);

// Whether weights of this operator get a scale per channel.
bool is_per_channel(const ir::Operator& op, const QuantizeOptions& options);

}  // namespace reef::quantize
