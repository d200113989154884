// SPDX-License-Identifier: Apache-2.0
#include "numeric/chip_lstm.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reef::numeric {
namespace {

constexpr float kMostState = 32767, kLeastState = -32768;
// 16 bits with zero point 16384, as the known program has it.
constexpr ChipClamp kFineClamp = {.max = 49151, .min = -16384};

}  // namespace

ChipLstmArgument chip_lstm_argument(LstmArguments kind, bool is_tanh, float output_scale, std::int32_t output_zero) {
  if (kind == LstmArguments::kGoogles) return {output_scale, output_zero};
  return {is_tanh ? 1.0f / 32 : 1.0f / 16, 128};
}

std::optional<ChipLstmStep> chip_lstm_step(float state_scale, float output_scale, std::int32_t output_zero,
                                           float cell_clip) {
  if (!std::isfinite(cell_clip)) cell_clip = 0;
  const auto add = chip_add(state_scale, 0, kLstmFineScale, 0, state_scale);
  if (!add || !std::isfinite(output_scale) || output_scale <= 0) return std::nullopt;
  ChipLstmStep step;
  step.update_multiplier = chip_product_multiplier(kLstmGateScale, kLstmCellGateScale, kLstmFineScale);
  step.update_clamp = kFineClamp;
  step.kept_multiplier = chip_product_multiplier(kLstmGateScale, state_scale, state_scale);
  step.kept_clamp = {.max = kMostState, .min = kLeastState};
  step.kept_weight = add->a_weight;
  step.update_weight = add->b_weight;
  step.state_multiplier = add->multiplier;
  step.state_clamp = step.kept_clamp;
  step.state_unit = std::max(state_scale, kLstmFineScale) /
                    static_cast<float>(state_scale >= kLstmFineScale ? add->a_weight : add->b_weight);
  step.state_limit = std::numeric_limits<float>::infinity();
  const float limit = std::trunc(cell_clip / state_scale);  // TFLite's; less than 1 is none
  if (limit > 0 && limit < kMostState) {
    step.state_clamp = {.max = limit, .min = -limit};
    step.state_limit = limit * state_scale;
  }
  step.output_multiplier = chip_product_multiplier(kLstmGateScale, kLstmFineScale, output_scale);
  step.output_clamp = chip_clamp(output_scale, output_zero, ChipActivation::kNone);
  return step;
}

}  // namespace reef::numeric
