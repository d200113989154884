// SPDX-License-Identifier: Apache-2.0
// Which parameters stay on the chip when several programs share its memory, and which are sent with every inference.
//
// Tiles have 2080 lines of wide memory each. A program takes some at their end as scratch; below lie parameters. The
// lines of 64 output channels lie together in one tile; those of a fully connected layer in the tile that computes with
// them, while there is room, and never in several. A layer may be cached in part.
//
// How it is known: lines and tiles of 58 compiled files, of which two stream a layer whose lines do not fit into one
// tile, and one keeps a layer elsewhere when its tile is full; logs that leave no byte of the cache although something
// is streamed. Not known: in which order Google's compiler picks among the layers of one network when not all fit;
// taken to be the order of execution.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "chip/machine.h"
#include "ops/chip_work.h"

namespace reef::partition {

enum class CachePolicy : std::uint8_t {
  // Google's: model by model as they are given, each gets what the ones before left, layer by layer.
  kInOrder,
  // The smallest predicted sum of all models' times.
  kLeastTime,
};

struct CacheLayer {
  std::int64_t bytes = 0;                           // to send where it is not cached
  std::int64_t lines = 0;                           // to hold where it is
  std::int64_t group_lines = 0;                     // that lie in one tile; 0: any number
  bool stays_in_tiles = false;                      // group i in tile i, if there is room
  std::int64_t hidden_bytes = 0;                    // so many can be sent while the chip computes, at no cost
  double us_per_byte = 0;                           // of the others
  static CacheLayer of(const ops::ChipWork& work);  // without the last two
};

struct CacheModel {
  std::vector<CacheLayer> layers;  // in the order of execution
  std::int64_t scratch_lines = 0;  // of every tile
};

struct CacheShare {
  std::vector<std::int64_t> cached_bytes;  // of each layer
  std::int64_t lines = 0;                  // that it holds, all tiles together
  std::int64_t lines_left = 0;             // behind it: to the next model (kInOrder), or to nobody
  std::int64_t streamed_bytes = 0;
};

// One share for each model. `line_limit`: at most so many lines in all; negative: what there is.
std::vector<CacheShare> share_cache(std::span<const CacheModel> models, CachePolicy policy,
                                    std::int64_t line_limit = -1);

}  // namespace reef::partition
