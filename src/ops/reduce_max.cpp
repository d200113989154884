// SPDX-License-Identifier: Apache-2.0
// REDUCE_MAX: the largest elements along the given axes.
//
// Input and output must be quantized alike. NaN is never the result, except where everything is reduced to one element
// and the first input is NaN: TFLite's kernel starts from it then.
#include "ir/op.h"
#include "ops/chip_rules.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

constexpr ChipRule kReduceMaxChipRules[] = {chip::kNoReductionOfBatch};

}  // namespace

constinit const OpDef reduce_max_op =
    define({.name = name_of(Op::REDUCE_MAX),
            .summary = "Takes the largest elements along axes.",
            .attributes = kReduceAttributes,
            .types = "float32; int8; uint8; int16; int32; int64; bool",
            .form = Form::kReduction,
            .traits = trait_set({Trait::kTakesLargest}),
            .prepare = prepare_extreme<MaxFunction, AnyFunction>,
            .chip = {.first_runtime = 14, .rules = kReduceMaxChipRules, .parameters = input_set({1})}});

}  // namespace reef::ops
