// SPDX-License-Identifier: Apache-2.0
// Where an axis of tokens goes: through operators that treat tokens one by one, from the tensor at which it begins.
//
// Followed forward only. An operator that looks at several tokens at once (a pool, keys and values of attention, a
// convolution with a window) ends the way: it needs the tokens that there were.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "passes/chip/chip_graph.h"

namespace reef::passes {

// An operand of an operator.
struct OperandOf {
  std::int32_t op = -1;
  std::size_t k = 0;
};

struct TokenRegion {
  std::int32_t tokens = 0;
  std::map<std::int32_t, int> axis;    // of every tensor that has the axis and may have more of it
  std::vector<OperandOf> cut;          // that must have the number of tokens that there were
  std::vector<OperandOf> constants;    // with an axis of tokens of their own, beside a computed operand
  std::vector<int> constant_axes;      // of each of them
  std::vector<std::int32_t> reshapes;  // and SLICEs that leave the axis whole: they say its size
  int layers = 0;                      // products with weights that are on the way
  int ends = 0;                        // cut operands, but for second operands of products
};

// From `tensor`, whose dimension `axis` are tokens, on.
TokenRegion follow_tokens(const ChipGraph& edit, std::int32_t tensor, int axis);

}  // namespace reef::passes
