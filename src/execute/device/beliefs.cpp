// SPDX-License-Identifier: Apache-2.0
#include "execute/device/beliefs.h"

#include <vector>

namespace reef::device {
namespace {

std::string_view without_k(std::string_view name) { return name.empty() ? name : name.substr(1); }

std::vector<BeliefInfo> list_beliefs() {
  std::vector<BeliefInfo> list;
  std::string_view group;
#define GROUP(title) group = title;
#define BELIEF(name, fact, statement, alternative) \
  list.push_back({Belief::name, group, without_k(#name), without_k(fact), statement, alternative});
#include "execute/device/beliefs.def"
#undef BELIEF
#undef GROUP
  return list;
}

}  // namespace

std::span<const BeliefInfo> beliefs() {
  static const std::vector<BeliefInfo> list = list_beliefs();
  return list;
}

}  // namespace reef::device
