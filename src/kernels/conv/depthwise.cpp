// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise.h"

namespace reef::kernels {

void depthwise_convolve_float(const ConvShape& s, const float* input, const float* weights, const FloatOutput& finish,
                              const OutputBlock& block, float* output) {
  const std::int64_t multiplier = s.output_channels / s.input_channels;
  const std::int64_t channels = block.channel_end - block.channel_begin, first_input = block.channel_begin / multiplier;
  std::vector<float> sums(static_cast<std::size_t>(channels));
  std::vector<float> repeated(static_cast<std::size_t>(multiplier > 1 ? channels : 0));
  const float* image = input + block.row / s.y.output * s.input_batch_size();
  for (std::int64_t out_x = block.x_begin; out_x < block.x_end; ++out_x) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for_each_tap(s, image, block.row % s.y.output, out_x, [&](const float* x, std::int64_t tap) {
      x += first_input;
      if (multiplier > 1) {
        repeat_channels(x, channels / multiplier, multiplier, repeated.data());
        x = repeated.data();
      }
      add_channel_products(x, weights + tap * s.output_channels + block.channel_begin, channels, sums.data());
    });
    float* to = output + (block.row * s.x.output + out_x) * s.output_channels + block.channel_begin;
    for (std::int64_t c = 0; c < channels; ++c) {
      to[c] = finish(sums[static_cast<std::size_t>(c)], block.channel_begin + c);
    }
  }
}

}  // namespace reef::kernels
