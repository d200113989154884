// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "numeric/chip_requantize.h"

namespace reef::numeric {

// By its name in the attribute fused_activation_function; nullopt: the chip has no such activation.
inline std::optional<ChipActivation> chip_activation(std::string_view name) {
  if (name == "NONE") return ChipActivation::kNone;
  if (name == "RELU") return ChipActivation::kRelu;
  if (name == "RELU6") return ChipActivation::kRelu6;
  if (name == "RELU_N1_TO_1") return ChipActivation::kReluN1To1;
  return std::nullopt;
}

}  // namespace reef::numeric
