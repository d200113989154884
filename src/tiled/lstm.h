// SPDX-License-Identifier: Apache-2.0
// An LSTM, time step by time step. What a step computes, and in which units: numeric/chip_lstm.h.
//
// Cells are spread over the tiles as the channels of a vector are, 64 to a tile: a tile computes all four gates of its
// cells, for which it has their weights, the whole input and the whole output of the step before. Kinds of work:
//
//   LstmLoop     time steps in a loop: W x + b, R h and everything behind. Where there are several tiles, what a pass
//                computes is brought to all of them at its end
//   LstmInputs   the input's part of the gates' arguments, W x + b, for all time steps at once: it does not depend
//                on the output
//   LstmStep     R h and everything behind it, for one time step. Where there are several tiles, what it computes is
//                brought to all of them by a step of another kind (RingCopies)
#pragma once

#include <array>
#include <cstdint>

#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "numeric/chip_lstm.h"
#include "tiled/memory.h"
#include "tiled/ring_copies.h"

namespace reef::tiled {

inline constexpr std::size_t kLstmGates = 4;
// Gates in the order in which a tile keeps them: those that the same function is applied to together. TFLite's order is
// input, forget, cell, output.
inline constexpr std::array<std::size_t, kLstmGates> kLstmGateOrder = {0, 1, 3, 2};
inline constexpr std::size_t kLstmLogisticGates = 3;

// Bytes of narrow memory, of each tile. 16-bit numbers that become parameters are spread to the form in which they
// multiply four bytes at a time (emit/lstm.cpp).
struct LstmScratch {
  static constexpr std::int32_t kSlot = chip::kCells;                      // of a gate
  static constexpr std::int32_t kRecurrent = 0;                            // R h
  static constexpr std::int32_t kGates = kRecurrent + kSlot * kLstmGates;  // i, f, o
  static constexpr std::int32_t kCellGate = kGates + kSlot * 3;            // g, spread
  static constexpr std::int32_t kKept = kCellGate + kSlot * 4;             // f c, 16 bits
  static constexpr std::int32_t kUpdate = kKept + kSlot * 2;               // i g, 16 bits
  static constexpr std::int32_t kState = kUpdate + kSlot * 2;              // c, spread
  static constexpr std::int32_t kTanh = kState + kSlot * 8;                // tanh(c), spread
  static constexpr std::int32_t kConstants = kTanh + kSlot * 8;            // words of constant lines in the making
  static constexpr std::int32_t kBytes = kConstants + 64 * 4;
};
// Bytes of what LstmInputs leaves for one time step.
inline constexpr std::int32_t kLstmInputBytes = LstmScratch::kSlot * static_cast<std::int32_t>(kLstmGates);

// Lines of wide memory.
struct LstmLines {
  // Made once: see emit/lstm.cpp.
  static constexpr std::int32_t kIdentity = 0, kSpreader = 1, kWideSpreader = 2, kStateWeights = 3;
  // Parameters of the products: a line, or two, for four cells.
  static constexpr std::int32_t kCellGate = kStateWeights + 4;
  static constexpr std::int32_t kState = kCellGate + chip::kCells / 4;
  static constexpr std::int32_t kTanh = kState + chip::kCells / 2;
  static constexpr std::int32_t kCount = kTanh + chip::kCells / 2;
};

// Fully connected layers of all gates, in the order of kLstmGateOrder, in the chunk of all: each has a header of
// multipliers and perhaps biases, then a line for every word of the vector that is multiplied.
struct LstmLayers {
  std::int32_t first_line = 0;  // of a tile's part
  std::int32_t words = 0;
  bool has_biases = false;
  darwinn::LayerRequantization constants;  // of all gates; multipliers are in the header

  std::int32_t header_lines() const { return has_biases ? 2 : 1; }
  std::int32_t gate_lines() const { return header_lines() + words; }
  std::int32_t end_line() const { return first_line + gate_lines() * static_cast<std::int32_t>(kLstmGates); }
};

// What all steps of an operator share.
struct LstmPlace {
  std::int32_t cells = 0;
  std::int32_t scratch = kNowhere;     // TiledProgram::narrow, LstmScratch::kBytes
  std::int32_t inputs = kNowhere;      // TiledProgram::narrow, kLstmInputBytes for each time step that it is for
  std::int32_t lines = kNowhere;       // TiledProgram::wide, LstmLines::kCount
  std::int32_t parameters = kNowhere;  // TiledProgram::parameters, in parts

  std::int32_t cells_of(int tile) const {
    const std::int32_t left = cells - tile * chip::kCells;
    return left < 0 ? 0 : left < chip::kCells ? left : chip::kCells;
  }
  // Four cells make a word.
  std::int32_t words_of(int tile) const { return (cells_of(tile) + 3) / 4; }
  TileMask tiles() const {
    TileMask mask = 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      if (cells_of(t) > 0) mask |= mask_of(t);
    }
    return mask;
  }
};

// What several kinds need.
struct LstmNumbers {
  std::int32_t hidden_zero = 0;
  numeric::ChipLstmArgument logistic, tanh;  // of the same zero point
  numeric::ChipLstmStep step;
};

struct LstmInputs {
  LstmPlace place;
  LstmNumbers numbers;     // for the constant lines, which it makes
  std::int32_t input = 0;  // TiledProgram::tensors: kCopies, a pixel for each time step
  std::int32_t steps = 0;
  LstmLayers layers;
};

struct LstmStep {
  LstmPlace place;
  LstmLayers layers;
  std::int32_t number = 0;        // of the time step, whose W x + b it takes
  std::int32_t hidden = 0;        // TiledProgram::tensors: kCopies; h of the step before is pixel
  std::int32_t hidden_pixel = 0;  // `hidden_pixel` of it
  std::int32_t output = 0;        // TiledProgram::tensors: where a tile writes its cells of h: kCopies, or kVector if
  std::int32_t output_pixel = 0;  // there are several tiles
  // TiledProgram::tensors, kVector, 16 bits: c as it comes in, for the first step; and as it goes out, for the last.
  std::int32_t state_before = kNowhere, state_after = kNowhere;
  LstmNumbers numbers;
};

// Instructions of a loop cannot change their addresses: x of the step is always the first of a copy that moves by a
// pixel in each pass, and the output the last of those of the loop, which move likewise.
struct LstmLoop {
  LstmPlace place;
  bool is_first = false;  // makes the constant lines
  LstmLayers of_input, recurrent;
  std::int32_t input = 0;  // TiledProgram::tensors: kCopies, a pixel for each time step
  std::int32_t first_step = 0, steps = 0;
  std::int32_t moving_input = kNowhere;       // TiledProgram::narrow: of_input.words for each of the steps
  std::int32_t hidden = 0, hidden_pixel = 0;  // before the first step, as in LstmStep
  std::int32_t output = 0;                    // TiledProgram::tensors: kCopies
  std::int32_t own = kNowhere;                // TiledProgram::tensors, kVector, where there are several tiles: a
  RingCopies gather;                          // tile's cells of h, and how they come to the loop's last output
  std::int32_t state_before = kNowhere, state_after = kNowhere;
  LstmNumbers numbers;
};

}  // namespace reef::tiled
