// SPDX-License-Identifier: Apache-2.0
// NON_MAX_SUPPRESSION_V4: the boxes with the highest scores that do not overlap each other.
#include "ops/non_max_suppression.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef non_max_suppression_v4_op =
    define({.name = name_of(Op::NON_MAX_SUPPRESSION_V4),
            .summary = "Chooses boxes by score, leaving out overlapping ones.",
            .inputs = {5, 5},
            .outputs = {2, 2},
            .types = "float32",
            .infer = infer_non_max_suppression,
            .prepare = [](PrepareContext& ctx) { return prepare_non_max_suppression(ctx, false); },
            .chip = {.instead = "Do it on the CPU behind the model."}});

}  // namespace reef::ops
