// SPDX-License-Identifier: Apache-2.0
// Names by which tensors can be told apart. TFLite files may give one name to several tensors, or none; an Edge TPU
// package and Google's runtime find a part's inputs and outputs by name alone.
#pragma once

#include <string_view>

#include "ir/model.h"

namespace reef::ir {

// Whether two tensors that somebody computes or hands in, of one subgraph, have the same name.
bool has_equal_names(const Model& model);

// Gives such tensors "x", "x#2", "x#3", ...: inputs and outputs of the subgraph keep their names before all others,
// then in the order of their numbers.
void name_apart(Model& model);

// "x" of "x#2"; any other name as it is.
std::string_view name_before_apart(std::string_view name);

}  // namespace reef::ir
