// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/float_curves.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/simd/trace.h"

namespace reef::kernels {
namespace baseline {
namespace {
#include "kernels/recurrent/float_curves_body.h"
}  // namespace
}  // namespace baseline

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#include "kernels/recurrent/float_curves_body.h"
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"
#define REEF_MAP(Function, Release)                                                             \
  runs_in(SimdTarget::kAvx2) ? avx2::map_in_place<avx2::Function<avx2::Release>>(values, count) \
                             : baseline::map_in_place<baseline::Function<baseline::Release>>(values, count)
#else
#define REEF_MAP(Function, Release) baseline::map_in_place<baseline::Function<baseline::Release>>(values, count)
#endif

namespace {

// x = m * ln 2 + r
struct ReducedArgument {
  float m = 0, r = 0;
};
ReducedArgument reduced(float x) {
  const float m = std::floor(x * 1.44269504088896341f + 0.5f);
  const float r = m * -0.693359375f + x;
  return {m, m * 2.12194440e-4f + r};
}

}  // namespace

// Ratios of polynomials, to a few units in the last place.
float CurvesOfCurrent::tanh(float value) {
  constexpr float kLimit = 7.90738964080810547f;  // where the ratio becomes 1
  if (std::isnan(value)) return value;
  const float x = std::max(std::min(value, kLimit), -kLimit);
  const float x2 = x * x;
  float p = 1.394553628e-8f;
  for (const float c : {2.102733560e-5f, 3.520756727e-3f, 1.340216100e-1f}) p = p * x2 + c;
  float q = 8.015776984e-7f;
  for (const float c : {3.326951409e-4f, 2.597254514e-2f, 4.673548340e-1f, 1.0f}) q = q * x2 + c;
  return (x2 * x * p + x) / q;
}

float CurvesOf29::tanh(float value) {
  constexpr float kLimit = 7.90531110763549805f;  // where the ratio becomes 1
  constexpr float kTiny = 0.0004f;
  if (std::isnan(value)) return value;
  const float x = std::max(std::min(value, kLimit), -kLimit);
  if (std::abs(value) < kTiny) return x;
  const float x2 = x * x;
  float p = x2 * -2.76076847742355e-16f + 2.00018790482477e-13f;
  for (const float c : {-8.60467152213735e-11f, 5.12229709037114e-08f, 1.48572235717979e-05f, 6.37261928875436e-04f,
                        4.89352455891786e-03f}) {
    p = x2 * p + c;
  }
  p = x * p;
  float q = x2 * 1.19825839466702e-06f + 1.18534705686654e-04f;
  for (const float c : {2.26843463243900e-03f, 4.89352518554385e-03f}) q = x2 * q + c;
  return p / q;
}

float CurvesOf29::vector_exp(float x) {
  if (x < -104.0f) return 0;
  const auto [m, r] = reduced(x);
  const float r2 = r * r;
  float even = r2 * 1.37449637986719608306884765625e-3f + 4.166965186595916748046875e-2f;
  const float odd = r2 * 8.36894474923610687255859375e-3f + 0.16666518151760101318359375f;
  even = r2 * even + 0.49999988079071044921875f;
  const float p = r * odd + even;
  return std::ldexp(r2 * p + (r + 1.0f), static_cast<int>(m));
}

float CurvesOfCurrent::vector_exp(float x) {  // as exp(x / 2) squared
  if (x < -104.0f) return 0;
  const auto [m, r] = reduced(x * 0.5f);
  const float r2 = r * r;
  const float even = r2 * 4.1898667812347412109375e-2f + 0.49999141693115234375f;
  const float odd = r2 * 8.33471305668354034423828125e-3f + 0.16666877269744873046875f;
  const float p = r * odd + even;
  const float root = std::ldexp(r2 * p + (r + 1.0f), static_cast<int>(m));
  return root * root;
}

void CurvesOf29::tanhs(float* values, std::int64_t count) { REEF_MAP(HyperbolicTangent, Of29); }
void CurvesOf29::logistics(float* values, std::int64_t count) { REEF_MAP(Logistic, Of29); }
void CurvesOfCurrent::tanhs(float* values, std::int64_t count) { REEF_MAP(HyperbolicTangent, OfCurrent); }
void CurvesOfCurrent::logistics(float* values, std::int64_t count) { REEF_MAP(Logistic, OfCurrent); }

}  // namespace reef::kernels
