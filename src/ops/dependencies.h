// SPDX-License-Identifier: Apache-2.0
// Who must run before whom: the graph of a subgraph's operators, by computed tensors and by what they keep between
// invocations.
//
// Operators on one variable (a state that an LSTM changes in place, a resource that is read and assigned) keep the
// order of the file. Where it cannot be told which variable an operator touches (control flow, handles that are
// computed), it keeps its place among all that touch any. Operators that this version does not know are taken for
// functions of their operands, unless one of these is a handle.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/model.h"
#include "ir/uses.h"

namespace reef::ops {

class Dependencies {
 public:
  // `model` must be verified and outlive this. Subgraph 0.
  explicit Dependencies(const ir::Model& model);

  std::int32_t op_count() const { return static_cast<std::int32_t>(predecessors_.size()); }
  // Operators that must have run before this one; ascending, all below it.
  std::span<const std::int32_t> predecessors(std::int32_t op) const { return predecessors_[index(op)]; }
  // Operators that must run after it; ascending, all above it.
  std::span<const std::int32_t> successors(std::int32_t op) const { return successors_[index(op)]; }
  // Operator that computes a tensor; -1: an input, a constant or a variable.
  std::int32_t producer(std::int32_t tensor) const { return uses_.producer(tensor); }
  // Neither a constant nor absent: comes from somewhere at run time.
  bool is_computed(std::int32_t tensor) const { return tensor >= 0 && !is_constant_[index(tensor)]; }
  const ir::Subgraph& graph() const { return *graph_; }

  // Two operators that must run in one interpreter, the earlier first: they touch one variable, or one gives the other
  // the handle of something that lives beside the graph (variables, tables).
  struct Tie {
    std::int32_t earlier = 0, later = 0;
    friend bool operator==(const Tie&, const Tie&) = default;
  };
  const std::vector<Tie>& ties() const { return ties_; }

  // Tensors that cross the border of a set of operators, ascending: the order in which Google's compiler names a custom
  // op's operands. Inputs are what is read inside and is neither constant nor computed there, states included; a result
  // is an output if an operator outside reads it or the model returns it.
  struct Border {
    std::vector<std::int32_t> inputs, outputs;
  };
  Border border(std::span<const std::int32_t> ops) const;

 private:
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  void order_states();
  bool reads(const ir::Operator& op, bool (*predicate)(const ir::Tensor&)) const;
  bool touches_shared(const ir::Operator& op) const;
  template <typename Takes, typename Use>
  void for_each_pair(const Takes& takes, const Use& use) const;
  std::string variable_of(const ir::Operator& op) const;

  const ir::Subgraph* graph_;
  std::vector<std::vector<std::int32_t>> predecessors_, successors_;
  ir::Uses uses_;
  // True for tensors that the graph returns. Signatures may name others (a converter that appended QUANTIZE to the
  // outputs left them as they were), which no interpreter reads behind an Edge TPU's part.
  std::vector<bool> is_output_;
  std::vector<bool> is_constant_;
  std::vector<Tie> ties_;
  bool subgraphs_have_handles_ = false;
};

}  // namespace reef::ops
