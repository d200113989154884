// SPDX-License-Identifier: Apache-2.0
// Plain loops in the vectors of the CPU at hand.
//
// in_vectors([&] { for (...) out[i] = f(a[i], b[i]); }) runs a loop that is compiled once for each of a few targets:
// everything that the lambda calls and that can be inlined is inlined into a function of that target (gnu::flatten),
// and the compiler makes vectors of the loop there. What cannot be inlined stays as it is. The arithmetic is the same
// for all: -ffp-contract=off holds for these functions, too, so that no product is fused with a sum.
//
// REEF_INDEPENDENT before a loop says that no turn needs what another one writes. Compilers cannot know it where an
// operator writes over its operand (an output that lies exactly where an input does) and would take one element at a
// time.
#pragma once

#include "kernels/simd/targets.h"
#include "kernels/simd/trace.h"

#if defined(__clang__)
#define REEF_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define REEF_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace reef::kernels {

#if defined(__x86_64__)
template <typename Loop>
[[gnu::noinline, gnu::flatten,
  gnu::target("avx2,fma,f16c,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void
loop_in_avx512(const Loop& loop) {
  loop();
}
template <typename Loop>
[[gnu::noinline, gnu::flatten, gnu::target("avx2,fma,f16c,bmi,bmi2")]] void loop_in_avx2(const Loop& loop) {
  loop();
}
#endif

template <typename Loop>
void in_vectors(const Loop& loop) {
#if defined(__x86_64__)
  if (active_target() == SimdTarget::kAvx512) {
    note_kernel(SimdTarget::kAvx512);
    return loop_in_avx512(loop);
  }
  if (active_includes(SimdTarget::kAvx2)) {
    note_kernel(SimdTarget::kAvx2);
    return loop_in_avx2(loop);
  }
#elif defined(__aarch64__)
  note_kernel(active_target());
#endif
  loop();
}

}  // namespace reef::kernels
