// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_float.h"

#include <algorithm>

#include "kernels/simd/targets.h"

namespace reef::kernels {
namespace baseline {
namespace {
#define REEF_LANES 4
#include "kernels/conv/depthwise_float_body.h"
#undef REEF_LANES
}  // namespace
}  // namespace baseline

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#define REEF_LANES 8
#include "kernels/conv/depthwise_float_body.h"
#undef REEF_LANES
}  // namespace
}  // namespace avx2
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
  if (active_target() != SimdTarget::kBaseline) {
    return avx2::depthwise_block(s, image, weights, finish, block, output);
  }
#endif
  baseline::depthwise_block(s, image, weights, finish, block, output);
}

}  // namespace reef::kernels
