// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/fixed_curves.h"

#include <cstring>

#include "kernels/recurrent/curve_table.h"
#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"
#include "numeric/fixed_point_math.h"

namespace reef::kernels {
#if defined(__x86_64__)
#define REEF_BODY "kernels/recurrent/fixed_curves_body.h"
#include "kernels/simd/in_sse4_and_avx2.h"
#elif defined(__aarch64__)
#include "kernels/simd/begin_neon.h"
namespace neon {
namespace {
#define REEF_VECTOR_BYTES 16
#include "kernels/recurrent/fixed_curves_body.h"
}  // namespace
}  // namespace neon
#include "kernels/simd/end_target.h"
#endif

namespace {

// Calls the active target's function for a curve: the one of this name in its namespace, else the table.
#if defined(__x86_64__)
#define REEF_MAP(...)                                                                         \
  if (runs_in(SimdTarget::kAvx2)) return avx2::map<avx2::__VA_ARGS__>(values, count, result); \
  if (runs_in(SimdTarget::kSse4)) return sse4::map<sse4::__VA_ARGS__>(values, count, result)
#elif defined(__aarch64__)
#define REEF_MAP(...) \
  if (runs_in(SimdTarget::kNeon)) return neon::map<neon::__VA_ARGS__>(values, count, result)
#else
#define REEF_MAP(...) static_cast<void>(0)
#endif

template <int kBits>
void tanh_of(const std::int16_t* values, std::int64_t count, std::int16_t* result) {
  REEF_MAP(Tanh<kBits>);
  map_by_table(values, count, result,
               [](std::int16_t x) { return numeric::tanh(numeric::Fixed<std::int16_t, kBits>{x}).raw; });
}

void logistic_of(const std::int16_t* values, std::int64_t count, std::int16_t* result) {
  REEF_MAP(Logistic);
  map_by_table(values, count, result,
               [](std::int16_t x) { return numeric::logistic(numeric::Fixed<std::int16_t, 3>{x}).raw; });
}
#undef REEF_MAP

}  // namespace

void logistic_q3(std::int16_t* values, std::int64_t count) { logistic_of(values, count, values); }

void tanh_q15(int integer_bits, const std::int16_t* values, std::int64_t count, std::int16_t* result) {
  switch (integer_bits) {
    case 0:
      return tanh_of<0>(values, count, result);
    case 1:
      return tanh_of<1>(values, count, result);
    case 2:
      return tanh_of<2>(values, count, result);
    case 3:
      return tanh_of<3>(values, count, result);
    case 4:
      return tanh_of<4>(values, count, result);
    case 5:
      return tanh_of<5>(values, count, result);
    default:
      return tanh_of<6>(values, count, result);
  }
}

}  // namespace reef::kernels
