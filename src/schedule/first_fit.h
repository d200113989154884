// SPDX-License-Identifier: Apache-2.0
// Places for things that exist during a range of steps: one after the other, each at the lowest free address.
//
// With the largest first, order and rule are those of Google's compiler: with them, addresses in its programs come out
// the same (all tensors of the MobileNet v1 family's convolutions, all scratch lines). Deterministic: ties keep the
// order given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tiled/memory.h"

namespace reef::schedule {

struct Extent {
  std::int64_t size = 0;
  std::int32_t first = 0, last = 0;        // steps, both inclusive
  std::vector<tiled::Lifetime> away = {};  // steps in between at which it takes no place
  std::int64_t area() const { return size * (last - first + 1); }
};

// In which order things are placed. Which one takes least depends on what there is.
enum class FitOrder {
  kSize,       // the largest first
  kArea,       // size times steps
  kDuration,   // what exists longest first
  kBreadth,    // what exists at the fullest step first, the largest of it before the others; then the next step
  kExecution,  // by its first step
};
inline constexpr FitOrder kFitOrders[] = {FitOrder::kSize, FitOrder::kArea, FitOrder::kDuration, FitOrder::kBreadth,
                                          FitOrder::kExecution};

// Offsets from 0, one per extent. Time grows with the square of the number of extents.
std::vector<std::int64_t> first_fit(std::span<const Extent> extents, FitOrder order = FitOrder::kSize);

}  // namespace reef::schedule
