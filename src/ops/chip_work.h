// SPDX-License-Identifier: Apache-2.0
// The cost of one execution of an op on the Edge TPU, from shapes alone. All figures are estimates.
//
// A step of a tensor unit takes a cycle; how many steps an op takes on the busiest tile follows from how Google's
// compiler maps it: maps are cut over the 4 x 4 tiles, vectors into runs of 64 values, convolutions compute 64 channels
// at a time from 4 inputs each, everything else 4 results. A convolution's parameters travel over the ring to every
// tile, those of a fully connected layer lie in the tile that uses them.
//
// How it is known: the formulas were read off the simulated time of compiled files, operator by operator
// (docs/performance.md, "Predicted latency"); each function says where it had no file to go by.
#pragma once

#include <cstdint>

#include "ops/op_context.h"

namespace reef::ops {

struct ChipWork {
  double tensor_cycles = 0;  // of the busiest tile's arithmetic unit
  double move_cycles = 0;    // of parameters on the ring, relayout and halos: what does not overlap with it
  // The map does not fit into the tiles' memories at once: it is computed in so many parts, and what parameters are not
  // cached are sent for each.
  int passes = 1;

  std::int64_t parameter_bytes = 0;  // in the package: padded, with biases and scales
  std::int64_t parameter_lines = 0;  // of wide memory (256 bytes), all tiles together, where they are cached
  std::int64_t group_lines = 0;      // so many of them lie in one tile: those of 64 output channels; 0: any number
  bool stays_in_tiles = false;       // in the tile that computes with them, if it has room: group i in tile i
  std::int64_t always_streamed_bytes = 0;  // constants that the compiler never caches
  std::int64_t scratch_lines = 0;          // of every tile's wide memory, taken from the room for parameters
  std::int64_t instruction_bytes = 0;      // sent with every inference
};

// Any op: what the chip does not have is charged for copying its output. Shapes may be unknown or absurd, then the work
// is 0. The op's arity must be within its definition's bounds.
ChipWork chip_work(const OpContext& ctx);

}  // namespace reef::ops
