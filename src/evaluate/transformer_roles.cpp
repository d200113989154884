// SPDX-License-Identifier: Apache-2.0
// Roles follow from how operators are connected, not from their names: attention is a SOFTMAX whose result is
// multiplied by something computed, a normalization is what lies between an RSQRT and the image that its result
// multiplies.
#include "evaluate/transformer_roles.h"

#include "ir/uses.h"
#include "ops/registry.h"

namespace reef::evaluate {
namespace {

constexpr int kMostSteps = 8;  // operators that are followed from one that decides

class Finder {
 public:
  explicit Finder(const ir::Model& model)
      : graph_(model.subgraphs[0]), uses_(model), roles_(graph_.operators.size(), Role::kOther) {}

  std::vector<Role> find() {
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) find_attention(static_cast<std::int32_t>(i));
    if (!has_attention_) return std::move(roles_);
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) find_normalization(static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) find_rest(static_cast<std::int32_t>(i));
    return std::move(roles_);
  }

 private:
  const ir::Operator& op(std::int32_t index) const { return graph_.operators[at(index)]; }
  bool is_computed(std::int32_t tensor) const { return tensor >= 0 && uses_.producer(tensor) >= 0; }
  bool is_product(std::int32_t index) const {
    const ir::Operator& it = op(index);
    return (it.type == Op::BATCH_MATMUL || it.type == Op::FULLY_CONNECTED) && it.inputs.size() >= 2 &&
           is_computed(it.inputs[0]) && is_computed(it.inputs[1]);
  }
  void set(std::int32_t index, Role role) {
    Role& known = roles_[at(index)];
    if (known == Role::kOther) known = role;
  }
  static bool moves(const ir::Operator& it) {
    return (ops::form_of(it) == ops::Form::kMove || it.type == Op::QUANTIZE) && !it.outputs.empty();
  }
  static bool is_unary(const ir::Operator& it) { return ops::form_of(it) == ops::Form::kUnary; }

  // The operators that read the tensor, after movements.
  void products_of(std::int32_t tensor, int steps, std::vector<std::int32_t>& found) const {
    for (const std::int32_t reader : uses_.consumers(tensor)) {
      if (is_product(reader)) found.push_back(reader);
      if (moves(op(reader)) && steps < kMostSteps) products_of(op(reader).outputs[0], steps + 1, found);
    }
  }

  void find_attention(std::int32_t index) {
    if (op(index).type != Op::SOFTMAX) return;
    std::vector<std::int32_t> products;
    products_of(op(index).outputs[0], 0, products);
    if (products.empty()) return;
    has_attention_ = true;
    set(index, Role::kWeights);
    for (const std::int32_t product : products) set(product, Role::kAverages);
    // Back to the product of queries and keys: factors and masks lie between.
    std::int32_t tensor = op(index).inputs[0];
    for (int step = 0; step < kMostSteps && tensor >= 0; ++step) {
      const std::int32_t maker = uses_.producer(tensor);
      if (maker < 0) return;
      const bool is_between = moves(op(maker)) || ops::is_elementwise(op(maker));
      if (!is_between && !is_product(maker)) return;
      set(maker, Role::kScores);
      if (is_product(maker)) return;
      tensor = op(maker).inputs[0];
    }
  }

  // From one over a deviation: back to the mean of squares and what is squared, forward to the product.
  void find_normalization(std::int32_t index) {
    if (op(index).type != Op::RSQRT) return;
    set(index, Role::kNormalization);
    for (const std::int32_t reader : uses_.consumers(op(index).outputs[0])) {
      if (op(reader).type == Op::MUL) set(reader, Role::kNormalization);
    }
    mark_back(op(index).inputs[0], 0);
  }
  void mark_back(std::int32_t tensor, int steps) {
    const std::int32_t maker = tensor < 0 ? -1 : uses_.producer(tensor);
    if (maker < 0 || steps == kMostSteps) return;
    const std::string& type = op(maker).type;
    const bool is_part = type == Op::MEAN || type == Op::SQUARED_DIFFERENCE || type == Op::SUB ||
                         (steps < 3 && (type == Op::ADD || type == Op::MUL || type == Op::SQUARE));
    if (!is_part) return;
    set(maker, Role::kNormalization);
    // A mean behind a mean is that of the squares; what is averaged first is the stream itself.
    for (const std::int32_t input : op(maker).inputs) mark_back(input, steps + 1);
    if (type != Op::MEAN) return;
    for (const std::int32_t reader : uses_.consumers(op(maker).outputs[0])) {
      if (op(reader).type == Op::SUB) set(reader, Role::kNormalization);
    }
  }

  void find_rest(std::int32_t index) {
    const ir::Operator& it = op(index);
    const bool is_sum =
        it.type == Op::ADD && it.inputs.size() == 2 && is_computed(it.inputs[0]) && is_computed(it.inputs[1]);
    if (is_sum) set(index, Role::kResidualSum);
    if (is_unary(it) && it.type != Op::QUANTIZE) set(index, Role::kActivation);
  }

  const ir::Subgraph& graph_;
  const ir::Uses uses_;
  std::vector<Role> roles_;
  bool has_attention_ = false;
};

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kScores:
      return "attention scores";
    case Role::kWeights:
      return "attention weights (SOFTMAX)";
    case Role::kAverages:
      return "attention averages";
    case Role::kNormalization:
      return "normalizations";
    case Role::kResidualSum:
      return "residual sums";
    case Role::kActivation:
      return "activation functions";
    case Role::kOther:
      return "layers and others";
  }
  return "";
}

std::vector<Role> transformer_roles(const ir::Model& model) {
  if (model.subgraphs.empty()) return {};
  return Finder(model).find();
}

}  // namespace reef::evaluate
