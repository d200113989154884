// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_float.h"

#include <algorithm>
#include <type_traits>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"

#define REEF_BODY "kernels/conv/depthwise_float_body.h"

namespace reef::kernels {
#define REEF_LANES 4
#define REEF_PIXELS_3X3 4
namespace baseline {
#include "kernels/simd/float_forms_body.h"
}
#undef REEF_LANES
#undef REEF_PIXELS_3X3

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
#define REEF_LANES 8
#define REEF_PIXELS_3X3 4
namespace avx2 {
#include "kernels/simd/float_forms_body.h"
}
#undef REEF_LANES
#undef REEF_PIXELS_3X3
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
#define REEF_LANES 16
#define REEF_PIXELS_3X3 8
namespace avx512 {
#include "kernels/simd/float_forms_body.h"
}
#undef REEF_LANES
#undef REEF_PIXELS_3X3
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
  if (channel_end - channel_begin >= 16 && runs_in(SimdTarget::kAvx512)) {
    return run(finish.may_fuse ? &avx512::fused::depthwise_rows : &avx512::rounded::depthwise_rows);
  }
  if (runs_in(SimdTarget::kAvx2)) {
    return run(finish.may_fuse ? &avx2::fused::depthwise_rows : &avx2::rounded::depthwise_rows);
  }
#elif defined(__aarch64__)
  note_kernel(SimdTarget::kNeon);
  if (finish.may_fuse) return run(&baseline::fused::depthwise_rows);
#endif
  run(&baseline::rounded::depthwise_rows);
}

}  // namespace reef::kernels
