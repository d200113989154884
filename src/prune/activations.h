// SPDX-License-Identifier: Apache-2.0
// A model made ready for least squares, and back. Activation functions that are fused into other operators are taken
// apart, because layers are fitted to the results before them; every layer gets a bias of its own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/model.h"

namespace reef::prune {

// The operator (number in the result of split_activations) that had this function fused.
struct FusedActivation {
  std::size_t op = 0;
  std::string function;
};

// Every fused RELU, RELU6 and RELU_N1_TO_1 of the first subgraph becomes an operator right behind its own.
std::vector<FusedActivation> split_activations(ir::Model& model);
// Undoes it, for a model with the same operators. Tensors that nothing uses any more are dropped.
void join_activations(ir::Model& model, const std::vector<FusedActivation>& fused);

// Gives every layer with constant weights a bias that no other operator reads: a copy, or zeros where it had none.
void own_biases(ir::Model& model);

}  // namespace reef::prune
