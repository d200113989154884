// SPDX-License-Identifier: Apache-2.0
// The longest beginning of a model that compiles, found by bisection (edgetpu_compiler -d -k).
//
// Google's search drops `step` operators and compiles again, from the end to the beginning: hundreds of attempts on a
// large model. This one halves what is left: about log2(operators / step) attempts. It assumes that if a beginning
// compiles, a shorter one does; where that is not so, the result still compiles, but may not be the longest.
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"

namespace reef::partition {

struct SearchResult {
  std::int32_t ops = 0;  // 0: nothing compiles
  int attempts = 0;
};

// `compiles(n)`: whether the first n of `op_count` operators compile; an error ends the search. Lengths tried are
// op_count, op_count - step, op_count - 2 * step ... in an order of its own. `step` must be positive.
Result<SearchResult> longest_that_compiles(std::int32_t op_count, std::int32_t step,
                                           const std::function<Result<bool>(std::int32_t)>& compiles);

}  // namespace reef::partition
