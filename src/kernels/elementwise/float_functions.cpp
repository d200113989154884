// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/float_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"

namespace reef::kernels {
namespace {

// The bits of 2^(i/32), less those of i/32 where exponents have theirs: adding k << 47 makes it 2^(k/32).
struct PowerTable {
  PowerTable() {
    for (std::int64_t i = 0; i < 32; ++i) {
      const double power = std::exp2(static_cast<double>(i) / 32);
      std::memcpy(&bits[i], &power, sizeof power);
      bits[i] -= i << 47;
    }
  }
  alignas(64) std::int64_t bits[32];
};
const PowerTable kPowers;

// Four floats, as instructions that the compilers' vectors have no operator for take them.
#if defined(__x86_64__)
using Quarter = __m128;
#elif defined(__aarch64__)
using Quarter = float32x4_t;
#endif

}  // namespace

namespace baseline {
namespace {
#define REEF_LANES 8
#define REEF_AVX2 0
#define REEF_LOOK_UP(k, t) \
  for (int lane = 0; lane < 4; ++lane) t[lane] = kPowers.bits[k[lane] & 31]
#include "kernels/elementwise/float_functions_body.h"
#undef REEF_LANES
#undef REEF_AVX2
#undef REEF_LOOK_UP
}  // namespace
}  // namespace baseline

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#define REEF_LANES 8
#define REEF_AVX2 1
#define REEF_LOOK_UP(k, t)     \
  t = reinterpret_cast<Longs>( \
      _mm256_i64gather_epi64(reinterpret_cast<const long long*>(kPowers.bits), reinterpret_cast<__m256i>(k & 31), 8))
#include "kernels/elementwise/float_functions_body.h"
#undef REEF_LANES
#undef REEF_AVX2
#undef REEF_LOOK_UP
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#define REEF_LANES 16
#define REEF_AVX2 1
// Sixteen numbers at a time are looked up in registers.
[[gnu::always_inline]] inline __m512i look_up_power(__m512i k) {
  const std::int64_t* from = kPowers.bits;
  const __m512i low = _mm512_permutex2var_epi64(_mm512_load_si512(from), k, _mm512_load_si512(from + 8));
  const __m512i high = _mm512_permutex2var_epi64(_mm512_load_si512(from + 16), k, _mm512_load_si512(from + 24));
  return _mm512_mask_blend_epi64(_mm512_test_epi64_mask(k, _mm512_set1_epi64(16)), low, high);
}
#define REEF_LOOK_UP(k, t) t = reinterpret_cast<Longs>(look_up_power(reinterpret_cast<__m512i>(k)))
#include "kernels/elementwise/float_functions_body.h"
#undef REEF_LANES
#undef REEF_AVX2
#undef REEF_LOOK_UP
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#endif

// Names the function in the active target's namespace.
#if defined(__x86_64__)
#define REEF_OF_TARGET(function)                    \
  (runs_in(SimdTarget::kAvx512) ? &avx512::function \
   : runs_in(SimdTarget::kAvx2) ? &avx2::function   \
                                : &baseline::function)
#define REEF_MAP_FLOATS(Function)                                       \
  (runs_in(SimdTarget::kAvx512) ? &avx512::map_floats<avx512::Function> \
   : runs_in(SimdTarget::kAvx2) ? &avx2::map_floats<avx2::Function>     \
                                : &baseline::map_floats<baseline::Function>)(in, count, out)
#else
// The compiler's vectors are NEON's on ARM.
#define REEF_OF_TARGET(function) (note_kernel(active_target()), &baseline::function)
#define REEF_MAP_FLOATS(Function) \
  note_kernel(active_target());   \
  baseline::map_floats<baseline::Function>(in, count, out)
#endif

void exponentials(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(Exponential); }
void elus(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(Elu); }
void logistics(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(Logistic); }
void hyperbolic_tangents(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(HyperbolicTangent); }
void gelus(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(Gelu); }
void gelus_by_tanh(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(GeluByTanh); }

void square_roots(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(SquareRoot); }
void inverse_square_roots(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(InverseSquareRoot); }

void c_exponentials(const float* in, std::int64_t count, float* out) { REEF_OF_TARGET(c_exponentials)(in, count, out); }

float largest(const float* in, std::int64_t count) { return REEF_OF_TARGET(largest)(in, count); }

}  // namespace reef::kernels
