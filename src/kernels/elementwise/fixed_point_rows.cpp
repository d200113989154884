// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/fixed_point_rows.h"

#include <cstring>
#include <type_traits>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"

namespace reef::kernels {

#if defined(__x86_64__)
#define REEF_BODY "kernels/elementwise/fixed_point_rows_body.h"
#include "kernels/simd/in_sse4_and_avx2.h"
#elif defined(__aarch64__)
#include "kernels/simd/begin_neon.h"
namespace neon {
namespace {
#include "kernels/elementwise/fixed_point_rows_neon_body.h"
}  // namespace
}  // namespace neon
#include "kernels/simd/end_target.h"
#endif

// A call of the active target's code, if it has any.
#if defined(__x86_64__)
#define REEF_IN_VECTORS(call) runs_in(SimdTarget::kAvx2) ? avx2::call : sse4::call
#elif defined(__aarch64__)
#define REEF_IN_VECTORS(call) note_kernel(SimdTarget::kNeon), neon::call
#endif

namespace {

std::int32_t finished(const ByteRequantize& q, std::int32_t sum) {
  return numeric::clamp(numeric::wrapping_add(numeric::multiply(sum, q.factor), q.zero_point), q.lowest, q.highest);
}

}  // namespace

template <typename T>
void requantize_row(const ByteRequantize& q, const std::int64_t* sums, std::int64_t count, T* out) {
  std::int64_t done = 0;
#if defined(REEF_IN_VECTORS)
  if (active_target() != SimdTarget::kBaseline) {
    REEF_IN_VECTORS(requantize_row(q, sums, count, out));
    done = count - count % 8;
  }
#endif
  for (; done < count; ++done) out[done] = static_cast<T>(finished(q, static_cast<std::int32_t>(sums[done])));
}
template void requantize_row(const ByteRequantize&, const std::int64_t*, std::int64_t, std::int8_t*);
template void requantize_row(const ByteRequantize&, const std::int64_t*, std::int64_t, std::uint8_t*);

void SquaredDifference::row(const std::int8_t* x, std::int64_t x_step, const std::int8_t* y, std::int64_t y_step,
                            std::int8_t* out, std::int64_t count) const {
  std::int64_t done = 0;
#if defined(REEF_IN_VECTORS)
  if (active_target() != SimdTarget::kBaseline && count >= 8) {
    REEF_IN_VECTORS(squared_differences(*this, x, x_step, y, y_step, out, count));
    done = count - count % 8;
  }
#endif
  for (; done < count; ++done) {
    const std::int32_t difference = x_scaling(x[done * x_step]) - y_scaling(y[done * y_step]);
    out[done] = static_cast<std::int8_t>(finished(result, difference * difference));
  }
}

}  // namespace reef::kernels
