// SPDX-License-Identifier: Apache-2.0
// Outputs that join parts of different ranges (boxes in pixels beside scores) have one scale for all of them. Given out
// apart, each part has its own.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"
#include "quantize/calibrate.h"

namespace reef::quantize {

// Every output that a CONCATENATION of computed tensors gives becomes its parts, in their order; the operator goes if
// nobody else reads it. Signatures follow, with names "NAME_0", "NAME_1" ... Returns sentences on what was done.
std::vector<std::string> split_outputs(ir::Model& model);

// Sentences on outputs whose parts' ranges differ so much that splitting them would help.
std::vector<std::string> mixed_outputs(const ir::Model& model, const Calibration& calibration);

}  // namespace reef::quantize
