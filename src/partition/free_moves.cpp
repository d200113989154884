// SPDX-License-Identifier: Apache-2.0
#include "partition/free_moves.h"

#include "ir/uses.h"
#include "ops/registry.h"

namespace reef::partition {
namespace {

constexpr int kMostMoves = 8;  // one behind the other

class FreeMoves {
 public:
  explicit FreeMoves(const ir::Model& model)
      : graph_(model.subgraphs[0]), uses_(model), free_(graph_.operators.size(), false) {}

  std::vector<bool> find() {
    for (const ir::Operator& op : graph_.operators) {
      if (op.type == Op::SOFTMAX && op.inputs.size() == 1 && op.outputs.size() == 1) mark_around(op);
    }
    return std::move(free_);
  }

 private:
  const ir::Operator& op(std::int32_t index) const { return graph_.operators[at(index)]; }
  bool is_product(std::int32_t index) const {
    return index >= 0 && op(index).type == Op::BATCH_MATMUL && op(index).inputs.size() == 2 &&
           op(index).outputs.size() == 1;
  }
  bool is_move(std::int32_t index) const { return index >= 0 && ops::form_of(op(index)) == ops::Form::kMove; }

  void mark_around(const ir::Operator& softmax) {
    for (const std::int32_t averages : uses_.consumers(softmax.outputs[0])) {
      const std::int32_t scores = product_before(softmax.inputs[0]);
      if (!is_product(averages) || scores < 0) continue;
      mark_back(op(averages).inputs[1], 0);
      mark_forward(op(averages).outputs[0], 0);
      for (const std::int32_t operand : op(scores).inputs) mark_back(operand, 0);
    }
  }

  // The product of queries and keys: a factor or a mask may lie between it and SOFTMAX. -1: there is none.
  std::int32_t product_before(std::int32_t tensor) const {
    constexpr int kMostBetween = 3;
    for (int step = 0; step <= kMostBetween; ++step) {
      const std::int32_t maker = uses_.producer(tensor);
      if (maker < 0 || is_product(maker)) return maker;
      if (!ops::is_elementwise(op(maker)) || op(maker).inputs.empty()) return -1;
      tensor = op(maker).inputs[0];
    }
    return -1;
  }

  void mark_back(std::int32_t tensor, int steps) {
    const std::int32_t maker = tensor < 0 ? -1 : uses_.producer(tensor);
    if (!is_move(maker) || steps == kMostMoves) return;
    free_[at(maker)] = true;
    for (const std::int32_t input : op(maker).inputs) mark_back(input, steps + 1);
  }
  void mark_forward(std::int32_t tensor, int steps) {
    for (const std::int32_t reader : uses_.consumers(tensor)) {
      if (!is_move(reader) || op(reader).outputs.size() != 1 || steps == kMostMoves) continue;
      free_[at(reader)] = true;
      mark_forward(op(reader).outputs[0], steps + 1);
    }
  }

  const ir::Subgraph& graph_;
  const ir::Uses uses_;
  std::vector<bool> free_;
};

}  // namespace

std::vector<bool> moves_of_attention(const ir::Model& model) {
  if (model.subgraphs.empty()) return {};
  return FreeMoves(model).find();
}

}  // namespace reef::partition
