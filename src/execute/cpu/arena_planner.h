// SPDX-License-Identifier: Apache-2.0
// Places tensors with known lifetimes into one block of memory.
//
// Problem: tensors that are alive at the same time must not overlap; the block should be as small as possible. The
// optimum is NP-hard to find. Approach: several greedy orders (by size, by lifetime, by pressure), each tensor put at
// the lowest offset that is free during its life; the smallest result wins, and is tried again with what lies on top
// placed first. Deterministic. Not guaranteed optimal; the lower bound (the largest sum of bytes alive at once) is
// returned with the result so that the distance can be seen.
#pragma once

#include <cstdint>
#include <vector>

namespace reef::cpu {

inline constexpr std::int64_t kArenaAlignment = 64;  // bytes: a cache line, and the widest vector register

struct ArenaItem {
  std::int64_t bytes = 0;
  std::int32_t first = 0;  // step that writes it
  std::int32_t last = 0;   // last step that uses it, >= first
};

struct ArenaPlan {
  std::vector<std::int64_t> offsets;        // one per item, multiples of kArenaAlignment
  std::int64_t bytes = 0;                   // size of the block
  std::int64_t largest_live_set_bytes = 0;  // the lower bound, with every item rounded up to the alignment
};

ArenaPlan plan_arena(const std::vector<ArenaItem>& items);

}  // namespace reef::cpu
