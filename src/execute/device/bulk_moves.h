// SPDX-License-Identifier: Apache-2.0
// Several steps of a nest at once: how many lie along dimension 0, and whether all of them hit a memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "isa/nest_shape.h"

namespace reef::device {

// Steps from where the cursor stands, at equal distances and not beyond `end`. At least 1.
inline std::int64_t equal_steps(const isa::NestCursor& cursor, const isa::NestShape& nest, std::int64_t end) {
  if (nest.buffer_stride != 0 && nest.buffer_level == 0) return 1;  // every step goes to the other buffer
  return std::max<std::int64_t>(1, std::min(cursor.run(), end - cursor.position()));
}

// Number of the `steps` that can be made at once so that all addresses are within [0, size). 1 where this is not
// certain: the step must be looked at by itself.
inline std::int64_t steps_inside(std::int64_t address, std::uint64_t stride, std::int64_t steps, std::int64_t size) {
  constexpr std::int64_t kFar = std::int64_t{1} << 30;
  const auto distance = static_cast<std::int64_t>(stride);
  if (steps <= 1 || steps > kFar || distance < -kFar || distance > kFar || address < 0 || address >= size) return 1;
  const std::int64_t last = address + distance * (steps - 1);
  return last >= 0 && last < size ? steps : 1;
}

}  // namespace reef::device
