// SPDX-License-Identifier: Apache-2.0
#include "partition/search.h"

namespace reef::partition {

Result<SearchResult> longest_that_compiles(std::int32_t op_count, std::int32_t step,
                                           const std::function<Result<bool>(std::int32_t)>& compiles) {
  REEF_REQUIRE(step >= 1, "-k {}: at least one operator is dropped per step", step);
  SearchResult result;
  if (op_count <= 0) return result;
  const auto length = [&](std::int32_t dropped) { return op_count - dropped * step; };
  const std::int32_t most = (op_count - 1) / step;  // steps that can be dropped while an operator is left
  std::int32_t fails = -1;                          // steps dropped that are known not to be enough
  std::int32_t works = most + 1;                    // nothing left: trivially compiles
  // Most models compile as they are, so that is tried first; then the middle of what is left.
  for (std::int32_t attempt = 0; fails + 1 < works; attempt = fails + (works - fails) / 2) {
    ++result.attempts;
    REEF_ASSIGN_OR_RETURN(const bool good, compiles(length(attempt)));
    (good ? works : fails) = attempt;
  }
  result.ops = works > most ? 0 : length(works);
  return result;
}

}  // namespace reef::partition
