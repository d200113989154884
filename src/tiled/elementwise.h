// SPDX-License-Identifier: Apache-2.0
// Every byte of a tensor becomes one byte of another: copies, other scales, activation functions.
#pragma once

#include <cstdint>
#include <optional>

#include "numeric/chip_requantize.h"
#include "numeric/chip_tables.h"
#include "tiled/memory.h"

namespace reef::tiled {

// The line of parameters that takes a pixel's word apart, one channel per cell. It is made by the first step of a
// program that uses it, from four words of narrow memory, and stays until the last.
inline constexpr std::int32_t kIdentityLineWords = 4;
struct Identity {
  std::int32_t line = kNowhere;   // TiledProgram::wide
  std::int32_t words = kNowhere;  // TiledProgram::narrow, of the step that makes the line; kNowhere: it is there
};

// (x - input_zero + bias) * multiplier -> clamp -> function -> + output_zero. Both tensors have the same elements on
// the same tiles; where they lie in a tile may differ.
//
// An input of fewer elements is repeated: one pixel (which all tiles of the output must have) for all pixels, or one
// channel for all channels of its pixel.
struct Elementwise {
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors
  std::int32_t input_zero = 0, output_zero = 0;
  std::int32_t bias = 0;
  float multiplier = 1;
  numeric::ChipClamp clamp;                       // not used with a function, which has limits of its own
  std::optional<numeric::ChipFunction> function;  // by activation table
  Identity identity;
  // The input has one channel, the output several: parameters that give all cells the first byte.
  bool repeats_channel = false;
  std::int32_t repeater_words = kNowhere;  // TiledProgram::narrow
  std::int32_t repeater = kNowhere;        // TiledProgram::wide

  // Constants per channel, instead of `multiplier` and besides `bias`: lines for each word of channels (multipliers
  // first), kept by the tiles that use them. Not for images, whose tiles have all channels.
  bool has_multipliers = false, has_biases = false;
  std::int32_t constants = kNowhere;  // TiledProgram::parameters, a part for each tile
  int constant_lines() const { return int{has_multipliers} + int{has_biases}; }
};

}  // namespace reef::tiled
