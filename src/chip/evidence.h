// SPDX-License-Identifier: Apache-2.0
// How a statement about the chip is known. No chip was used for any of them: see docs/hardware/README.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace reef::chip {

enum class Evidence : std::uint8_t {
  kPublished,      // stated by the maker: data sheet, Coral's documentation
  kRuntimeSource,  // stated in libedgetpu, Google's open runtime
  kDecoded,   // read from compiled programs; another reading makes programs fail to parse, deadlock or compute wrong
  kMeasured,  // fits times or outputs that others recorded from real devices
  kInferred,  // pattern or statistics only; consistent with everything seen, not forced by it
  kOpen,      // not known; the value is what every program seen has, or a guess that says so
};

constexpr std::string_view evidence_name(Evidence evidence) {
  switch (evidence) {
    case Evidence::kPublished:
      return "published";
    case Evidence::kRuntimeSource:
      return "libedgetpu source";
    case Evidence::kDecoded:
      return "decoded";
    case Evidence::kMeasured:
      return "measured by others";
    case Evidence::kInferred:
      return "inferred";
    case Evidence::kOpen:
      return "open";
  }
  return "open";
}

}  // namespace reef::chip
