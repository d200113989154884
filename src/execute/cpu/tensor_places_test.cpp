// SPDX-License-Identifier: Apache-2.0
#include "execute/cpu/tensor_places.h"
#include "base/at.h"

#include <random>

#include <gtest/gtest.h>

namespace reef::cpu {
namespace {

PlacedTensor inside(std::int64_t bytes) { return {bytes, true, false, false}; }
PlacedTensor input(std::int64_t bytes) { return {bytes, true, true, false}; }
PlacedTensor output(std::int64_t bytes) { return {bytes, true, false, true}; }
using Numbers = std::vector<std::int32_t>;
PlacedOp op(Numbers reads, Numbers writes, Numbers may_become = {}) { return {reads, writes, may_become, false}; }
PlacedOp view(std::int32_t of, std::int32_t as) { return {{of}, {as}, {}, true}; }

TEST(TensorPlaces, AnOperandThatEndsIsOverwritten) {
  const TensorPlaces places = share_places({input(8), inside(8), output(8)}, {op({0}, {1}, {0}), op({1}, {2}, {1})});
  EXPECT_EQ(places.place, (Numbers{0, 1, 1})) << "the graph's input stays as the caller left it";
}

TEST(TensorPlaces, AnOperandThatIsReadLaterStays) {
  const TensorPlaces places = share_places({input(8), inside(8), inside(8), output(8)},
                                           {op({0}, {1}), op({1}, {2}, {1}), op({1, 2}, {3}, {1, 2})});
  EXPECT_EQ(places.place, (Numbers{0, 1, 2, 1}));
}

TEST(TensorPlaces, ViewsCostNothingAndKeepTheirOriginalAlive) {
  // 2 is a view of 1; 3 = f(1) must not overwrite what 4 = g(2) reads.
  const TensorPlaces places = share_places({input(8), inside(8), inside(8), inside(8), output(8)},
                                           {op({0}, {1}), view(1, 2), op({1}, {3}, {1}), op({2, 3}, {4})});
  EXPECT_EQ(places.place, (Numbers{0, 1, 1, 3, 4}));
  EXPECT_EQ(places.is_free, (std::vector<bool>{false, true, false, false}));
}

TEST(TensorPlaces, WhatTheCallerSeesIsApart) {
  EXPECT_EQ(share_places({input(8), output(8)}, {view(0, 1)}).place, (Numbers{0, 1}));
  EXPECT_EQ(share_places({input(8), output(8), output(8)}, {op({0}, {1}), view(1, 2)}).place, (Numbers{0, 1, 2}));
}

TEST(TensorPlaces, OtherSizesAndOtherMemoryAreLeftAlone) {
  EXPECT_EQ(share_places({input(8), inside(8), output(4)}, {op({0}, {1}), op({1}, {2}, {1})}).place[2], 2);
  EXPECT_EQ(share_places({input(8), {8, false, false, false}, output(8)}, {op({0}, {1}), op({1}, {2}, {1})}).place[2],
            2);
}

TEST(TensorPlaces, APlaceReadInAnotherOrderIsNotOverwritten) {
  // 2 is a view of 1, and op 2 reads 1 element by element but 2 as a whole.
  const TensorPlaces places =
      share_places({input(8), inside(8), inside(8), output(8)}, {op({0}, {1}), view(1, 2), op({1, 2}, {3}, {1})});
  EXPECT_EQ(places.place[3], 3);
}

// Random graphs are executed with numbers for values: whatever an op reads must be what was written for it.
TEST(TensorPlaces, NothingIsOverwrittenTooEarly) {
  std::mt19937 random(3);
  const auto below = [&](std::size_t n) { return static_cast<std::int32_t>(random() % n); };
  int shared = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto count = static_cast<std::int32_t>(3 + random() % 12);
    std::vector<PlacedTensor> tensors = {input(8)};
    std::vector<PlacedOp> ops;
    for (std::int32_t t = 1; t < count; ++t) {
      tensors.push_back({random() % 4 ? 8 : 4, random() % 8 != 0, false, t + 1 == count || random() % 8 == 0});
      PlacedOp op;
      for (std::size_t i = 0; i < 1 + random() % 2; ++i) {
        op.reads.push_back(below(static_cast<std::size_t>(t)));
        if (random() % 2) op.may_become.push_back(op.reads.back());
      }
      op.writes = {t};
      op.is_view = random() % 4 == 0 && tensors[at(op.reads[0])].bytes == tensors.back().bytes;
      if (op.is_view) op.reads.resize(1), op.may_become.clear();
      ops.push_back(std::move(op));
    }
    const TensorPlaces places = share_places(tensors, ops);
    const auto n = [](std::int32_t i) { return static_cast<std::size_t>(i); };
    std::vector<std::int32_t> value(tensors.size()), held(tensors.size(), -1);
    held[0] = 0;
    for (std::size_t k = 0; k < ops.size(); ++k) {
      const std::int32_t t = ops[k].writes[0];
      for (const std::int32_t r : ops[k].reads)
        ASSERT_EQ(held[n(places.place[n(r)])], value[n(r)]) << "round " << round;
      value[n(t)] = ops[k].is_view ? value[n(ops[k].reads[0])] : t;
      if (!places.is_free[k]) held[n(places.place[n(t)])] = value[n(t)];
      shared += places.place[n(t)] != t;
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (!tensors[t].is_input && !tensors[t].is_output) continue;
      EXPECT_EQ(held[n(places.place[t])], value[t]) << "round " << round;
    }
  }
  EXPECT_GT(shared, 1000) << "the test has something to test";
}

}  // namespace
}  // namespace reef::cpu
