// SPDX-License-Identifier: Apache-2.0
// How tensors lie in the tiles, and what the work of ops is put together from (chip_work.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "chip/machine.h"
#include "ops/chip_work.h"

namespace reef::ops {

inline double divide_up(std::int64_t value, std::int64_t by) { return static_cast<double>((value + by - 1) / by); }
inline double ring_cycles(double bytes) { return bytes / chip::kRingBytesPerCycle; }
inline std::int64_t row_bytes(double rows) { return static_cast<std::int64_t>(rows) * chip::kInstructionRowBytes; }

// A tensor as maps: the three innermost dimensions, the outer ones multiplied.
struct Maps {
  std::int64_t batch = 1, height = 1, width = 1, channels = 1;
  bool is_vector() const { return height == 1 && width == 1; }
  double pixels() const {
    return static_cast<double>(batch) * static_cast<double>(height) * static_cast<double>(width);
  }
  // Pixels of the tile that has most of them.
  double pixels_per_tile() const {
    return static_cast<double>(batch) * divide_up(height, chip::kTileRows) * divide_up(width, chip::kTileColumns);
  }
  // Groups of 4 channels of one pixel.
  double words() const { return divide_up(channels, chip::kLanesPerCell); }
  // Words that the busiest tile computes: vectors are cut into runs of 64 values.
  double words_per_tile() const {
    if (!is_vector()) return pixels_per_tile() * words();
    const double runs = divide_up(channels, chip::kCells) * static_cast<double>(batch);
    return std::max(1.0, divide_up(static_cast<std::int64_t>(runs), chip::kTiles)) *
           divide_up(std::min<std::int64_t>(channels, chip::kCells), chip::kLanesPerCell);
  }
  // Kinds of tiles, by the size of what they have.
  double tile_kinds() const {
    return (height % chip::kTileRows != 0 ? 2 : 1) * (width % chip::kTileColumns != 0 ? 2 : 1);
  }
};
// Tokens as pixels: as square an image as they can be, as Reef's code has it.
Maps token_maps(std::int64_t tokens);
inline double tokens_of_busiest_tile(std::int64_t tokens) { return token_maps(tokens).pixels_per_tile(); }
// The shape must be usable and have elements.
Maps maps_of(const Tensor& tensor);

// Cycles between the last step of one op and the first of the next that nothing hides; medians over compiled files.
inline constexpr double kConvolutionGap = 150, kDepthwiseGap = 450, kVectorGap = 80, kElementGap = 10;

// Instructions, in rows of 16 bytes: of an op on maps that split evenly over the tiles, and more for every further kind
// of tile (those with a row or a column less have instructions of their own). From compiled files.
struct Rows {
  double first, further;
};

ChipWork work_of(const OpContext& ctx, double tensor_cycles, double move_cycles, Rows rows);
// Element by element. `steps`: for 4 results.
ChipWork elements_work(const OpContext& ctx, double steps, Rows rows);
// All outputs copied.
ChipWork copy_work(const OpContext& ctx);

}  // namespace reef::ops
