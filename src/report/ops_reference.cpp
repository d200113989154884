// SPDX-License-Identifier: Apache-2.0
#include "report/ops_reference.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/registry.h"

namespace reef::report {
namespace {

std::string arity_text(ops::Arity arity) {
  if (arity.min == arity.max) return fmt::format("{}", arity.min);
  if (arity.max >= ops::kAnyNumber) return fmt::format("{} or more", arity.min);
  return fmt::format("{} to {}", arity.min, arity.max);
}

std::string op_section(const ops::OpDef& op) {
  std::string text =
      fmt::format("### {}{}\n\n{} Inputs: {}. Outputs: {}. Types: {}.\n", op.name, op.is_custom ? " (custom op)" : "",
                  op.summary, arity_text(op.inputs), arity_text(op.outputs), fmt::join(op.types, "; "));
  if (!op.attributes.empty()) text += "\n| attribute | meaning |\n| --- | --- |\n";
  for (const ops::AttributeDoc& row : op.attributes) text += fmt::format("| `{}` | {} |\n", row.name, row.meaning);
  for (const ops::ChipRule& rule : op.chip.rules) text += fmt::format("\n- Edge TPU: {}\n", rule.says);
  return text + "\n";
}

}  // namespace

std::string ops_reference() {
  std::vector<const ops::OpDef*> ops(ops::all_ops().begin(), ops::all_ops().end());
  std::sort(ops.begin(), ops.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  std::string text = fmt::format(
      "# Operations\n\n"
      "Generated from `src/ops/*.cpp` by `make docs`; a test fails when it is stale. {} operations run on the CPU, "
      "integers\n"
      "bit for bit as TFLite's reference kernels. \"hybrid\" means float32 activations with integer weights.\n\n",
      ops.size());
  for (const ops::OpDef* op : ops) text += op_section(*op);
  text.pop_back();  // one newline at the end of the file
  return text;
}

}  // namespace reef::report
