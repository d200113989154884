// SPDX-License-Identifier: Apache-2.0
#include "audit/footprint.h"

#include <algorithm>
#include <array>
#include <bit>

namespace reef::audit {
namespace {

struct Dimension {
  std::int64_t stride = 0, count = 1;
};

// Dimensions of a block that have more than one index, the shortest stride first.
struct Dimensions {
  std::array<Dimension, isa::kMaxDims> list{};
  std::size_t size = 0;
  std::int64_t base = 0;  // the lowest address
};

// Far beyond every memory, and small enough for sums of products with any count to stay within 64 bits.
constexpr std::int64_t kMostStride = std::int64_t{1} << 24, kMostBase = std::int64_t{1} << 40;

bool dimensions_of(const isa::NestShape& nest, const isa::NestCursor& cursor, std::int64_t steps, Dimensions& result) {
  result.base = cursor.address();
  if (result.base < -kMostBase || result.base > kMostBase) return false;
  for (int k = 0; k < nest.dims && steps > 1; ++k) {
    const auto d = static_cast<std::size_t>(k);
    const std::int64_t count = std::min(nest.count[d], steps);
    steps /= count;
    auto stride = static_cast<std::int64_t>(nest.stride[d]);
    if (count == 1 || stride == 0) continue;
    if (stride < -kMostStride || stride > kMostStride) return false;
    if (stride < 0) {
      result.base += stride * (count - 1);
      stride = -stride;
    }
    result.list[result.size++] = {stride, count};
  }
  std::sort(result.list.begin(), result.list.begin() + static_cast<std::ptrdiff_t>(result.size),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  return true;
}

// Dimensions that only move a contiguous piece of `width` units on become part of it. Of the others, one whose indices
// fall upon those of a shorter stride is joined with that.
std::int64_t join(Dimensions& dimensions, std::int64_t width) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dimensions.size; ++i) {
    const Dimension& dimension = dimensions.list[i];
    if (kept == 0 && dimension.stride <= width) {
      width += dimension.stride * (dimension.count - 1);
      continue;
    }
    if (kept > 0) {
      Dimension& last = dimensions.list[kept - 1];
      const std::int64_t times = dimension.stride / last.stride;
      if (dimension.stride % last.stride == 0 && times <= last.count) {
        last.count += times * (dimension.count - 1);
        continue;
      }
    }
    dimensions.list[kept++] = dimension;
  }
  dimensions.size = kept;
  return width;
}

// Steps by the remainder of their address; how many places a step touches depends on nothing else.
std::int64_t accesses_of(const isa::NestShape& nest, std::int64_t address, std::int64_t steps, std::int64_t width,
                         std::int64_t units) {
  constexpr std::size_t kMostUnits = 8;
  std::array<std::int64_t, kMostUnits> steps_at{};
  const auto remainder = [units](std::int64_t at) { return static_cast<std::size_t>(at & (units - 1)); };
  steps_at[remainder(address)] = 1;
  for (int k = 0; k < nest.dims && steps > 1; ++k) {
    const auto d = static_cast<std::size_t>(k);
    const std::int64_t count = std::min(nest.count[d], steps), turns = count / units;
    steps /= count;
    std::array<std::int64_t, kMostUnits> after{};
    for (std::int64_t from = 0; from < units; ++from) {
      const std::int64_t here = steps_at[reef::at(from)];
      if (here == 0) continue;
      for (std::int64_t i = 0; i < std::min(count, units); ++i) {
        const std::int64_t times = turns + (i < count % units ? 1 : 0);
        after[remainder(from + i * static_cast<std::int64_t>(nest.stride[d] & 7))] += here * times;
      }
    }
    steps_at = after;
  }
  std::int64_t sum = 0;
  for (std::int64_t at = 0; at < units; ++at) {
    sum += steps_at[reef::at(at)] * ((at + width - 1) / units + 1);
  }
  return sum;
}

}  // namespace

std::int64_t block_at(const isa::NestShape& nest, const isa::NestCursor& cursor, std::int64_t steps) {
  int level = 0;
  while (level + 1 < nest.dims && cursor.index(level) == 0 && steps >= nest.pass_length(level + 1)) ++level;
  const std::int64_t pass = nest.pass_length(level);
  const std::int64_t left = nest.dims == 0 ? 1 : nest.count[reef::at(level)] - cursor.index(level);
  return std::min(steps / pass, left) * pass;
}

std::int64_t steps_on_this_side(const isa::NestShape& nest, const isa::NestCursor& cursor) {
  const std::int64_t left = nest.size() - cursor.position();
  if (nest.buffer_stride == 0) return left;
  const std::int64_t pass = nest.pass_length(nest.buffer_level);
  return std::min(left, pass - cursor.position() % pass);
}

bool footprint_of(const isa::NestShape& nest, const isa::NestCursor& cursor, std::int64_t steps, std::int64_t width,
                  std::int64_t units_per_place, std::size_t most, Footprint& footprint) {
  footprint.intervals.clear();
  footprint.accesses = accesses_of(nest, cursor.address(), steps, width, units_per_place);
  Dimensions dimensions;
  if (!dimensions_of(nest, cursor, steps, dimensions)) return false;
  // Where every step begins at the same unit of a place, places can be counted instead of units.
  bool are_places = true;
  for (std::size_t i = 0; i < dimensions.size; ++i) {
    are_places = are_places && dimensions.list[i].stride % units_per_place == 0;
  }
  std::int64_t units = units_per_place;
  if (are_places) {
    width = ((dimensions.base & (units - 1)) + width - 1) / units + 1;
    dimensions.base >>= std::countr_zero(static_cast<std::uint64_t>(units));
    for (std::size_t i = 0; i < dimensions.size; ++i) dimensions.list[i].stride /= units;
    units = 1;
  }
  width = join(dimensions, width);
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < dimensions.size; ++i) {
    rows *= dimensions.list[i].count;
    if (rows > static_cast<std::int64_t>(most)) return false;
  }
  const int shift = std::countr_zero(static_cast<std::uint64_t>(units));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t address = dimensions.base, rest = row;
    for (std::size_t i = 0; i < dimensions.size; ++i) {
      address += rest % dimensions.list[i].count * dimensions.list[i].stride;
      rest /= dimensions.list[i].count;
    }
    const std::int64_t first = address >> shift, last = (address + width - 1) >> shift;
    footprint.intervals.push_back({first, last - first + 1});
  }
  return true;
}

}  // namespace reef::audit
