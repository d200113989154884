// SPDX-License-Identifier: Apache-2.0
// Which instructions of the CPU the fast kernels use, chosen while running.
//
// A fast kernel is one piece of code that is compiled once per target: `x_body.h` has no include guard and is included
// by x.cpp between simd/begin_<target>.h and simd/end_target.h, each time in another namespace. Everything that is not
// part of the body, the standard library above all, is included before, so that no code of the program outside of those
// namespaces needs more than the build's baseline. Vectors are the compiler's own (gcc and clang); where an instruction
// has no operator (multiply-and-add of bytes) the body has a few lines for each target.
//
// Results never depend on the target: integers are exact, floats add in one fixed order without fused multiply-adds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reef::kernels {

// In order: a CPU runs whatever it has that comes last. Where a kernel has no code for a target, that of the next one
// before it is meant.
enum class SimdTarget {
  kBaseline,  // 16-byte vectors: SSE2, or what the compiler makes of them
  // x86-64
  kSse4,  // SSE4.1: 16-byte vectors with byte products and shuffles
  kAvx2,
  kAvxVnni,  // AVX2 and products of bytes (VPDPBUSD) on 32-byte vectors
  kAvx512,   // F, BW, DQ, VL and VNNI
  // 64-bit ARM
  kNeon,     // what every one has
  kDotprod,  // and dot products of bytes (SDOT)
};
// Whether `target` can run code for `needed`, of the same kind of CPU or kBaseline: all that comes before it, except
// that AVX-512 codes AVX-VNNI's instruction in another way.
constexpr bool includes(SimdTarget target, SimdTarget needed) {
  return needed == SimdTarget::kAvxVnni ? target == needed : target >= needed;
}

std::string_view target_name(SimdTarget target);
// Those that this CPU has and this build knows, kBaseline first.
std::vector<SimdTarget> supported_targets();
// The one in use: the best, or what the environment variable REEF_SIMD names ("baseline", "sse4", "avx2",
// "avxvnni", "avx512", "neon", "dotprod"); a name that this CPU does not have changes nothing.
SimdTarget active_target();
// The message for a user whose REEF_SIMD names nothing that this CPU and build have; empty if all is well.
std::string unmet_request();
inline bool active_includes(SimdTarget needed) { return includes(active_target(), needed); }
// Changes it, for tests and benchmarks: weights packed before must not be used after.
void set_active_target(SimdTarget target);

}  // namespace reef::kernels
