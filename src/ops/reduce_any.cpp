// SPDX-License-Identifier: Apache-2.0
// REDUCE_ANY: whether any element along the given axes is true.
#include "ir/op.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"bool"};

}  // namespace

constinit const OpDef reduce_any_op = define({.name = name_of(Op::REDUCE_ANY),
                                              .summary = "Whether any element along axes is true.",
                                              .inputs = {2, 2},
                                              .attributes = kReduceAttributes,
                                              .types = kTypes,
                                              .form = Form::kReduction,
                                              .infer = infer_reduce,
                                              .prepare = prepare_on_bools<AnyFunction>,
                                              .chip = {.instead = "Keep logic out of the network."}});

}  // namespace reef::ops
