// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/quantize.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"
#include "numeric/fixed_point.h"
#include "numeric/lookup_table.h"

namespace reef::kernels {
namespace baseline {
namespace {
#define REEF_AVX2 0
#define REEF_LANES 8
#include "kernels/elementwise/quantize_body.h"
#undef REEF_LANES
#undef REEF_AVX2
}  // namespace
}  // namespace baseline

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#define REEF_AVX2 1
#define REEF_LANES 8
#include "kernels/elementwise/quantize_body.h"
#undef REEF_LANES
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#define REEF_LANES 16
#include "kernels/elementwise/quantize_body.h"
#undef REEF_LANES
#undef REEF_AVX2
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#endif

template <typename T>
void quantize_to(const float* in, std::int64_t count, float scale, std::int32_t zero_point, T* out) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (runs_in(SimdTarget::kAvx512)) {
    i = avx512::quantize_vectors(in, count, scale, zero_point, out);
  } else if (runs_in(SimdTarget::kAvx2)) {
    i = avx2::quantize_vectors(in, count, scale, zero_point, out);
  } else {
    i = baseline::quantize_vectors(in, count, scale, zero_point, out);
  }
#else
  note_kernel(active_target());  // the compiler's vectors are NEON's on ARM
  i = baseline::quantize_vectors(in, count, scale, zero_point, out);
#endif
  for (; i < count; ++i) {
    out[i] =
        numeric::saturate<T>(numeric::wrapping_add(numeric::truncate_to_int32(std::round(in[i] / scale)), zero_point));
  }
}

template void quantize_to<std::int8_t>(const float*, std::int64_t, float, std::int32_t, std::int8_t*);
template void quantize_to<std::uint8_t>(const float*, std::int64_t, float, std::int32_t, std::uint8_t*);
template void quantize_to<std::int16_t>(const float*, std::int64_t, float, std::int32_t, std::int16_t*);

}  // namespace reef::kernels
