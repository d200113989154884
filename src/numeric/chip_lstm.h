// SPDX-License-Identifier: Apache-2.0
// The numbers with which the Edge TPU computes one time step of an LSTM.
//
//   gate     W x + b and R h, each rounded to 8 bits (ChipLstmArgument); their sum through a table
//            (input, forget, output: logistic in 1/255; cell: tanh in 1/127.5)
//   update   i g, 16 bits in units of 1/16383.5
//   kept     f c, 16 bits in units of the state c
//   c'       kept_weight * kept + update_weight * update, weights as in ADD; rounded to 16 bits for the next step
//   h'       o tanh(c'), where tanh takes the unrounded sum and gives 16 bits in units of 1/16383.5
//
// How it is known: the one program there is (keras_lstm_mnist_ptq); the chip reference with these numbers gives what
// that program gives on the virtual device, for every input tried. Not seen there, and our own: units of arguments
// (LstmArguments::kWide), a state whose scale is not larger than 1/16383.5 (weights change places, as in ADD), and
// limits of the state (TFLite's: it is cut before tanh and before it is kept).
#pragma once

#include <cstdint>
#include <optional>

#include "numeric/chip_requantize.h"

namespace reef::numeric {

inline constexpr float kLstmGateScale = 1.0f / 255;         // of i, f and o, whose zero point is 0
inline constexpr float kLstmCellGateScale = 1.0f / 127.5f;  // of g
inline constexpr std::int32_t kLstmCellGateZero = 128;
inline constexpr float kLstmFineScale = 1.0f / 16383.5f;  // of i g and of tanh(c')

// In which units W x + b and R h are held.
enum class LstmArguments : std::uint8_t {
  kGoogles,  // of h, as Google's program has them: both saturate near -1 and 1, where the functions are far from flat
  // Reef's: from -8 to 8 where the logistic function follows, from -4 to 4 where tanh does. What is cut off of one
  // argument changes the function by 1/2981 and 1/1491 at most, rounding one by 2 of the function's own steps (at 0,
  // where it is steepest).
  kWide,
};
struct ChipLstmArgument {
  float unit = 0;
  std::int32_t zero = 0;  // the chip's (0..255)
};
ChipLstmArgument chip_lstm_argument(LstmArguments kind, bool is_tanh, float output_scale, std::int32_t output_zero);

struct ChipLstmStep {
  // All limits are relative to zero points.
  float update_multiplier = 0;
  ChipClamp update_clamp;
  float kept_multiplier = 0;
  ChipClamp kept_clamp;
  std::int32_t kept_weight = 0, update_weight = 0;  // 0..32767
  float state_multiplier = 0;                       // of their sum
  ChipClamp state_clamp;
  float state_unit = 0;   // what 1 is in the sum
  float state_limit = 0;  // of tanh's argument; infinite where the state has none
  float output_multiplier = 0;
  ChipClamp output_clamp;
};

// `output_zero` is the chip's (0..255). `cell_clip`: 0 or less: none. Nullopt: a scale is not a positive finite number.
std::optional<ChipLstmStep> chip_lstm_step(float state_scale, float output_scale, std::int32_t output_zero,
                                           float cell_clip);

}  // namespace reef::numeric
