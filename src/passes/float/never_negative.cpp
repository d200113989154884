// SPDX-License-Identifier: Apache-2.0
// The proof walks from the tensor to its producers. Operators fall into four kinds: those whose result is never
// negative, those that pass on their first operand's values, those that need all operands, and those of which one
// operand is enough. The walk is bounded, so that a graph made for it cannot keep it busy.
#include "passes/float/never_negative.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ops/registry.h"
#include "passes/float/patterns.h"

namespace reef::passes {
namespace {

constexpr int kMostVisits = 256;

class Proof {
 public:
  explicit Proof(const Graph& graph) : graph_(graph) {}

  bool of(TensorId tensor) {
    if (tensor == kNone || --visits_left_ < 0) return false;
    if (graph_.is_constant(tensor)) {
      const auto values = graph_.floats(tensor);
      return values && std::all_of(values->begin(), values->end(), [](float v) { return v >= 0; });
    }
    const OpId id = graph_.producer(tensor);
    if (id == kNone || !graph_.is_sound(id) || !is_float(graph_, tensor)) return false;
    return of_result(graph_.op(id));
  }

 private:
  bool of_result(const ir::Operator& op) {
    const std::string_view activation = op.attributes.get_enum("fused_activation_function", "NONE");
    if (activation == "RELU" || activation == "RELU6" || activation == "RELU_0_TO_1") return true;
    if (ops::has_trait(op, ops::Trait::kNeverNegative)) return true;
    const auto operand = [&](std::size_t i) { return i < op.inputs.size() ? op.inputs[i] : kNone; };
    if (op.type == Op::MUL && operand(0) == operand(1)) return true;
    const ops::Form form = ops::form_of(op);
    if (form == ops::Form::kMove || form == ops::Form::kReduction ||
        ops::has_trait(op, ops::Trait::kKeepsNonNegative)) {
      // Other operands are sizes, axes or indices.
      return std::all_of(op.inputs.begin(), op.inputs.end(),
                         [&](TensorId t) { return t != kNone && (!is_float(graph_, t) || of(t)); });
    }
    if (op.type == Op::SELECT || op.type == Op::SELECT_V2) return of(operand(1)) && of(operand(2));
    if (op.type == Op::MAXIMUM) return of(operand(0)) || of(operand(1));
    if (op.type == Op::POW) {
      const auto exponent = graph_.uniform(operand(1));
      return (exponent && std::fmod(*exponent, 2.0f) == 0) || of(operand(0));
    }
    return false;
  }

  const Graph& graph_;
  int visits_left_ = kMostVisits;
};

}  // namespace

bool is_never_negative(const Graph& graph, TensorId tensor) { return Proof(graph).of(tensor); }

}  // namespace reef::passes
