// SPDX-License-Identifier: Apache-2.0
// MAX_POOL_2D: the maximum of each window, channel by channel; padding is left out.
//
// Input and output must be quantized alike, which TFLite takes for granted and so do we. NaN is never the maximum.
#include "ir/op.h"
#include "ops/chip_rules.h"
#include "ops/pool.h"

namespace reef::ops {
namespace {

Result<Kernel> max_pool_2d_prepare(PrepareContext& ctx) {
  return prepare_pool(ctx, []<typename T>(const auto&... arguments) { kernels::max_pool<T>(arguments...); });
}

constexpr ChipRule kMaxPool2dChipRules[] = {chip::kNoFusedActivation};

}  // namespace

constinit const OpDef max_pool_2d_op =
    define({.name = name_of(Op::MAX_POOL_2D),
            .summary = "Takes the largest pixel of a window, channel by channel.",
            .attributes = kPoolAttributes,
            .types = kPoolTypes,
            .traits = trait_set({Trait::kTakesActivation, Trait::kPerImage, Trait::kTakesLargest,
                                 Trait::kKeepsNonNegative, Trait::kScalesByChannel}),
            .infer = infer_pool,
            .prepare = max_pool_2d_prepare,
            .chip = {.first_runtime = 10, .rules = kMaxPool2dChipRules}});

}  // namespace reef::ops
