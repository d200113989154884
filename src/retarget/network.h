// SPDX-License-Identifier: Apache-2.0
// The model's side of matching: its graph, and each tensor's quantization as the chip sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/at.h"
#include "ir/describe.h"
#include "ir/model.h"
#include "ir/uses.h"
#include "numeric/chip_requantize.h"

namespace reef::retarget {

// The chip's numbers are unsigned: an int8 tensor's zero point is 128 higher there, an int16 tensor's 32768.
struct ChipTensor {
  float scale = 1;
  std::int32_t zero_point = 0;
  friend bool operator==(const ChipTensor&, const ChipTensor&) = default;
};
// Nothing for tensors that are not 8 or 16 bits wide with one positive scale and a zero point in range.
std::optional<ChipTensor> chip_tensor(const ir::Tensor& tensor);

// The activation fused into an operator; nothing where the chip is not known to have it.
std::optional<numeric::ChipActivation> fused_activation(const ir::Operator& op);

class Network {
 public:
  // `model` must be verified and outlive this. `chip_ops`: the operators of subgraph 0 that run on the chip, ascending.
  Network(const ir::Model& model, std::vector<std::int32_t> chip_ops);

  const ir::Model& model() const { return *model_; }
  const ir::Subgraph& graph() const { return model_->subgraphs[0]; }
  const ir::Operator& op(std::int32_t index) const { return graph().operators[at(index)]; }
  const ir::Tensor& tensor(std::int32_t index) const { return graph().tensors[at(index)]; }
  bool is_constant(std::int32_t index) const { return !ir::constant_data(*model_, tensor(index)).empty(); }
  const std::vector<std::int32_t>& chip_ops() const { return chip_ops_; }
  std::optional<ChipTensor> chip(std::int32_t index) const { return chip_tensor(tensor(index)); }
  std::string describe(std::int32_t op) const { return ir::describe_op(graph(), op); }

  // Operators that only move bytes: their output is their input, wherever it lies.
  static bool only_moves(const ir::Operator& op);
  // The operator only moves bytes, and all its tensors have one quantization.
  bool is_free(std::int32_t op) const;
  // The tensors that tensor `index` is without any arithmetic: itself, and what operators that only move bytes make of
  // it without changing its quantization.
  const std::set<std::int32_t>& is_also(std::int32_t index) const { return also_[at(index)]; }
  // Whether channel `channel` of `whole` may come from tensor `part` through operators that only move bytes. Told
  // exactly where tensors are joined or cut along their channels; other moves are taken to be possible.
  bool may_supply(std::int32_t part, std::int32_t whole, std::int64_t channel) const;
  // A PAD operator made it, possibly with other moves behind.
  bool is_padded(std::int32_t tensor) const;
  // All of `tensors`, of which there is at least one, are parts of `whole`.
  bool all_are(const std::vector<std::int32_t>& tensors, std::int32_t whole) const;

 private:
  bool same_quantization(std::int32_t a, std::int32_t b) const;

  const ir::Model* model_;
  std::vector<std::int32_t> chip_ops_;
  std::vector<std::set<std::int32_t>> also_;
  ir::Uses uses_;  // of the operators on the chip
};

}  // namespace reef::retarget
