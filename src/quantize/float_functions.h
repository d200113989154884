// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor, element by element, that exporters write as several operators (Mish, softplus, sin^2,
// powers).
//
// Where TFLite has no 8-bit kernel for one of these operators, it stays float, and the tensor is rounded in front of it
// and behind it. With its neighbours in integers the function would be rounded once for each of them. As a whole in
// float it is rounded once, which is exact to half a step, and an Edge TPU's compiler sees a function of 256 values,
// which it can replace (rewrite `unary`): neighbours in integers would make it a staircase that no few operators
// follow.
#pragma once

#include <vector>

#include "ir/model.h"
#include "quantize/op_rules.h"

namespace reef::quantize {

// Turns operators into float ones that belong to a function with an operator for which there is no integer kernel, or
// (where the function has three operators or more) that Google's compilers leave on the CPU.
void widen_float_functions(const ir::Model& model, std::vector<Decision>& decisions);

}  // namespace reef::quantize
