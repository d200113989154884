// SPDX-License-Identifier: Apache-2.0
// How a statement about the chip is known. No chip was used for any of them: see docs/hardware/README.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace reef::chip {

enum class Evidence : std::uint8_t {
  kPublished,      // stated by the maker, or published by others who measured it on a chip
  kRuntimeSource,  // stated in libedgetpu, Google's open runtime
  kExecuted,       // an emulator that relies on it reproduces whole compiled programs; another reading breaks them
  kObserved,       // holds without exception in the programs studied; nothing tells it from another reading
  kMeasured,       // fits times or outputs that others recorded from real devices
  kInferred,       // the only reading that makes sense of few occurrences, or a pattern
  kUnknown,        // the value is what every program seen has, or a guess that says so
};

constexpr std::string_view evidence_name(Evidence evidence) {
  switch (evidence) {
    case Evidence::kPublished:
      return "published";
    case Evidence::kRuntimeSource:
      return "libedgetpu source";
    case Evidence::kExecuted:
      return "executed";
    case Evidence::kObserved:
      return "observed";
    case Evidence::kMeasured:
      return "measured by others";
    case Evidence::kInferred:
      return "inferred";
    case Evidence::kUnknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace reef::chip
