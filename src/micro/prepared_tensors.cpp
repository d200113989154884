// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "micro/operator_memory.h"

namespace reef::micro {
namespace {

struct Looks {
  std::string_view op, type, current, coral;
};
constexpr Looks kLooks[] = {
#define MICRO_LOOKS(op, type, current, coral) {op, type, current, coral},
#include "micro/prepared_tensors.def"
#undef MICRO_LOOKS
};
constexpr std::string_view kEverythingOnce = "i* o*";

std::string_view looks_of(const OpView& view, Build build) {
  const ir::Tensor* result = view.output(0);
  const std::string type = result == nullptr ? "" : ir::type_name(result->type);
  const auto* at = std::find_if(std::begin(kLooks), std::end(kLooks), [&](const Looks& row) {
    return row.op == view.op().type && (row.type.empty() || row.type == type);
  });
  if (at == std::end(kLooks)) return kEverythingOnce;
  return build == Build::kCoral ? at->coral : at->current;
}

}  // namespace

std::vector<const ir::Tensor*> prepared_tensors(const OpView& view, Build build) {
  std::vector<const ir::Tensor*> tensors;
  const auto look = [&](char list, std::size_t i) {
    const ir::Tensor* tensor = list == 'i' ? view.input(i) : list == 'o' ? view.output(i) : view.intermediate(i);
    if (tensor != nullptr) tensors.push_back(tensor);
  };
  const std::string_view looks = looks_of(view, build);
  for (std::size_t at = 0; at + 1 < looks.size(); at += 3) {  // "i0 o0": two letters and a space each
    const std::size_t count = looks[at] == 'i' ? view.op().inputs.size() : view.op().outputs.size();
    if (const char which = looks[at + 1]; which != '*') {
      look(looks[at], static_cast<std::size_t>(which <= '9' ? which - '0' : which - 'a' + 10));
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) look(looks[at], i);
  }
  return tensors;
}

}  // namespace reef::micro
