// SPDX-License-Identifier: Apache-2.0
// EQUAL: Whether elements are equal, with broadcasting. The arithmetic is in comparison.h.
#include <functional>

#include "ops/comparison.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef equal_op = define({.name = name_of(Op::EQUAL),
                                         .summary = "Whether elements are equal, with broadcasting.",
                                         .types = "float32; int8; uint8; int16; int32; int64; bool; string",
                                         .form = Form::kBinary,
                                         .prepare = prepare_equality<std::equal_to<>>,
                                         .chip = {.instead = "Compare on the CPU behind the model."}});

}  // namespace reef::ops
