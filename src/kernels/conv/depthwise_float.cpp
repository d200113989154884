// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_float.h"

#include <algorithm>

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

void depthwise_convolve_float_fast(const ConvShape& s, const float* input, const float* weights,
                                   const FloatOutput& finish, const OutputBlock& block, float* output) {
  constexpr std::int64_t kWidestVector = 8;
  if (s.output_channels != s.input_channels || block.channel_end - block.channel_begin < kWidestVector) {
    return depthwise_convolve_float(s, input, weights, finish, block, output);
  }
  const float* image = input + block.row / s.y.output * s.input_batch_size();
#if defined(__x86_64__)
  // 64-byte vectors fill whole lines of the cache.
  if (active_target() == SimdTarget::kAvx512 && block.channel_end - block.channel_begin >= 16) {
    return avx512::depthwise_block(s, image, weights, finish, block, output);
  }
  if (active_includes(SimdTarget::kAvx2)) {
    return avx2::depthwise_block(s, image, weights, finish, block, output);
  }
#endif
  baseline::depthwise_block(s, image, weights, finish, block, output);
}

}  // namespace reef::kernels
