// SPDX-License-Identifier: Apache-2.0
#include "chip/facts.h"

#include <vector>

namespace reef::chip {
namespace {

std::vector<Fact> list_facts() {
  std::vector<Fact> list;
  std::string_view group;
#define GROUP(title) group = title;
#define FACT(type, name, value, unit, evidence, source, meaning) \
  list.push_back({group, std::string_view(#name).substr(1), value, unit, Evidence::evidence, source, meaning});
#include "chip/facts.def"
#undef FACT
#undef GROUP
  return list;
}

}  // namespace

std::span<const Fact> facts() {
  static const std::vector<Fact> list = list_facts();
  return list;
}

}  // namespace reef::chip
