// SPDX-License-Identifier: Apache-2.0
// REDUCE_MIN: the smallest elements along the given axes.
//
// Input and output must be quantized alike. NaN is never the result, except where everything is reduced to one element
// and the first input is NaN: TFLite's kernel starts from it then.
#include "ir/op.h"
#include "ops/chip_rules.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

constexpr ChipRule kReduceMinChipRules[] = {chip::kNoReductionOfBatch};

}  // namespace

constinit const OpDef reduce_min_op =
    define({.name = name_of(Op::REDUCE_MIN),
            .summary = "Takes the smallest elements along axes.",
            .attributes = kReduceAttributes,
            .types = "float32; int8; uint8; int16; int32; int64; bool",
            .form = Form::kReduction,
            .prepare = prepare_extreme<MinFunction, AllFunction>,
            .chip = {.first_runtime = 14, .rules = kReduceMinChipRules, .parameters = input_set({1})}});

}  // namespace reef::ops
