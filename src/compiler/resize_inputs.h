// SPDX-License-Identifier: Apache-2.0
// Other sizes for a TFLite model's inputs, with the sizes of all that is computed from them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::compiler {

using InputShapes = std::map<std::string, std::vector<std::int64_t>>;  // by name; "" is the only input

// Fails where an operator does not take the new sizes, or gives sizes that only a run would tell.
Status resize_inputs(ir::Model& model, const InputShapes& shapes);

}  // namespace reef::compiler
