// SPDX-License-Identifier: Apache-2.0
// What both of Google's ways of computing SOFTMAX are put together from (spread_softmax.cpp, small_softmax.cpp).
//
// Numbers that repeat in every instruction have their place here; what an instruction is for is said where it is used.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "emit/blocks.h"
#include "isa/tensor_op.h"

namespace reef::emit {

class SoftmaxParts : protected BlockWriter {
 public:
  SoftmaxParts(Emission& to, const tiled::TiledTensor& input) : BlockWriter(to), input_(input) {}

 protected:
  using Counts = std::vector<std::pair<std::int64_t, std::int64_t>>;  // stride, steps
  static constexpr int kCells = 4;
  static constexpr float kExpLimit = -13.0380983f;

  // A nest in which the dimensions of the mask are marked as used.
  static LoopNest nest(std::int64_t base, const Counts& counts, unsigned used);

  void fence() { writer_.tile_fence(kAllUnits, 0); }
  void restart(int times = 1) {
    for (int i = 0; i < times; ++i) writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }
  void restart_only(TileCounter counter) { writer_.tile_fence(kAllUnits, counter_mask(counter)); }

  // A constant into words of narrow memory.
  void fill(isa::Opcode by, TileMask tiles, std::int64_t word, const Counts& counts, std::uint32_t value,
            bool signals = true);

  // Operands of 8 bits, or of 16; sums in the cells, or in a line of wide memory.
  enum class How { kBytes, kWideParameters, kWideInput, kWideBoth, kWideParametersToLine };
  Draft operation(isa::Opcode opcode, TileMask tiles, const std::vector<std::int64_t>& loops, How how,
                  int cells = kCells);
  static Draft& requantize(Draft& draft, float scale, float max, float min);

  // Copies of words without a change, or one word again and again (`again`).
  struct WordCopy {
    TileMask tiles = 0;
    std::int64_t words = 0;
    std::int64_t from = 0, from_size = 0, to = 0, to_size = 0;  // bytes
    std::int64_t line = 0;                                      // of parameters
    bool again = false;
  };
  void copy(const WordCopy& what);

  // 255 - maximum as a line of parameters' sums, then x - maximum, for the words of tiles that have equally many.
  struct Difference {
    std::int64_t words = 0;
    TileMask tiles = 0;
  };
  struct DifferencePlaces {
    std::int64_t input = 0, maximum = 0, maximum_size = 0, output = 0, unused = 0;  // bytes
    std::int64_t constants = 0;                                                     // word
    std::int64_t pair = 0, negated = 0;                                             // lines
  };
  void differences(const std::vector<Difference>& classes, const DifferencePlaces& at);

  // 1 / sum, from 1 / sqrt(sum), four numbers at byte `at` of tile 0; 32 bytes at `scratch` are free for it.
  void square_of_root(std::int64_t at, std::int64_t scratch, std::int64_t line, std::int64_t identity_line);

  // Moves four words that were just filled to a line, on all tiles.
  void filled_words_to_line(std::int64_t word, std::int64_t line);

  // The largest byte of a word; Draft: how a maximum is requantized.
  void maximum_of_word(std::int64_t word, std::int64_t output, std::int64_t line);
  Draft maximum(const std::vector<std::int64_t>& loops);
  // Words of the product of numerators, in lines, with 1 / sum. `loops`: of the tensor operation.
  Draft product(TileMask tiles, const std::vector<std::int64_t>& loops);

  std::int64_t total(TileCounter counter, int tile = 0) const { return writer_.total(counter, tile); }

  const tiled::TiledTensor& input_;
};

}  // namespace reef::emit
