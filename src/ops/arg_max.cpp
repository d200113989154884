// SPDX-License-Identifier: Apache-2.0
// ARG_MAX: index of the largest element along an axis; the first of equal ones.
//
// NaN is chosen only where there is nothing else, as in TFLite since 2.20; before that a leading NaN was kept.
#include "ops/arg_min_max.h"

namespace reef::ops {
namespace {

Result<Kernel> prepare(PrepareContext& ctx) { return prepare_arg_min_max(ctx, true); }

}  // namespace

extern const OpDef arg_max_op;
constinit const OpDef arg_max_op = define({.name = "ARG_MAX",
                                           .summary = "Finds the index of the largest element along an axis.",
                                           .inputs = {2, 2},
                                           .attributes = kArgMinMaxAttributes,
                                           .types = kArgMinMaxTypes,
                                           .infer = infer_arg_min_max,
                                           .prepare = prepare});

}  // namespace reef::ops
