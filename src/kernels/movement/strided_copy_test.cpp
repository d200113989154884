// SPDX-License-Identifier: Apache-2.0
// Copies of boxes against one element at a time: random loops in all orders, transposes of all element sizes above all.
#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace reef::kernels {
namespace {

void copy_singly(const StridedCopy& copy, std::size_t depth, const std::byte* from, std::byte* to) {
  if (depth == copy.loops.size()) {
    std::memcpy(to, from, static_cast<std::size_t>(copy.run_bytes));
    return;
  }
  const CopyLoop& loop = copy.loops[depth];
  for (std::int64_t i = 0; i < loop.count; ++i) {
    copy_singly(copy, depth + 1, from + i * loop.from_stride, to + i * loop.to_stride);
  }
}

void expect_same(ThreadPool& pool, const StridedCopy& copy, std::int64_t from_bytes, std::int64_t to_bytes) {
  std::mt19937 random(1);
  std::vector<std::byte> from(static_cast<std::size_t>(from_bytes));
  for (std::byte& byte : from) byte = static_cast<std::byte>(random());
  std::vector<std::byte> want(static_cast<std::size_t>(to_bytes)), got = want;
  copy_singly(copy, 0, from.data() + copy.from_offset, want.data() + copy.to_offset);
  strided_copy(pool, copy, from.data(), got.data());
  ASSERT_EQ(got, want) << copy.loops.size() << " loops of runs of " << copy.run_bytes;
}

// A tensor of these sizes with its dimensions in another order.
StridedCopy permuted(const std::vector<std::int64_t>& sizes, const std::vector<std::size_t>& order,
                     std::int64_t bytes) {
  std::vector<std::int64_t> strides(sizes.size(), bytes);
  for (std::size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  StridedCopy copy{.loops = std::vector<CopyLoop>(sizes.size()), .run_bytes = bytes, .from_offset = 0, .to_offset = 0};
  std::int64_t to_stride = bytes;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    copy.loops[d] = {sizes[order[d]], strides[order[d]], to_stride};
    to_stride *= sizes[order[d]];
  }
  return copy;
}

TEST(StridedCopy, TransposesEqualSingleElements) {
  std::mt19937 random(2);
  ThreadPool one(1), several(3);
  for (int trial = 0; trial < 400; ++trial) {
    const std::size_t rank = 2 + random() % 3;
    std::vector<std::int64_t> sizes(rank);
    for (std::int64_t& size : sizes) size = 1 + static_cast<std::int64_t>(random() % (rank == 2 ? 150 : 30));
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const std::int64_t bytes = std::int64_t{1} << random() % 5;
    const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), bytes, std::multiplies<>());
    expect_same(trial % 2 ? one : several, permuted(sizes, order, bytes), total, total);
  }
}

TEST(StridedCopy, RunsOfAllSizes) {
  ThreadPool pool(2);
  for (std::int64_t bytes = 1; bytes < 600; bytes += bytes < 140 ? 1 : 37) {
    // Every other run of a line, to where runs have gaps of 3 bytes.
    expect_same(pool, {{{5, 22 * bytes, 11 * (bytes + 3)}, {11, 2 * bytes, bytes + 3}}, bytes, 0, 1}, 110 * bytes,
                55 * (bytes + 3) + 1);
  }
}

TEST(StridedCopy, BoxesRepetitionsAndReversals) {
  ThreadPool pool(2);
  // Columns 3 to 7 of a matrix of 20 by 9 elements of 4 bytes, turned over.
  expect_same(pool, {{{5, 4, 80}, {20, 36, 4}}, 4, 12, 0}, 720, 400);
  expect_same(pool, {{{7, 0, 60}, {15, 4, 4}}, 4, 0, 0}, 60, 420);         // the same row seven times
  expect_same(pool, {{{30, -1, 40}, {40, 30, 1}}, 1, 29, 0}, 1200, 1200);  // from the last column to the first
  expect_same(pool, {{{3, 8, 8}, {0, 8, 8}}, 8, 0, 0}, 64, 64);
}

}  // namespace
}  // namespace reef::kernels
