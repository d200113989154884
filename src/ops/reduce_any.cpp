// SPDX-License-Identifier: Apache-2.0
// REDUCE_ANY: whether any element along the given axes is true.
#include "ir/op.h"
#include "ops/reduce.h"

namespace reef::ops {

constinit const OpDef reduce_any_op = define({.name = name_of(Op::REDUCE_ANY),
                                              .summary = "Whether any element along axes is true.",
                                              .attributes = kReduceAttributes,
                                              .types = "bool",
                                              .form = Form::kReduction,
                                              .prepare = prepare_on_bools<AnyFunction>,
                                              .chip = {.instead = "Keep logic out of the network."}});

}  // namespace reef::ops
