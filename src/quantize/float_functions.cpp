// SPDX-License-Identifier: Apache-2.0
#include "quantize/float_functions.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/uses.h"
#include "ops/registry.h"
#include "ops/table_functions.h"
#include "quantize/graph_constants.h"

namespace reef::quantize {
namespace {

constexpr std::size_t kMostOps = 24;  // of one function
constexpr int kMostSteps = 12;        // from an operator back to the tensor that it is a function of

class Functions {
 public:
  explicit Functions(const ir::Model& model) : model_(model), graph_(model.subgraphs[0]), uses_(model) {}

  // Operators, ascending, that with `op` compute a function of one tensor, as many as there are; {op}: none.
  std::vector<std::int32_t> around(std::int32_t op) const {
    std::vector<std::int32_t> best = {op};
    std::int32_t x = variable_of(op);
    for (int step = 0; step < kMostSteps && x >= 0; ++step) {
      std::vector<std::int32_t> found = function_of(x, op);
      if (found.size() > best.size()) best = std::move(found);
      const std::int32_t before = uses_.producer(x);
      x = before < 0 ? -1 : variable_of(before);
    }
    return best;
  }

 private:
  bool is_float(std::int32_t t) const { return graph_.tensors[at(t)].type == ir::DataType::kFloat32; }
  bool is_number(std::int32_t t) const {
    return is_float_constant(model_, graph_.tensors[at(t)]) && graph_.tensors[at(t)].shape.elements() == 1;
  }

  // The first operand that is computed, if all of them have the result's shape or are single numbers; -1: the operator
  // does not treat elements alike.
  std::int32_t variable_of(std::int32_t number) const {
    const ir::Operator& op = graph_.operators[at(number)];
    if (!ops::is_elementwise(op) || op.outputs.size() != 1 || !is_float(op.outputs[0])) return -1;
    std::int32_t result = -1;
    for (const std::int32_t t : op.inputs) {
      if (t < 0 || !is_float(t)) return -1;
      if (is_number(t)) continue;
      if (ir::is_constant(model_, graph_.tensors[at(t)])) return -1;
      if (graph_.tensors[at(t)].shape != graph_.tensors[at(op.outputs[0])].shape) return -1;
      if (result < 0) result = t;
    }
    return result;
  }

  // The longest function of x that `op` has a part in, and of which nothing else reads what is in between.
  std::vector<std::int32_t> function_of(std::int32_t x, std::int32_t op) const {
    std::set<std::int32_t> values = {x};
    std::vector<std::int32_t> ops;
    for (std::size_t i = uses_.producer(x) < 0 ? 0 : at(uses_.producer(x)) + 1;
         i < graph_.operators.size() && ops.size() < kMostOps; ++i) {
      const ir::Operator& each = graph_.operators[i];
      const bool is_of_x = std::all_of(each.inputs.begin(), each.inputs.end(),
                                       [&](std::int32_t t) { return t >= 0 && (values.contains(t) || is_number(t)); });
      if (!is_of_x || variable_of(static_cast<std::int32_t>(i)) < 0) continue;
      values.insert(each.outputs[0]);
      ops.push_back(static_cast<std::int32_t>(i));
    }
    for (; !ops.empty(); ops.pop_back()) {
      const std::vector<std::int32_t> whole = leading_to(ops);
      if (std::binary_search(whole.begin(), whole.end(), op) && is_closed(whole)) return whole;
    }
    return {};
  }

  // Those of `ops` that the last of them needs.
  std::vector<std::int32_t> leading_to(const std::vector<std::int32_t>& ops) const {
    std::set<std::int32_t> needed = {ops.back()};
    for (std::size_t i = ops.size(); i-- > 0;) {
      const std::int32_t y = graph_.operators[at(ops[i])].outputs[0];
      const auto& readers = uses_.consumers(y);
      if (std::any_of(readers.begin(), readers.end(), [&](auto reader) { return needed.contains(reader); })) {
        needed.insert(ops[i]);
      }
    }
    return {needed.begin(), needed.end()};
  }

  bool is_closed(const std::vector<std::int32_t>& ops) const {
    return std::all_of(ops.begin(), ops.end() - 1, [&](std::int32_t op) {
      const std::int32_t y = graph_.operators[at(op)].outputs[0];
      const auto& readers = uses_.consumers(y);
      return !uses_.is_output(y) && std::all_of(readers.begin(), readers.end(), [&](auto reader) {
        return std::binary_search(ops.begin(), ops.end(), reader);
      });
    });
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  ir::Uses uses_;
};

}  // namespace

namespace {

// Operators that a function must have to stay float as a whole because of `op`: one of which there is no integer kernel
// takes any neighbour along; one that Google's compilers leave on the CPU does so if the function would be rounded
// several times (SELU and CELU as exporters write them). Nothing: the operator takes none along.
std::optional<std::size_t> least_operators(const ir::Operator& op, const Decision& decision) {
  constexpr std::size_t kSeveral = 3;
  if (decision.treatment == Treatment::kFloat && rule_of(op.type) == nullptr) return 1;
  if (decision.treatment != Treatment::kInteger || !ops::is_elementwise(op)) return {};
  if (ops::first_runtime(*ops::find_op(op), op) != 0) return {};
  return kSeveral;
}

}  // namespace

void widen_float_functions(const ir::Model& model, std::vector<Decision>& decisions) {
  const std::vector<ir::Operator>& ops = model.subgraphs[0].operators;
  const Functions functions(model);
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const std::optional<std::size_t> least = least_operators(ops[i], decisions[i]);
    if (!least) continue;
    const std::vector<std::int32_t> group = functions.around(static_cast<std::int32_t>(i));
    if (group.size() < *least) continue;
    for (const std::int32_t op : group) {
      if (decisions[at(op)].treatment != Treatment::kInteger) continue;
      decisions[at(op)] = {Treatment::kFloat, nullptr,
                           "it is part of a function of one tensor that is computed in float as a whole"};
    }
  }
}

}  // namespace reef::quantize
