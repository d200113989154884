// SPDX-License-Identifier: Apache-2.0
// The numbers of facts.def as a list, for documents and tests.
#pragma once

#include <span>
#include <string_view>

#include "chip/evidence.h"

namespace reef::chip {

struct Fact {
  std::string_view group;
  std::string_view name;  // without the leading k
  double value = 0;
  std::string_view unit;
  Evidence evidence = Evidence::kUnknown;
  std::string_view source;  // what the evidence is
  std::string_view meaning;
};

// In the order of facts.def; members of a group are consecutive.
std::span<const Fact> facts();

}  // namespace reef::chip
