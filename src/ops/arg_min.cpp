// SPDX-License-Identifier: Apache-2.0
// ARG_MIN: index of the smallest element along an axis; the first of equal ones.
//
// Releases differ on NaN: in 2.9 one that comes first is kept, in current ones it gives way to any number.
#include "ir/op.h"
#include "ops/arg_min_max.h"

namespace reef::ops {

constinit const OpDef arg_min_op =
    define({.name = name_of(Op::ARG_MIN),
            .summary = "Finds the index of the smallest element along an axis.",
            .inputs = {2, 2},
            .attributes = kArgMinMaxAttributes,
            .types = kArgMinMaxTypes,
            .infer = infer_arg_min_max,
            .prepare = [](PrepareContext& ctx) { return prepare_arg_min_max(ctx, false); },
            .chip = {.instead = "End the model with the values and take the index on the CPU."}});

}  // namespace reef::ops
