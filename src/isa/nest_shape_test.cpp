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
std::vector<Step> expected_steps(const Nest& nest, int dims, std::uint32_t phase) {
  std::vector<Step> steps;
  std::int64_t total = 1, buffer_steps = 1;
  for (int k = 0; k < dims; ++k) {
    if (k < static_cast<int>(nest.buffer_level)) buffer_steps *= nest.dims[static_cast<std::size_t>(k)].count;
    total *= nest.dims[static_cast<std::size_t>(k)].count;
  }
  for (std::int64_t index = 0; index < total; ++index) {
    std::int64_t rest = index, address = nest.base;
    std::vector<std::int64_t> at;
    for (int k = 0; k < dims; ++k) {
      const auto& dim = nest.dims[static_cast<std::size_t>(k)];
      at.push_back(rest % dim.count);
      rest /= dim.count;
      address += at.back() * dim.stride;
    }
    const std::size_t clip = nest.clip_dim;
    if (clip != 0 && at[clip] + 1 == nest.dims[clip].count && at[0] >= nest.clip_steps) continue;
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
      nest.dims[static_cast<std::size_t>(k)] = {static_cast<std::int64_t>(random() % 41) - 20,
                                                1 + static_cast<std::uint32_t>(random() % 5), true};
    }
    if (dims > 1 && random() % 2 == 0) {
      nest.clip_dim = 1 + random() % static_cast<unsigned>(dims - 1);
      nest.clip_steps = 1 + random() % nest.dims[0].count;
    }
    if (random() % 2 == 0) {
      nest.buffer_stride = 1000;
      nest.buffer_level = random() % static_cast<unsigned>(dims + 1);
    }
    const std::uint32_t phase = random() % 2;
    const auto shape = nest_shape(nest, dims);
    ASSERT_TRUE(shape.ok());
    const std::vector<Step> expected = expected_steps(nest, dims, phase);
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
      for (int level = 0; level <= dims; ++level)
        ended[static_cast<std::size_t>(level)] += static_cast<int>(walk.ended(level));
    }
    EXPECT_TRUE(walk.done());
    for (int level = 0; level <= dims; ++level) {
      const auto passes = expected.back().index / shape->pass_length(level) + 1;
      EXPECT_EQ(ended[static_cast<std::size_t>(level)], passes) << level;
    }
  }
}

TEST(NestCursor, RefusesWhatCannotBeWalked) {
  Nest nest;
  for (auto& dim : nest.dims) dim = {1, 1u << 18, true};
  EXPECT_FALSE(nest_shape(nest, 8).ok());
}

}  // namespace
}  // namespace reef::isa
