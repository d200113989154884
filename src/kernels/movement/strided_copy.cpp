// SPDX-License-Identifier: Apache-2.0
#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/movement/transpose_tile.h"
#include "kernels/simd/trace.h"

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

constexpr std::int64_t kMostConstantBytes = 32;  // of runs whose copies are compiled for each size
constexpr std::int64_t kMostMediumBytes = 512;   // beyond, memcpy's start does not matter any more

using CopySmallRuns = void (*)(const CopyLoop&, std::int64_t, const std::byte*, std::byte*);
template <std::size_t... kSizes>
constexpr std::array<CopySmallRuns, sizeof...(kSizes)> small_copies(std::index_sequence<kSizes...>) {
  return {&copy_small_runs<static_cast<std::int64_t>(kSizes + 1)>...};
}

// Runs of more than kMostConstantBytes: pieces of so many bytes, of which the last overlaps the one before.
void copy_medium_runs(const CopyLoop& loop, std::int64_t count, std::int64_t run_bytes, const std::byte* from,
                      std::byte* to) {
  constexpr auto kPiece = static_cast<std::size_t>(kMostConstantBytes);
  const std::int64_t last = run_bytes - kMostConstantBytes;
  for (std::int64_t i = 0; i < count; ++i, from += loop.from_stride, to += loop.to_stride) {
    for (std::int64_t at = 0; at < last; at += kMostConstantBytes) std::memcpy(to + at, from + at, kPiece);
    std::memcpy(to + last, from + last, kPiece);
  }
}

void copy_runs(const CopyLoop& loop, std::int64_t count, std::int64_t run_bytes, const std::byte* from, std::byte* to) {
  static constexpr auto kSmall = small_copies(std::make_index_sequence<static_cast<std::size_t>(kMostConstantBytes)>());
  if (run_bytes <= kMostConstantBytes) return kSmall[static_cast<std::size_t>(run_bytes - 1)](loop, count, from, to);
  if (run_bytes <= kMostMediumBytes) return copy_medium_runs(loop, count, run_bytes, from, to);
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * loop.to_stride, from + i * loop.from_stride, static_cast<std::size_t>(run_bytes));
  }
}

// Runs [begin, end) of the box, counted with the innermost loop fastest.
void copy_range(const StridedCopy& copy, std::int64_t begin, std::int64_t end, const std::byte* from, std::byte* to) {
  const std::size_t depth = copy.loops.size();
  const CopyLoop& inner = copy.loops.back();
  if (depth == 1) {
    copy_runs(inner, end - begin, copy.run_bytes, from + copy.from_offset + begin * inner.from_stride,
              to + copy.to_offset + begin * inner.to_stride);
    return;
  }
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

// Whether the two innermost loops turn a matrix of small elements over.
bool is_transpose(const StridedCopy& copy) {
  if (copy.loops.size() < 2 || copy.run_bytes > 8) return false;
  const CopyLoop& rows = copy.loops[copy.loops.size() - 2];
  const CopyLoop& columns = copy.loops.back();
  return rows.from_stride == copy.run_bytes && columns.to_stride == copy.run_bytes && rows.count > 1 &&
         (copy.run_bytes & (copy.run_bytes - 1)) == 0;
}

// The transposes of a copy, cut into blocks of rows.
void run_transposes(ThreadPool& threads, const StridedCopy& copy, const std::byte* from, std::byte* to) {
  constexpr std::int64_t kBlockBytes = 512 * 1024, kFewestRows = 64;  // of a block, which is read in long runs
  const std::size_t outer = copy.loops.size() - 2;
  const CopyLoop& rows = copy.loops[outer];
  const CopyLoop& columns = copy.loops.back();
  const std::int64_t block_rows =
      std::max(kBlockBytes / (columns.count * copy.run_bytes) / kFewestRows, std::int64_t{1}) * kFewestRows;
  const std::int64_t blocks = (rows.count + block_rows - 1) / block_rows;
  std::int64_t matrices = 1;
  for (std::size_t d = 0; d < outer; ++d) matrices *= copy.loops[d].count;
  const std::int64_t block_bytes = std::min(block_rows, rows.count) * columns.count * copy.run_bytes;
  const std::int64_t grain = std::max<std::int64_t>(1, kChunkBytes / std::max<std::int64_t>(block_bytes, 1));
  auto* const transpose_elements = copy.run_bytes == 1   ? &transpose<std::uint8_t>
                                   : copy.run_bytes == 2 ? &transpose<std::uint16_t>
                                   : copy.run_bytes == 4 ? &transpose<std::uint32_t>
                                                         : &transpose<std::uint64_t>;
  threads.parallel_for(matrices * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % blocks * block_rows;
      std::int64_t from_at = copy.from_offset + first * rows.from_stride;
      std::int64_t to_at = copy.to_offset + first * rows.to_stride;
      std::int64_t rest = i / blocks;
      for (std::size_t d = outer; d-- > 0; rest /= copy.loops[d].count) {
        from_at += rest % copy.loops[d].count * copy.loops[d].from_stride;
        to_at += rest % copy.loops[d].count * copy.loops[d].to_stride;
      }
      transpose_elements(from + from_at, columns.from_stride, to + to_at, rows.to_stride,
                         std::min(block_rows, rows.count - first), columns.count);
    }
  });
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
  const auto reads_neighbours = [&](const CopyLoop& loop) { return loop.from_stride == copy.run_bytes; };
  const bool writes_neighbours = !loops.empty() && loops.back().to_stride == copy.run_bytes;
  if (writes_neighbours && loops.size() > 1) {
    const auto found = std::find_if(loops.begin(), loops.end() - 1, reads_neighbours);
    if (found != loops.end() - 1) std::rotate(found, found + 1, loops.end() - 1);
  }
  copy.loops = std::move(loops);
  return copy;
}

void strided_copy(ThreadPool& threads, StridedCopy copy, const std::byte* from, std::byte* to) {
  run_simplified(threads, simplified(std::move(copy)), from, to);
}

void run_simplified(ThreadPool& threads, const StridedCopy& copy, const std::byte* from, std::byte* to) {
  const auto is_empty = [](const CopyLoop& loop) { return loop.count == 0; };
  if (copy.run_bytes == 0 || std::any_of(copy.loops.begin(), copy.loops.end(), is_empty)) return;
  if (copy.loops.empty() || copy.run_bytes >= 16 || is_transpose(copy)) note_copy();
  if (copy.loops.empty()) {
    threads.parallel_for(copy.run_bytes, kChunkBytes, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + copy.to_offset + begin, from + copy.from_offset + begin, static_cast<std::size_t>(end - begin));
    });
    return;
  }
  if (is_transpose(copy)) return run_transposes(threads, copy, from, to);
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
