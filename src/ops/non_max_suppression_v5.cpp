// SPDX-License-Identifier: Apache-2.0
// NON_MAX_SUPPRESSION_V5: as V4; overlaps below the threshold lower the score of a box instead (Soft-NMS), where sigma
// is above 0.
#include "ops/non_max_suppression.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef non_max_suppression_v5_op =
    define({.name = name_of(Op::NON_MAX_SUPPRESSION_V5),
            .summary = "Chooses boxes by score, leaving out or lowering overlapping ones.",
            .inputs = {6, 6},
            .outputs = {3, 3},
            .types = "float32",
            .infer = infer_non_max_suppression,
            .prepare = [](PrepareContext& ctx) { return prepare_non_max_suppression(ctx, true); },
            .chip = {.instead = "Do it on the CPU behind the model."}});

}  // namespace reef::ops
