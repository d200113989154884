// SPDX-License-Identifier: Apache-2.0
// Places for things that exist during a range of steps: the largest first, each at the lowest free address.
//
// The order and the rule are those of Google's compiler: with them, addresses in its programs come out the same (all
// tensors of the MobileNet v1 family's convolutions, all scratch lines). Deterministic: ties keep the order given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reef::schedule {

struct Extent {
  std::int64_t size = 0;
  std::int32_t first = 0, last = 0;  // steps, both inclusive
  std::int64_t area() const { return size * (last - first + 1); }
};
// Which are placed first.
enum class Largest : std::uint8_t { kBySize, kByArea };

// Offsets from 0, one per extent. Time grows with the square of the number of extents that exist together.
std::vector<std::int64_t> first_fit(std::span<const Extent> extents, Largest largest = Largest::kBySize);

}  // namespace reef::schedule
