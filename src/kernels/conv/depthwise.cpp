// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise.h"

namespace reef::kernels {

void depthwise_convolve_float(const ConvShape& s, const float* input, const float* weights, const FloatOutput& finish,
                              std::int64_t row_begin, std::int64_t row_end, float* output) {
  const std::int64_t channels = s.output_channels, multiplier = channels / s.input_channels;
  std::vector<float> sums(static_cast<std::size_t>(channels));
  std::vector<float> repeated(static_cast<std::size_t>(multiplier > 1 ? channels : 0));
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const float* image = input + row / s.y.output * s.input_batch_size();
    for (std::int64_t out_x = 0; out_x < s.x.output; ++out_x) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for_each_tap(s, image, row % s.y.output, out_x, [&](const float* x, std::int64_t tap) {
        if (multiplier > 1) {
          repeat_channels(x, s.input_channels, multiplier, repeated.data());
          x = repeated.data();
        }
        add_channel_products(x, weights + tap * channels, channels, sums.data());
      });
      float* to = output + (row * s.x.output + out_x) * channels;
      for (std::int64_t c = 0; c < channels; ++c) to[c] = finish(sums[static_cast<std::size_t>(c)], c);
    }
  }
}

}  // namespace reef::kernels
