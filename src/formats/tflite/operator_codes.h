// SPDX-License-Identifier: Apache-2.0
// Codes and versions of built-in operators, for stages that make operators: a runtime goes by these, Reef by the name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ir/op.h"

namespace reef::tflite {

// Code of a built-in operator by name; -1: none of that name.
std::int32_t builtin_code(OpName type);
// The version that TFLite gives an operator of this kind with operands of this type (8-bit ones of rank up to 4).
std::int32_t operator_version(OpName type, ir::DataType operands);
// A built-in operator with the code and version that a runtime expects.
ir::Operator builtin_operator(OpName type, std::string_view options_type, ir::Attributes attributes,
                              std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
                              ir::DataType operands);

}  // namespace reef::tflite
