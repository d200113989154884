// SPDX-License-Identifier: Apache-2.0
// The weighted sum of two tensors.
#pragma once

#include <cstdint>
#include <optional>

#include "numeric/chip_requantize.h"
#include "numeric/chip_tables.h"
#include "tiled/memory.h"

namespace reef::tiled {

inline constexpr std::int32_t kSumLines = 4, kSumWords = 16;

// (a_weight * a + b_weight * b + offset) * multiplier -> clamp or function -> + output_zero, of the bytes as they are.
struct WeightedSum {
  std::int32_t a_weight = 1, b_weight = 1;  // -32767..32767
  std::int32_t offset = 0;
  float multiplier = 1;
  numeric::ChipClamp clamp;                       // not used with a function, which has limits of its own
  std::optional<numeric::ChipFunction> function;  // by activation table
  std::int32_t output_zero = 0;
};

// One instruction walks through both operands at a fixed distance: they must lie in memory in the same way, the result
// need not. It may be in the place of an operand if it lies in the same way, too.
struct Sum : WeightedSum {
  std::int32_t a = 0, b = 0, output = 0;  // TiledProgram::tensors
  std::int32_t words = kNowhere;          // TiledProgram::narrow: weights in the making
  std::int32_t lines = kNowhere;          // TiledProgram::wide: weights
};

}  // namespace reef::tiled
