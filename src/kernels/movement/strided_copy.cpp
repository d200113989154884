// SPDX-License-Identifier: Apache-2.0
#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace reef::kernels {
namespace {

// Work handed to a thread at a time: some tens of microseconds of copying.
constexpr std::int64_t kChunkBytes = 128 * 1024;

// Copies runs of a size known to the compiler, which makes the copy a load and a store.
template <std::int64_t kBytes>
void copy_small_runs(const CopyLoop& loop, std::int64_t count, const std::byte* from, std::byte* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * loop.to_stride, from + i * loop.from_stride, static_cast<std::size_t>(kBytes));
  }
}

void copy_runs(const CopyLoop& loop, std::int64_t count, std::int64_t run_bytes, const std::byte* from, std::byte* to) {
  switch (run_bytes) {
    case 1:
      return copy_small_runs<1>(loop, count, from, to);
    case 2:
      return copy_small_runs<2>(loop, count, from, to);
    case 4:
      return copy_small_runs<4>(loop, count, from, to);
    case 8:
      return copy_small_runs<8>(loop, count, from, to);
    case 16:
      return copy_small_runs<16>(loop, count, from, to);
    default:
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * loop.to_stride, from + i * loop.from_stride, static_cast<std::size_t>(run_bytes));
      }
  }
}

// Runs [begin, end) of the box, counted with the innermost loop fastest.
void copy_range(const StridedCopy& copy, std::int64_t begin, std::int64_t end, const std::byte* from, std::byte* to) {
  const std::size_t depth = copy.loops.size();
  const CopyLoop& inner = copy.loops.back();
  std::vector<std::int64_t> index(depth);
  std::int64_t rest = begin;
  for (std::size_t d = depth; d-- > 0;) {
    index[d] = rest % copy.loops[d].count;
    rest /= copy.loops[d].count;
  }
  std::int64_t from_at = copy.from_offset, to_at = copy.to_offset;  // of the innermost loop's first run
  for (std::size_t d = 0; d + 1 < depth; ++d) {
    from_at += index[d] * copy.loops[d].from_stride;
    to_at += index[d] * copy.loops[d].to_stride;
  }
  std::int64_t first = index[depth - 1];
  while (begin < end) {
    const std::int64_t count = std::min(inner.count - first, end - begin);
    copy_runs(inner, count, copy.run_bytes, from + from_at + first * inner.from_stride,
              to + to_at + first * inner.to_stride);
    begin += count;
    first = 0;
    for (std::size_t d = depth - 1; d-- > 0;) {
      from_at += copy.loops[d].from_stride;
      to_at += copy.loops[d].to_stride;
      if (++index[d] < copy.loops[d].count) break;
      index[d] = 0;
      from_at -= copy.loops[d].count * copy.loops[d].from_stride;
      to_at -= copy.loops[d].count * copy.loops[d].to_stride;
    }
  }
}

}  // namespace

StridedCopy simplified(StridedCopy copy) {
  std::vector<CopyLoop> loops;
  for (const CopyLoop& loop : copy.loops) {
    if (loop.count == 1) continue;
    const bool joins = !loops.empty() && loops.back().from_stride == loop.count * loop.from_stride &&
                       loops.back().to_stride == loop.count * loop.to_stride;
    if (joins) {
      loops.back() = {loops.back().count * loop.count, loop.from_stride, loop.to_stride};
    } else {
      loops.push_back(loop);
    }
  }
  while (!loops.empty() && loops.back().from_stride == copy.run_bytes && loops.back().to_stride == copy.run_bytes) {
    copy.run_bytes *= loops.back().count;
    loops.pop_back();
  }
  copy.loops = std::move(loops);
  return copy;
}

void strided_copy(ThreadPool& threads, StridedCopy copy, const std::byte* from, std::byte* to) {
  const auto is_empty = [](const CopyLoop& loop) { return loop.count == 0; };
  if (copy.run_bytes == 0 || std::any_of(copy.loops.begin(), copy.loops.end(), is_empty)) return;
  copy = simplified(std::move(copy));
  if (copy.loops.empty()) {
    threads.parallel_for(copy.run_bytes, kChunkBytes, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + copy.to_offset + begin, from + copy.from_offset + begin, static_cast<std::size_t>(end - begin));
    });
    return;
  }
  std::int64_t runs = 1;
  for (const CopyLoop& loop : copy.loops) runs *= loop.count;
  const std::int64_t grain = std::max<std::int64_t>(1, kChunkBytes / std::max<std::int64_t>(copy.run_bytes, 8));
  threads.parallel_for(runs, grain,
                       [&](std::int64_t begin, std::int64_t end) { copy_range(copy, begin, end, from, to); });
}

void fill(ThreadPool& threads, std::byte* to, std::int64_t count, const std::byte* element, std::size_t element_bytes) {
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  threads.parallel_for(count, kChunkBytes / bytes, [&](std::int64_t begin, std::int64_t end) {
    std::byte* const first = to + begin * bytes;
    const auto total = static_cast<std::size_t>((end - begin) * bytes);
    if (element_bytes == 1) {
      std::memset(first, std::to_integer<int>(*element), total);
      return;
    }
    // Doubles what is already written.
    std::memcpy(first, element, element_bytes);
    for (std::size_t written = element_bytes; written < total; written *= 2) {
      std::memcpy(first + written, first, std::min(written, total - written));
    }
  });
}

}  // namespace reef::kernels
