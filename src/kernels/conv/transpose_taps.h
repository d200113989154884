// SPDX-License-Identifier: Apache-2.0
// Which input pixels a transposed convolution adds to an output pixel.
//
// The reference scatters: each input pixel, in row-major order, adds its products to the outputs below its window. Seen
// from one output pixel that is a sum over input pixels in the same order, which needs no shared accumulators.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv_shape.h"

namespace reef::kernels {

// Input coordinates [begin, end) whose window covers output `o`. In a transposed convolution `input` and `output` are
// the op's own; pad_before is in output pixels.
inline TapRange covering_inputs(const ConvAxis& axis, std::int64_t o) {
  const std::int64_t shifted = o + axis.pad_before;  // >= 0
  const std::int64_t above = shifted - axis.window + 1;
  const std::int64_t begin = above <= 0 ? 0 : (above + axis.stride - 1) / axis.stride;
  return {begin, std::max(begin, std::min(axis.input, shifted / axis.stride + 1))};
}

// visit(input pixel within the image, window position), input pixels ascending.
template <typename Visit>
void for_each_source(const ConvShape& s, std::int64_t out_y, std::int64_t out_x, const Visit& visit) {
  const TapRange ys = covering_inputs(s.y, out_y), xs = covering_inputs(s.x, out_x);
  for (std::int64_t in_y = ys.begin; in_y < ys.end; ++in_y) {
    const std::int64_t ky = out_y + s.y.pad_before - in_y * s.y.stride;
    for (std::int64_t in_x = xs.begin; in_x < xs.end; ++in_x) {
      const std::int64_t kx = out_x + s.x.pad_before - in_x * s.x.stride;
      visit(in_y * s.x.input + in_x, ky * s.x.window + kx);
    }
  }
}

}  // namespace reef::kernels
