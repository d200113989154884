// SPDX-License-Identifier: Apache-2.0
// Pools over two-dimensional windows of NHWC images: average, maximum, root of the mean square.
//
// The parts of a window that lie outside of the image do not count: they are left out of sums, counts and maxima.
// Per channel the elements of a window are combined row by row, so float sums have TFLite's order of additions; the
// inner loops run over channels.
//
// Work is cut into units of one output pixel times up to kPoolChannelBlock channels; callers share out [0, pool_units)
// in any way they like.
#pragma once

#include <cstdint>

namespace reef::kernels {

inline constexpr std::int64_t kPoolChannelBlock = 256;

// Every window overlaps the image in one element at least, which SAME and VALID padding ensure.
struct PoolGeometry {
  std::int64_t batches = 0, channels = 0;
  std::int64_t input_height = 0, input_width = 0;
  std::int64_t output_height = 0, output_width = 0;
  std::int64_t window_height = 1, window_width = 1;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t pad_top = 0, pad_left = 0;
};

std::int64_t pool_units(const PoolGeometry& geometry);
// Units that make a chunk of work worth handing to a thread.
std::int64_t pool_grain(const PoolGeometry& geometry);

template <typename T>
struct PoolLimits {
  T low{}, high{};
};

// T: float, int8_t, uint8_t, int16_t. Integer averages round halves away from zero.
template <typename T>
void average_pool(const PoolGeometry& geometry, const T* input, PoolLimits<T> limits, T* output,
                  std::int64_t first_unit, std::int64_t last_unit);
template <typename T>
void max_pool(const PoolGeometry& geometry, const T* input, PoolLimits<T> limits, T* output, std::int64_t first_unit,
              std::int64_t last_unit);
void l2_pool(const PoolGeometry& geometry, const float* input, PoolLimits<float> limits, float* output,
             std::int64_t first_unit, std::int64_t last_unit);

}  // namespace reef::kernels
