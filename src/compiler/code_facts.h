// SPDX-License-Identifier: Apache-2.0
// Facts of generated code that determine its time, so that predictions rest on the program and not on shapes alone
// (partition/cost.h).
#pragma once

#include <cstdint>
#include <span>

#include "compiler/code_generator.h"
#include "partition/cost.h"

namespace reef::compiler {

// `code` is that of the operators `ops` of a model, ascending.
partition::PartInCode facts_of(const PartCode& code, std::span<const std::int32_t> ops);

}  // namespace reef::compiler
