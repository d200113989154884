// SPDX-License-Identifier: Apache-2.0
// NOT_EQUAL: Whether elements differ, with broadcasting. The arithmetic is in comparison.h.

#include "ops/comparison.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef not_equal_op = define({.name = name_of(Op::NOT_EQUAL),
                                             .summary = "Whether elements differ, with broadcasting.",
                                             .types = "float32; int8; uint8; int16; int32; int64; bool; string",
                                             .form = Form::kBinary,
                                             .prepare = prepare_equality<std::not_equal_to<>>,
                                             .chip = {.instead = "Compare on the CPU behind the model."}});

}  // namespace reef::ops
