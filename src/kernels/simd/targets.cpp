// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd/targets.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace reef::kernels {
namespace {

#if defined(__x86_64__)
// Leaf 7, subleaf 1, bit 4 of EAX; clang 14's __builtin_cpu_supports does not know the name.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
#elif defined(__aarch64__)
bool has_dot_products() {
#if defined(__ARM_FEATURE_DOTPROD)
  return true;  // the whole build needs them
#elif defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}
#endif

SimdTarget best_target() {
  const std::vector<SimdTarget> all = supported_targets();
  if (const char* wanted = std::getenv("REEF_SIMD")) {
    for (const SimdTarget target : all) {
      if (target_name(target) == wanted) return target;
    }
  }
  return all.back();
}

std::atomic<SimdTarget>& current() {
  static std::atomic<SimdTarget> target{best_target()};
  return target;
}

}  // namespace

std::string_view target_name(SimdTarget target) {
  switch (target) {
    case SimdTarget::kBaseline:
      return "baseline";
    case SimdTarget::kSse4:
      return "sse4";
    case SimdTarget::kAvx2:
      return "avx2";
    case SimdTarget::kAvxVnni:
      return "avxvnni";
    case SimdTarget::kAvx512:
      return "avx512";
    case SimdTarget::kNeon:
      return "neon";
    case SimdTarget::kDotprod:
      return "dotprod";
  }
  return "";
}

std::vector<SimdTarget> supported_targets() {
  std::vector<SimdTarget> result{SimdTarget::kBaseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.1")) result.push_back(SimdTarget::kSse4);
  if (__builtin_cpu_supports("avx2")) result.push_back(SimdTarget::kAvx2);
  if (__builtin_cpu_supports("avx2") && has_avx_vnni()) result.push_back(SimdTarget::kAvxVnni);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
    result.push_back(SimdTarget::kAvx512);
  }
#elif defined(__aarch64__)
  result.push_back(SimdTarget::kNeon);
  if (has_dot_products()) result.push_back(SimdTarget::kDotprod);
#endif
  return result;
}

SimdTarget active_target() { return current().load(std::memory_order_relaxed); }

std::string unmet_request() {
  const char* const wanted = std::getenv("REEF_SIMD");
  if (wanted == nullptr) return "";
  std::string known;
  for (const SimdTarget target : supported_targets()) {
    if (target_name(target) == wanted) return "";
    known.append(known.empty() ? "" : ", ").append(target_name(target));
  }
  return std::string("REEF_SIMD=") + wanted + " has no effect: this CPU and build have " + known;
}

void set_active_target(SimdTarget target) { current().store(target, std::memory_order_relaxed); }

}  // namespace reef::kernels
