// SPDX-License-Identifier: Apache-2.0
#include "ops/table_functions.h"

#include <cmath>
#include <map>
#include <tuple>

namespace reef::ops {
namespace {

double gelu(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double gelu_by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}
double silu(double x) { return x / (1 + std::exp(-x)); }

std::int64_t silu_operand(const ir::Operator& op) {
  return op.type == "MUL" ? op.attributes.get_int(kSiluOperand, -1) : -1;
}

// The float32 scale is what a zero point and a code are multiplied with, here and on the chip.
numeric::CodeValues values_of(const std::function<double(double)>& function, const ChipAffine& in,
                              const ChipAffine& out) {
  numeric::CodeValues values{};
  for (int code = 0; code < 256; ++code) {
    values[static_cast<std::size_t>(code)] =
        function(static_cast<double>(in.scale) * (code - in.zero_point)) / static_cast<double>(out.scale);
  }
  return values;
}

}  // namespace

std::function<double(double)> table_function(const ir::Operator& op) {
  if (op.is_custom()) return nullptr;
  if (op.type == "GELU") return op.attributes.get_bool("approximate") ? gelu_by_tanh : gelu;
  if (silu_operand(op) >= 0) return silu;
  return nullptr;
}

ir::Operator without_marks(ir::Operator op) {
  if (silu_operand(op) < 0) return op;
  ir::Attributes rest;
  for (const ir::Attribute& attribute : op.attributes) {
    if (attribute.name != kSiluOperand) rest.set(attribute.name, attribute.value);
  }
  op.attributes = std::move(rest);
  return op;
}

ir::Model without_marks(ir::Model model) {
  for (ir::Subgraph& graph : model.subgraphs) {
    for (ir::Operator& op : graph.operators) op = without_marks(std::move(op));
  }
  return model;
}

std::size_t table_operand(const ir::Operator& op) { return silu_operand(op) == 1 ? 1 : 0; }

// Checks come in thousands, of the same few operators: what was found last is kept, by thread, so that nothing locks.
numeric::TableFit table_fit(const ir::Operator& op, const ChipAffine& in, const ChipAffine& out) {
  using Key = std::tuple<std::string, bool, ChipAffine, ChipAffine>;
  constexpr std::size_t kMostKept = 256;
  thread_local std::map<Key, numeric::TableFit> kept;
  Key key{op.type, op.attributes.get_bool("approximate"), in, out};
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  const auto function = table_function(op);
  numeric::TableFit fit = numeric::fit_table(values_of(function, in, out), in.scale, in.zero_point, out.zero_point);
  if (kept.size() >= kMostKept) kept.clear();
  kept.emplace(std::move(key), fit);
  return fit;
}

}  // namespace reef::ops
