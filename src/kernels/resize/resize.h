// SPDX-License-Identifier: Apache-2.0
// Resizing of NHWC images: bilinear and nearest neighbour, in the arithmetic of TFLite's reference kernels.
//
// Bilinear: float32 and uint8 interpolate in float (uint8 adds a half and truncates); int8 and int16 interpolate with
// positions in units of 1/1024 pixel and round halves away from zero. Positions that rounding pushes past the last
// pixel are held there: TFLite reads foreign memory in that case, so there is nothing to be equal to.
//
// Work is cut into output rows of all batches: [0, batches * output_height).
#pragma once

#include <cstddef>
#include <cstdint>

namespace reef::kernels {

// Sizes are below 2^31; input sizes are at least 1 where the output has elements.
struct ResizeGeometry {
  std::int64_t batches = 0, channels = 0;
  std::int64_t input_height = 0, input_width = 0;
  std::int64_t output_height = 0, output_width = 0;
  bool align_corners = false;       // first and last pixels of both images coincide
  bool half_pixel_centers = false;  // pixel i covers [i, i + 1) instead of sitting at i
};

// T: float, uint8_t, int8_t or int16_t.
template <typename T>
void resize_bilinear(const ResizeGeometry& geometry, const T* input, T* output, std::int64_t first_row,
                     std::int64_t last_row);

void resize_nearest(const ResizeGeometry& geometry, std::size_t element_bytes, const std::byte* input,
                    std::byte* output, std::int64_t first_row, std::int64_t last_row);

// Where the int8 kernel takes output pixel `index` of an axis from, in units of 1/1024 input pixel. It may lie before
// the first or behind the last pixel.
inline constexpr std::int64_t kResizeUnits = 1 << 10;
std::int64_t resize_place(std::int64_t index, std::int64_t input_size, std::int64_t output_size, bool align_corners,
                          bool half_pixel_centers);

}  // namespace reef::kernels
