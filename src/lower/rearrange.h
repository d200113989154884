// SPDX-License-Identifier: Apache-2.0
// Any movement of elements: concatenation, slices, padding, transposition, reshaping, changes of layout.
//
// Problem: a tensor on the chip is spread over 16 memories, in words of 4 bytes; an operator may want any element of it
// anywhere. Approach: nothing is derived from the operator but a function that says for each element of the result
// which element of which operand it is. Where that lies follows from how tensors are cut. All words that a tile is to
// own are looked at one by one:
//   all of it is one whole word of another tile       the ring brings it directly to its place
//   some of it is on other tiles                      the ring brings these words to a buffer of this tile
//   then: whole words, bytes in equal steps, or several such pieces are copied (tiled/local_copies.h)
// The long lists that come of it are turned into few nests of loops (copy_runs.h), which any regular movement has, and
// tiles whose copies are the same share their instructions.
//
// What is not guaranteed: that it is fast. Movement between neighbours over the mesh would be cheaper than over the
// ring; readers that only need neighbours' pixels say so with windows, and find them in the halo then.
// The time it takes is linear in the number of elements (some 50 ns for each).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lower/builder.h"

namespace reef::lower {

struct ElementSource {
  std::int32_t operand = kZeroPoint;  // in the list of operands
  std::int64_t element = 0;           // of that operand, in its own order
  std::int64_t run = 1;               // elements from this one on that follow each other there, too; perhaps more do
  static constexpr std::int32_t kZeroPoint = -1;
  static constexpr std::int32_t kInPlace = -2;  // it is there already
};
using ElementMap = std::function<ElementSource(std::int64_t element)>;

struct Rearrangement {
  // TiledProgram::tensors; windows only say which halo is wanted to be there.
  std::vector<Read> operands;
  std::int32_t output = -1;  // TiledProgram::tensors
  ElementMap source_of;      // must stay within the operands
  // Copies change from the operands' quantization to the output's (all operands have the same); only for maps under
  // which words stay words.
  bool requantizes = false;
};

// Adds the steps and gives the output. Operands and output have the same quantization unless it requantizes.
std::int32_t add_rearrangement(Builder& builder, std::int32_t op, Rearrangement what);

}  // namespace reef::lower
