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
  const auto look = [&](bool is_input, std::size_t i) {
    const ir::Tensor* tensor = is_input ? view.input(i) : view.output(i);
    if (tensor != nullptr) tensors.push_back(tensor);
  };
  const std::string_view looks = looks_of(view, build);
  for (std::size_t at = 0; at + 1 < looks.size(); at += 3) {  // "i0 o0": two letters and a space each
    const bool is_input = looks[at] == 'i';
    const std::size_t count = is_input ? view.op().inputs.size() : view.op().outputs.size();
    if (looks[at + 1] != '*') {
      look(is_input, static_cast<std::size_t>(looks[at + 1] - '0'));
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) look(is_input, i);
  }
  return tensors;
}

}  // namespace reef::micro
