// SPDX-License-Identifier: Apache-2.0
// Codes and versions of built-in operators, for stages that make operators: a runtime goes by these, Reef by the name.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/type.h"

namespace reef::tflite {

// Code of a built-in operator by name; -1: none of that name.
std::int32_t builtin_code(std::string_view type);
// The version that TFLite gives an operator of this kind with operands of this type (8-bit ones of rank up to 4).
std::int32_t operator_version(std::string_view type, ir::DataType operands);

}  // namespace reef::tflite
