// SPDX-License-Identifier: Apache-2.0
// Is a model well formed? The check that every reader's result passes before anything else looks at it.
//
// After an ok result: all indices are in range; every subgraph's operators are in an order in which each computed
// tensor is written before it is read; no tensor is written twice; constants have as many bytes as their shape and type
// say; shapes have no negative sizes and fewer than 2^31 elements; quantization vectors have consistent lengths and a
// valid dimension. Whether an op accepts its operands is the op's business (ops/), not checked here.
#pragma once

#include "base/status.h"
#include "ir/model.h"

namespace reef::ir {

// The first problem found, as "subgraph 0 'main', op 12 CONV_2D: input 1 is tensor 900, but there are only 412
// tensors".
Status verify(const Model& model);

}  // namespace reef::ir
