// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_float.h"

#include <algorithm>
#include <type_traits>

#include "kernels/simd/targets.h"

namespace reef::kernels {
namespace baseline {
namespace {
#define REEF_LANES 4
#define REEF_PIXELS_3X3 4
#include "kernels/conv/depthwise_float_body.h"
#undef REEF_LANES
#undef REEF_PIXELS_3X3
}  // namespace
}  // namespace baseline

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#define REEF_LANES 8
#define REEF_PIXELS_3X3 4
#include "kernels/conv/depthwise_float_body.h"
#undef REEF_LANES
#undef REEF_PIXELS_3X3
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#define REEF_LANES 16
#define REEF_PIXELS_3X3 8
#include "kernels/conv/depthwise_float_body.h"
#undef REEF_LANES
#undef REEF_PIXELS_3X3
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#endif

void depthwise_float_rows(const ConvShape& s, const float* input, const float* weights, const FloatOutput& finish,
                          std::int64_t row_begin, std::int64_t row_end, std::int64_t channel_begin,
                          std::int64_t channel_end, float* output) {
  constexpr std::int64_t kWidestVector = 8;
  if (s.output_channels != s.input_channels || channel_end - channel_begin < kWidestVector) {
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      depthwise_convolve_float(s, input, weights, finish, {row, 0, s.x.output, channel_begin, channel_end}, output);
    }
    return;
  }
  const auto run = [&](auto* rows) {
    rows(s, input, weights, finish, row_begin, row_end, channel_begin, channel_end, output);
  };
#if defined(__x86_64__)
  // 64-byte vectors fill whole lines of the cache.
  if (active_target() == SimdTarget::kAvx512 && channel_end - channel_begin >= 16) return run(&avx512::depthwise_rows);
  if (active_includes(SimdTarget::kAvx2)) return run(&avx2::depthwise_rows);
#endif
  run(&baseline::depthwise_rows);
}

}  // namespace reef::kernels
