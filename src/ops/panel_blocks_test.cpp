// SPDX-License-Identifier: Apache-2.0
// Parts of a loop: all of it, none empty, none too small, and enough of them for any number of threads.
#include "ops/panel_blocks.h"

#include <gtest/gtest.h>

namespace reef::ops {
namespace {

constexpr double kLeast = 1000;

TEST(PanelBlocks, WorkForSeveralThreadsIsSharedOut) {
  for (const std::int64_t threads : {2, 3, 16, 64}) {
    for (const std::int64_t worthwhile : {1, 2, 3, 5, 10, 40, 1000}) {
      const std::int64_t parts = parts_of(threads, kLeast * static_cast<double>(worthwhile), kLeast);
      EXPECT_LE(parts, worthwhile) << threads << " threads";
      EXPECT_GE(parts, std::min(worthwhile, threads) / 2) << threads << " threads, " << worthwhile;
      EXPECT_GE(parts, std::min<std::int64_t>(worthwhile, 2)) << threads << " threads, " << worthwhile;
      EXPECT_TRUE(parts <= threads || parts % threads == 0) << parts << " parts, " << threads << " threads";
    }
  }
}

TEST(PanelBlocks, OneThreadIsInterruptedNowAndThen) {
  EXPECT_EQ(parts_of(1, 1e6, kLeast), 1);
  EXPECT_GE(parts_of(1, 1e9, kLeast), 30);
}

TEST(PanelBlocks, PartsOfRowsAreWholeAndNotEmpty) {
  for (const std::int64_t threads : {1, 2, 5}) {
    for (const std::int64_t step : {1, 2, 24}) {
      for (std::int64_t rows = 1; rows < 300; ++rows) {
        const std::int64_t parts = parts_of_rows(threads, rows, kLeast, kLeast, step);
        ASSERT_EQ(part_begin(0, parts, rows, step), 0);
        ASSERT_EQ(part_begin(parts, parts, rows, step), rows);
        for (std::int64_t i = 0; i < parts; ++i) {
          ASSERT_LT(part_begin(i, parts, rows, step), part_begin(i + 1, parts, rows, step))
              << rows << " rows, " << parts << " parts, step " << step;
        }
      }
    }
  }
}

TEST(PanelBlocks, FewRowsAreSharedOutByColumns) {
  const TwoWayParts parts = two_way_parts(4, 1, 100 * kLeast, kLeast, 24, 10);
  EXPECT_EQ(parts.of_rows, 1);
  EXPECT_EQ(parts.of_columns, 10);
}

}  // namespace
}  // namespace reef::ops
