// SPDX-License-Identifier: Apache-2.0
// LESS_EQUAL: Whether elements of the first input are less or equal, with broadcasting. The arithmetic is in
// comparison.h.

#include "ops/comparison.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef less_equal_op =
    define({.name = name_of(Op::LESS_EQUAL),
            .summary = "Whether elements of the first input are less or equal, with broadcasting.",
            .types = "float32; int8; uint8; int16; int32; int64",
            .form = Form::kBinary,
            .prepare = prepare_ordering<std::less_equal<>>,
            .chip = {.instead = "Compare on the CPU behind the model."}});

}  // namespace reef::ops
