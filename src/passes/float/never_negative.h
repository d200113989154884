// SPDX-License-Identifier: Apache-2.0
// Which tensors provably hold no negative numbers: what a ReLU gives, and what keeps that true on the way.
#pragma once

#include "passes/pass.h"

namespace reef::passes {

// True: no element of the float32 tensor is below zero, whatever the inputs of the model are (NaN aside). False: that
// is not known.
bool is_never_negative(const Graph& graph, TensorId tensor);

}  // namespace reef::passes
