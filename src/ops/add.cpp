// SPDX-License-Identifier: Apache-2.0
// ADD: element-wise sum with broadcasting and a fused activation. The arithmetic is in add_sub.cpp.
#include "ops/add_sub.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kAddAttributes[] = {
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1, applied to the sum"},
    {"pot_scale_int16", "int16 with power-of-two scales: shift one input instead of rescaling both"}};

Result<Kernel> add_prepare(PrepareContext& ctx) { return prepare_sum(ctx, SumSign::kPlus); }

}  // namespace

constinit const OpDef add_op =
    define({.name = name_of(Op::ADD),
            .summary = "Element-wise sum, with broadcasting.",
            .attributes = kAddAttributes,
            .types = "float32; int8; uint8; int16 (quantized, or plain); int32; int64",
            .form = Form::kBinary,
            .traits = trait_set({Trait::kTakesActivation, Trait::kBroadcasts, Trait::kKeepsNonNegative}),
            .prepare = add_prepare,
            .chip = {.first_runtime = 10}});

}  // namespace reef::ops
