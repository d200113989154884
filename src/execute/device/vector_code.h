// SPDX-License-Identifier: Apache-2.0
// Plain loops compiled twice: for every processor, and with the wider vectors that most x86-64 processors have.
//
// A loop is written as a REEF_VECTOR_BODY function; for_this_processor calls it from a function that the compiler
// may make of 256-bit instructions if the processor has them. Results are the same: no fused operations, no other
// order.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define REEF_HAS_AVX2_CODE 1
#define REEF_VECTOR_BODY __attribute__((always_inline)) inline
#define REEF_AVX2 __attribute__((target("avx2")))
#else
#define REEF_HAS_AVX2_CODE 0
#define REEF_VECTOR_BODY inline
#endif

namespace reef::device {

#if REEF_HAS_AVX2_CODE
inline bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

template <auto kBody, typename... Arguments>
REEF_AVX2 auto with_avx2(Arguments... arguments) {
  return kBody(arguments...);
}
#endif

// Calls kBody in the version for this processor.
template <auto kBody, typename... Arguments>
auto for_this_processor(Arguments... arguments) {
#if REEF_HAS_AVX2_CODE
  if (has_avx2()) return with_avx2<kBody>(arguments...);
#endif
  return kBody(arguments...);
}

}  // namespace reef::device
