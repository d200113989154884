// SPDX-License-Identifier: Apache-2.0
// LESS: Whether elements of the first input are less, with broadcasting. The arithmetic is in comparison.h.
#include <functional>

#include "ops/comparison.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef less_op = define({.name = name_of(Op::LESS),
                                        .summary = "Whether elements of the first input are less, with broadcasting.",
                                        .types = "float32; int8; uint8; int16; int32; int64",
                                        .form = Form::kBinary,
                                        .prepare = prepare_ordering<std::less<>>,
                                        .chip = {.instead = "Compare on the CPU behind the model."}});

}  // namespace reef::ops
