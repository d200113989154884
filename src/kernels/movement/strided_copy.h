// SPDX-License-Identifier: Apache-2.0
// The one loop behind every op that only moves elements (transpose, slice, pad, concatenate, tile ...).
//
// Such an op is a rectangular box of runs: for every index (i, j, ...) of the box, `run_bytes` bytes are copied from
// from_offset + i * from_stride[0] + j * from_stride[1] + ... to to_offset + i * to_stride[0] + ....
// A stride of 0 on the source side repeats, a negative one reverses. Ops describe their box and know nothing about how
// it is walked; the walk merges dimensions that are contiguous on both sides and shares the runs out among threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace reef::kernels {

struct CopyLoop {
  std::int64_t count = 0;
  std::int64_t from_stride = 0;  // bytes
  std::int64_t to_stride = 0;    // bytes
};

struct StridedCopy {
  std::vector<CopyLoop> loops;  // outermost first
  std::int64_t run_bytes = 0;
  std::int64_t from_offset = 0;  // bytes
  std::int64_t to_offset = 0;    // bytes
};

// The same copy with fewer, longer runs: loops of one round are dropped, neighbours that are contiguous on both sides
// are joined, and an innermost loop over adjacent runs becomes part of the run. Where elements are written side by side
// that were apart, the loop along which they are read side by side comes just outside: a transpose then.
StridedCopy simplified(StridedCopy copy);

// Performs the copy. Runs must lie within the two blocks of memory, and no two may overlap on the target's side.
void strided_copy(ThreadPool& threads, StridedCopy copy, const std::byte* from, std::byte* to);
// The same for a copy that was simplified before.
void run_simplified(ThreadPool& threads, const StridedCopy& copy, const std::byte* from, std::byte* to);

// Writes `element_bytes` (1, 2, 4, 8 or 16) bytes at `element` `count` times.
void fill(ThreadPool& threads, std::byte* to, std::int64_t count, const std::byte* element, std::size_t element_bytes);

}  // namespace reef::kernels
