// SPDX-License-Identifier: Apache-2.0
#include "isa/nest_shape.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace reef::isa {
namespace {

struct Step {
  std::int64_t address = 0, index = 0;
};

// The definition, written out: all index combinations, clipped ones left out.
std::vector<Step> expected_steps(const Nest& nest, int dims, std::uint32_t phase, std::size_t clip_inner) {
  std::vector<Step> steps;
  std::int64_t total = 1, buffer_steps = 1;
  for (int k = 0; k < dims; ++k) {
    if (k < static_cast<int>(nest.buffer_level)) buffer_steps *= nest.dims[reef::at(k)].count;
    total *= nest.dims[reef::at(k)].count;
  }
  for (std::int64_t index = 0; index < total; ++index) {
    std::int64_t rest = index, address = nest.base;
    std::vector<std::int64_t> at;
    for (int k = 0; k < dims; ++k) {
      const auto& dim = nest.dims[reef::at(k)];
      at.push_back(rest % dim.count);
      rest /= dim.count;
      address += at.back() * dim.stride;
    }
    const std::size_t clip = nest.clip_dim;
    if (clip != 0 && at[clip] + 1 == nest.dims[clip].count && at[clip_inner] >= nest.clip_steps) continue;
    if (((index / buffer_steps + phase) & 1) != 0) address += nest.buffer_stride;
    steps.push_back({address, index});
  }
  return steps;
}

TEST(NestCursor, VisitsWhatTheDefinitionSays) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int dims = 1 + static_cast<int>(random() % 4);
    Nest nest;
    nest.base = random() % 1000;
    for (int k = 0; k < dims; ++k) {
      nest.dims[reef::at(k)] = {static_cast<std::int64_t>(random() % 41) - 20,
                                1 + static_cast<std::uint32_t>(random() % 5), true};
    }
    int clip_inner = 0;
    if (dims > 1 && random() % 2 == 0) {
      clip_inner = dims > 2 && random() % 2 == 0 ? 1 : 0;
      nest.clip_dim = 1 + static_cast<unsigned>(clip_inner) + random() % static_cast<unsigned>(dims - 1 - clip_inner);
      nest.clip_steps = 1 + random() % nest.dims[reef::at(clip_inner)].count;
    }
    if (random() % 2 == 0) {
      nest.buffer_stride = 1000;
      nest.buffer_level = random() % static_cast<unsigned>(dims + 1);
    }
    const std::uint32_t phase = random() % 2;
    const auto shape = nest_shape(nest, dims, clip_inner);
    ASSERT_TRUE(shape.ok());
    const std::vector<Step> expected = expected_steps(nest, dims, phase, static_cast<std::size_t>(clip_inner));
    ASSERT_EQ(shape->steps, static_cast<std::int64_t>(expected.size()));
    NestCursor walk(*shape, phase);
    std::vector<int> ended(static_cast<std::size_t>(dims + 1));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_FALSE(walk.done());
      EXPECT_EQ(walk.address(), expected[i].address);
      EXPECT_EQ(walk.position(), expected[i].index);
      for (int level = 0; level <= dims; ++level) {
        const std::int64_t pass = expected[i].index / shape->pass_length(level);
        EXPECT_EQ(walk.pass(level), pass);
        const bool begins = i == 0 || expected[i - 1].index / shape->pass_length(level) != pass;
        EXPECT_EQ(walk.begins_pass(level), begins);
      }
      walk.advance();
      for (int level = 0; level <= dims; ++level) ended[reef::at(level)] += static_cast<int>(walk.ended(level));
    }
    EXPECT_TRUE(walk.done());
    for (int level = 0; level <= dims; ++level) {
      const auto passes = expected.back().index / shape->pass_length(level) + 1;
      EXPECT_EQ(ended[reef::at(level)], passes) << level;
    }
  }
}

// Seen in the input part of compiled programs: a last run that is longer than the others.
TEST(NestCursor, ALongerLastRunBelongsToTheLastPass) {
  Nest nest;
  nest.base = 100;
  nest.dims[0] = {1, 5, true};
  nest.dims[1] = {50, 3, true};
  nest.clip_dim = 1;
  nest.clip_steps = 8;
  const auto shape = nest_shape(nest, 2);
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->steps, 18);
  std::vector<std::int64_t> last_run;
  std::int64_t steps_counted = 0, passes_counted = 0;
  for (NestCursor walk(*shape, 0); !walk.done();) {
    if (walk.index(1) == 2) last_run.push_back(walk.address());
    if (walk.index(0) >= 5) {
      EXPECT_FALSE(walk.begins_pass(1));
      EXPECT_EQ(walk.pass(1), 2);
    }
    walk.advance();
    steps_counted += walk.ended(0);
    passes_counted += walk.ended(1);
  }
  EXPECT_EQ(last_run, (std::vector<std::int64_t>{200, 201, 202, 203, 204, 205, 206, 207}));
  EXPECT_EQ(steps_counted, 18);
  EXPECT_EQ(passes_counted, 3);
}

TEST(NestCursor, SeekingIsWalking) {
  Nest nest;
  nest.dims[0] = {3, 4, true};
  nest.dims[1] = {-7, 5, true};
  nest.buffer_stride = 1000;
  nest.buffer_level = 1;
  const auto shape = nest_shape(nest, 2);
  ASSERT_TRUE(shape.ok());
  NestCursor sought(*shape, 1);
  for (NestCursor walk(*shape, 1); !walk.done(); walk.advance()) {
    sought.seek(walk.position());
    EXPECT_EQ(sought.address(), walk.address()) << walk.position();
  }
}

// Strides are sums of foreign numbers: they wrap, and nothing else happens.
TEST(NestCursor, AnyStrideCanBeWalked) {
  Nest nest;
  nest.dims[0] = {INT64_MAX, 3, true};
  nest.dims[1] = {INT64_MIN, 2, true};
  const auto shape = nest_shape(nest, 2);
  ASSERT_TRUE(shape.ok());
  int steps = 0;
  for (NestCursor walk(*shape, 0); !walk.done(); walk.advance()) ++steps;
  EXPECT_EQ(steps, 6);
}

TEST(NestCursor, RefusesWhatCannotBeWalked) {
  Nest nest;
  for (auto& dim : nest.dims) dim = {1, 1u << 18, true};
  EXPECT_FALSE(nest_shape(nest, 8).ok());
  nest = {};
  nest.dims[0] = nest.dims[1] = nest.dims[2] = {1, 4, true};
  nest.clip_steps = 5;
  nest.clip_dim = 2;
  EXPECT_TRUE(nest_shape(nest, 3).ok());
  EXPECT_FALSE(nest_shape(nest, 3, 1).ok());  // would lengthen dimension 1
  nest.clip_steps = 3;
  EXPECT_TRUE(nest_shape(nest, 3, 1).ok());
  nest.clip_dim = 1;
  EXPECT_FALSE(nest_shape(nest, 3, 1).ok());  // at its own last index
}

}  // namespace
}  // namespace reef::isa
