// SPDX-License-Identifier: Apache-2.0
// SUB: element-wise difference with broadcasting and a fused activation. The arithmetic is in add_sub.cpp.
#include "ops/add_sub.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSubAttributes[] = {
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1, applied to the difference"},
    {"pot_scale_int16", "int16 with power-of-two scales: shift one input instead of rescaling both"}};

Result<Kernel> sub_prepare(PrepareContext& ctx) { return prepare_sum(ctx, SumSign::kMinus); }

}  // namespace

constinit const OpDef sub_op = define({.name = name_of(Op::SUB),
                                       .summary = "Element-wise difference, with broadcasting.",
                                       .attributes = kSubAttributes,
                                       .types = "float32; int8; uint8; int16; int32; int64",
                                       .form = Form::kBinary,
                                       .traits = trait_set({Trait::kTakesActivation, Trait::kBroadcasts}),
                                       .prepare = sub_prepare,
                                       .chip = {.first_runtime = 10}});

}  // namespace reef::ops
