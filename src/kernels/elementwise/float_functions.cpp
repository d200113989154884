// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/float_functions.h"

#include <cstring>

#include "kernels/simd/targets.h"

namespace reef::kernels {
namespace baseline {
namespace {
#include "kernels/elementwise/float_functions_body.h"
}  // namespace
}  // namespace baseline

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#include "kernels/elementwise/float_functions_body.h"
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"
#define REEF_MAP_FLOATS(Function)                                                                     \
  active_target() == SimdTarget::kBaseline ? baseline::map_floats<baseline::Function>(in, count, out) \
                                           : avx2::map_floats<avx2::Function>(in, count, out)
#else
#define REEF_MAP_FLOATS(Function) baseline::map_floats<baseline::Function>(in, count, out)
#endif

void exponentials(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(Exponential); }
void logistics(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(Logistic); }
void hyperbolic_tangents(const float* in, std::int64_t count, float* out) { REEF_MAP_FLOATS(HyperbolicTangent); }

}  // namespace reef::kernels
