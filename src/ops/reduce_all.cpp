// SPDX-License-Identifier: Apache-2.0
// REDUCE_ALL: whether all elements along the given axes are true.
#include "ir/op.h"
#include "ops/reduce.h"

namespace reef::ops {

constinit const OpDef reduce_all_op = define({.name = name_of(Op::REDUCE_ALL),
                                              .summary = "Whether all elements along axes are true.",
                                              .attributes = kReduceAttributes,
                                              .types = "bool",
                                              .form = Form::kReduction,
                                              .prepare = prepare_on_bools<AllFunction>,
                                              .chip = {.instead = "Keep logic out of the network."}});

}  // namespace reef::ops
