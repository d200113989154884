// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D: the mean of each window, channel by channel; padding is left out of sum and count.
//
// Integer averages round halves away from zero. Input and output must be quantized alike, which TFLite takes for
// granted and so do we.
#include "ir/op.h"
#include "ops/chip_rules.h"
#include "ops/pool.h"

namespace reef::ops {
namespace {

Result<Kernel> average_pool_2d_prepare(PrepareContext& ctx) {
  return prepare_pool(ctx, []<typename T>(const auto&... arguments) { kernels::average_pool<T>(arguments...); });
}

constexpr ChipRule kAveragePool2dChipRules[] = {chip::kNoFusedActivation};

}  // namespace

constinit const OpDef average_pool_2d_op =
    define({.name = name_of(Op::AVERAGE_POOL_2D),
            .summary = "Averages the pixels of a window, channel by channel.",
            .attributes = kPoolAttributes,
            .types = kPoolTypes,
            .traits = trait_set(
                {Trait::kTakesActivation, Trait::kPerImage, Trait::kKeepsNonNegative, Trait::kScalesByChannel}),
            .infer = infer_pool,
            .prepare = average_pool_2d_prepare,
            .chip = {.first_runtime = 10, .rules = kAveragePool2dChipRules}});

}  // namespace reef::ops
