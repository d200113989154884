// SPDX-License-Identifier: Apache-2.0
#include "partition/parameter_cache.h"

#include <gtest/gtest.h>

namespace reef::partition {
namespace {

constexpr std::int64_t kAll = std::int64_t{chip::kWideLines} * chip::kTiles;

CacheLayer layer(std::int64_t lines, std::int64_t group_lines = 0, bool stays_in_tiles = false) {
  return {lines * chip::kWideLineBytes, lines, group_lines, stays_in_tiles, 0, 1e-3};
}

TEST(ParameterCache, EverythingThatFitsIsCached) {
  const CacheModel model = {{layer(100), layer(2000)}, 80};
  const CacheShare share = share_cache({&model, 1}, CachePolicy::kInOrder)[0];
  EXPECT_EQ(share.lines, 2100);
  EXPECT_EQ(share.streamed_bytes, 0);
  EXPECT_EQ(share.lines_left, kAll - 80 * chip::kTiles - 2100);
}

TEST(ParameterCache, LaterLayersAreStreamedAndTheLastOneInPart) {
  const CacheModel model = {{layer(kAll / 2), layer(kAll), layer(10)}, 0};
  const CacheShare share = share_cache({&model, 1}, CachePolicy::kInOrder)[0];
  EXPECT_EQ(share.cached_bytes[0], kAll / 2 * chip::kWideLineBytes);
  EXPECT_EQ(share.cached_bytes[1], kAll / 2 * chip::kWideLineBytes);
  EXPECT_EQ(share.cached_bytes[2], 0);
  EXPECT_EQ(share.lines_left, 0);
  EXPECT_EQ(share.streamed_bytes, (kAll / 2 + 10) * chip::kWideLineBytes);
}

TEST(ParameterCache, WhatOneTileCannotHoldIsStreamed) {
  // One output of 16,384 inputs: 4096 lines for a tile of 2080.
  const CacheModel model = {{layer(4096, 4096, true), layer(10)}, 8};
  const CacheShare share = share_cache({&model, 1}, CachePolicy::kInOrder)[0];
  EXPECT_EQ(share.cached_bytes[0], 0);
  EXPECT_EQ(share.lines, 10);
}

TEST(ParameterCache, AFullTileSendsALayerElsewhere) {
  const CacheModel model = {{layer(1024, 1024, true), layer(1024, 1024, true), layer(1024, 1024, true)}, 60};
  const CacheShare share = share_cache({&model, 1}, CachePolicy::kInOrder)[0];
  EXPECT_EQ(share.lines, 3 * 1024);
  EXPECT_EQ(share.streamed_bytes, 0);
}

TEST(ParameterCache, TheScratchOfOneModelIsNotCachedOverByAnother) {
  const CacheModel models[] = {{{layer(kAll)}, 0}, {{layer(10)}, 1000}};
  const auto shares = share_cache(models, CachePolicy::kInOrder);
  EXPECT_EQ(shares[0].lines, kAll - 1000 * chip::kTiles);
  EXPECT_EQ(shares[1].lines, 0);
  EXPECT_EQ(shares[1].streamed_bytes, 10 * chip::kWideLineBytes);
}

TEST(ParameterCache, GooglesOrderPrefersTheFirstModelAndTimeTheOneThatGains) {
  CacheModel first = {{layer(kAll)}, 0}, second = {{layer(kAll)}, 0};
  first.layers[0].hidden_bytes = first.layers[0].bytes;  // sent while computing: costs nothing
  const CacheModel models[] = {first, second};
  const auto google = share_cache(models, CachePolicy::kInOrder);
  EXPECT_EQ(google[0].lines, kAll);
  EXPECT_EQ(google[1].lines, 0);
  const auto ours = share_cache(models, CachePolicy::kLeastTime);
  EXPECT_EQ(ours[0].lines, 0);
  EXPECT_EQ(ours[1].lines, kAll);
}

TEST(ParameterCache, LinesThatHoldFewBytesComeLast) {
  CacheLayer thin = layer(kAll);
  thin.bytes /= 4;  // 16 of 64 cells
  const CacheModel model = {{thin, layer(kAll)}, 0};
  const CacheShare share = share_cache({&model, 1}, CachePolicy::kLeastTime)[0];
  EXPECT_EQ(share.cached_bytes[0], 0);
  EXPECT_EQ(share.cached_bytes[1], kAll * chip::kWideLineBytes);
}

TEST(ParameterCache, ALimitHolds) {
  const CacheModel model = {{layer(100), layer(100)}, 0};
  const CacheShare share = share_cache({&model, 1}, CachePolicy::kInOrder, 150)[0];
  EXPECT_EQ(share.lines, 150);
  EXPECT_EQ(share.lines_left, 0);
}

TEST(ParameterCache, NothingToCacheAndNoRoom) {
  EXPECT_TRUE(share_cache({}, CachePolicy::kLeastTime).empty());
  const CacheModel model = {{layer(100), {}}, 1 << 20};
  const CacheShare share = share_cache({&model, 1}, CachePolicy::kLeastTime)[0];
  EXPECT_EQ(share.lines, 0);
  EXPECT_EQ(share.streamed_bytes, 100 * chip::kWideLineBytes);
}

}  // namespace
}  // namespace reef::partition
