// SPDX-License-Identifier: Apache-2.0
// Parts, segments and the bisection on graphs made for the purpose: an operator fits or not as the test says, and costs
// what the test says.
#include "partition/partition.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "ir/verify.h"
#include "ops/dependencies.h"
#include "partition/advice.h"
#include "partition/candidates.h"
#include "partition/search.h"
#include "partition/segments.h"
#include "quantized_model.h"

namespace reef::partition {
namespace {

using testing::QuantizedModel;

constexpr ops::ChipRule kBrokenByTest = {.id = "test", .says = "", .suggestion = "", .broken = nullptr};

Assessment all_fit_but(const ir::Model& model, const std::vector<std::int32_t>& broken) {
  Assessment result;
  result.ops.resize(model.subgraphs[0].operators.size());
  for (const std::int32_t op : broken) result.ops[at(op)].findings = {{&kBrokenByTest, "test", "", ""}};
  return result;
}

// Every operator costs the same, and so does every byte that crosses the link.
class FlatCosts : public Costs {
 public:
  FlatCosts(const ir::Model& model, OpCost each, double us_per_byte) : each_(each), us_per_byte_(us_per_byte) {
    for (const ir::Tensor& tensor : model.subgraphs[0].tensors) bytes_.push_back(tensor.shape.elements());
  }
  const OpCost& op(std::int32_t) const override { return each_; }
  std::int64_t tensor_bytes(std::int32_t tensor) const override { return bytes_[at(tensor)]; }
  PartCost part(std::span<const std::int32_t> ops, std::span<const std::int32_t> inputs,
                std::span<const std::int32_t> outputs, std::int64_t cache_bytes) const override {
    PartCost cost;
    cost.cache_capacity = 1000;
    const std::int64_t room = cache_bytes < 0 ? cost.cache_capacity : cache_bytes;
    const std::int64_t parameters = each_.parameter_bytes * static_cast<std::int64_t>(ops.size());
    cost.cached_bytes = cost.cache_used = std::min(room, parameters);
    cost.streamed_bytes = parameters - cost.cached_bytes;
    cost.compute = each_.chip * static_cast<double>(ops.size());
    cost.streaming = static_cast<double>(cost.streamed_bytes);
    for (const std::int32_t tensor : inputs) cost.transfer += us_per_byte_ * static_cast<double>(tensor_bytes(tensor));
    for (const std::int32_t tensor : outputs) cost.output_bytes += tensor_bytes(tensor);
    for (const std::int32_t tensor : outputs) cost.transfer += us_per_byte_ * static_cast<double>(tensor_bytes(tensor));
    return cost;
  }

 private:
  OpCost each_;
  double us_per_byte_;
  std::vector<std::int64_t> bytes_;
};

FlatCosts cheap_transfers(const ir::Model& model) { return {model, {.chip = 1, .cpu = 10}, 0.001}; }

Partition must_partition(const ir::Model& model, const std::vector<std::int32_t>& broken, const Costs& costs,
                         const PartitionOptions& options = {}) {
  auto result = partition(model, all_fit_but(model, broken), costs, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result).value() : Partition();
}

// conv0 ... conv(n-1), one behind the other.
ir::Model chain(int length) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 4, 4, 8});
  for (int i = 0; i < length; ++i) x = model.conv(x, 8);
  return model.finish({x});
}

using Ops = std::vector<std::int32_t>;

TEST(Partition, EverythingThatFitsIsOnePart) {
  const ir::Model model = chain(4);
  const Partition result = must_partition(model, {}, cheap_transfers(model));
  ASSERT_EQ(result.parts.size(), 1u);
  EXPECT_EQ(result.parts[0].ops, (Ops{0, 1, 2, 3}));
  EXPECT_EQ(result.parts[0].inputs, model.subgraphs[0].inputs);
  EXPECT_EQ(result.parts[0].outputs, model.subgraphs[0].outputs);
  EXPECT_DOUBLE_EQ(result.all_cpu_us, 40);
  EXPECT_NEAR(result.predicted_us, 4 + 0.256, 1e-9);
}

TEST(Partition, WhatFollowsABrokenOperatorStaysAndNamesIt) {
  const ir::Model model = chain(5);
  PartitionOptions options;
  options.choice = PartitionOptions::Choice::kFirst;
  const Partition result = must_partition(model, {2}, cheap_transfers(model), options);
  ASSERT_EQ(result.parts.size(), 1u);
  EXPECT_EQ(result.parts[0].ops, (Ops{0, 1}));
  EXPECT_EQ(result.ops[2].place, Place::kRule);
  EXPECT_EQ(result.ops[2].strands, 2);
  EXPECT_NEAR(result.ops[2].gain_us, 27, 1e-9);
  for (const int op : {3, 4}) {
    EXPECT_EQ(result.ops[op].place, Place::kCascade);
    EXPECT_EQ(result.ops[op].blocker, 2);
  }
}

TEST(Partition, LeadingCpuOperatorsAreLeftBeforeThePart) {
  const ir::Model model = chain(5);
  PartitionOptions options;
  options.choice = PartitionOptions::Choice::kFirst;
  const Partition result = must_partition(model, {0, 1}, cheap_transfers(model), options);
  ASSERT_EQ(result.parts.size(), 1u);
  EXPECT_EQ(result.parts[0].ops, (Ops{2, 3, 4}));
  EXPECT_EQ(result.ops[0].strands, 0);
}

// The branch that does not depend on the broken operator is kept, though it stands behind it in the file.
TEST(Partition, IndependentBranchesAreKept) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 4, 4, 8}), 8);
  const std::int32_t broken = model.unary("HARD_SWISH", x);
  const std::int32_t after = model.conv(broken, 8);
  const std::int32_t branch = model.conv(x, 8);
  const std::int32_t more = model.conv(branch, 8);
  const ir::Model finished = model.finish({after, more});
  const Partition result = must_partition(finished, {1}, cheap_transfers(finished));
  ASSERT_EQ(result.parts.size(), 1u);
  EXPECT_EQ(result.parts[0].ops, (Ops{0, 3, 4}));
  EXPECT_EQ(result.parts[0].outputs, (Ops{x, more}));
  EXPECT_EQ(result.ops[2].blocker, 1);
}

// Google compiles what comes first, however little; the best part is what saves most.
TEST(Partition, FirstAndBestDiffer) {
  const ir::Model model = chain(8);
  PartitionOptions options;
  options.choice = PartitionOptions::Choice::kFirst;
  EXPECT_EQ(must_partition(model, {1}, cheap_transfers(model), options).parts[0].ops, (Ops{0}));
  options.choice = PartitionOptions::Choice::kBest;
  const Partition best = must_partition(model, {1}, cheap_transfers(model), options);
  EXPECT_EQ(best.parts[0].ops, (Ops{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(best.ops[0].place, Place::kNotChosen);
  EXPECT_EQ(best.ops[0].blocker, -1);
}

// x -> a (fits) -> broken -> join, and x -> long branch -> join: seen from the front the join is a part of its own,
// seen from the end it and the long branch are one part and only `a` is left.
TEST(Partition, LateLayeringFindsTheLargerPart) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 4, 4, 8});
  const std::int32_t a = model.conv(x, 8);
  const std::int32_t broken = model.unary("HARD_SWISH", a);
  std::int32_t branch = x;
  for (int i = 0; i < 4; ++i) branch = model.conv(branch, 8);
  std::int32_t out = model.add(broken, branch);
  for (int i = 0; i < 4; ++i) out = model.conv(out, 8);
  const ir::Model finished = model.finish({out});
  const Partition result = must_partition(finished, {1}, cheap_transfers(finished));
  ASSERT_EQ(result.parts.size(), 1u);
  EXPECT_EQ(result.parts[0].ops, (Ops{2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(result.ops[0].place, Place::kNotChosen);
}

TEST(Partition, SeveralPartsOnlyWhereTheySave) {
  const ir::Model model = chain(9);
  PartitionOptions options;
  options.several_parts = true;
  const Partition cheap = must_partition(model, {3, 6}, cheap_transfers(model), options);
  ASSERT_EQ(cheap.parts.size(), 3u);
  EXPECT_EQ(cheap.parts[0].ops, (Ops{0, 1, 2}));
  EXPECT_EQ(cheap.parts[1].ops, (Ops{4, 5}));
  EXPECT_EQ(cheap.parts[2].ops, (Ops{7, 8}));
  // A part of 2 operators saves 18 us and costs 256 bytes; of 3 operators, 27 us.
  const FlatCosts dear(model, {.chip = 1, .cpu = 10}, 20.0 / 256);
  const Partition few = must_partition(model, {3, 6}, dear, options);
  ASSERT_EQ(few.parts.size(), 1u);
  EXPECT_EQ(few.parts[0].ops, (Ops{0, 1, 2}));
  EXPECT_EQ(few.ops[4].place, Place::kNotWorthIt);
  EXPECT_EQ(few.ops[4].blocker, 3);
}

TEST(Partition, SeveralAreNeverPredictedSlowerThanOne) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::uint32_t state = seed;
    const auto random = [&state](std::uint32_t below) {
      state = state * 1664525u + 1013904223u;
      return (state >> 16) % below;
    };
    QuantizedModel builder;
    std::vector<std::int32_t> tensors = {builder.input({1, 4, 4, 8})};
    for (int i = 0; i < 24; ++i) {
      const std::int32_t a = tensors[random(static_cast<std::uint32_t>(tensors.size()))];
      const std::int32_t b = tensors[random(static_cast<std::uint32_t>(tensors.size()))];
      tensors.push_back(random(3) == 0 ? builder.add(a, b) : builder.conv(tensors.back(), 8));
    }
    const ir::Model model = builder.finish({tensors.back()});
    std::vector<std::int32_t> broken;
    for (std::int32_t op = 0; op < 24; ++op) {
      if (random(4) == 0) broken.push_back(op);
    }
    const FlatCosts costs(model, {.chip = 1, .cpu = 10, .parameter_bytes = 50}, 0.01 * random(20));
    PartitionOptions first, several;
    first.choice = PartitionOptions::Choice::kFirst;
    several.several_parts = true;
    const Partition one = must_partition(model, broken, costs, first);
    const Partition best = must_partition(model, broken, costs);
    const Partition many = must_partition(model, broken, costs, several);
    EXPECT_GE(best.chip_op_count(), one.chip_op_count()) << seed;
    EXPECT_LE(many.predicted_us, best.predicted_us) << seed;
    // Each part can run as one: no operator outside of it both needs and feeds it.
    for (const Partition* partition : {&one, &best, &many}) {
      for (const Part& part : partition->parts) {
        const ops::Dependencies graph(model);
        std::vector<bool> inside(24), needs(24);
        for (const std::int32_t op : part.ops) inside[at(op)] = true;
        for (std::int32_t op = 0; op < 24; ++op) {
          for (const std::int32_t before : graph.predecessors(op)) {
            const auto p = static_cast<std::size_t>(before);
            if (inside[p] ? !inside[at(op)] : needs[p]) needs[at(op)] = true;
          }
          EXPECT_FALSE(inside[at(op)] && needs[at(op)]) << seed;
        }
      }
    }
  }
}

TEST(Partition, IntermediateTensorsWithoutEffectAreNoted) {
  const ir::Model model = chain(5);
  PartitionOptions options;
  options.intermediate_tensors = {"CONV_2D_3"};
  // The last operators do not fit: the part ends in front of that tensor anyway.
  const Partition result = must_partition(model, {3, 4}, cheap_transfers(model), options);
  ASSERT_EQ(result.parts.size(), 1u);
  EXPECT_EQ(result.parts[0].ops, (Ops{0, 1, 2}));
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("-i changes nothing"), std::string::npos) << result.notes[0];
}

TEST(Partition, IntermediateTensorsEndThePart) {
  const ir::Model model = chain(5);
  PartitionOptions options;
  options.intermediate_tensors = {"CONV_2D_2"};
  const Partition result = must_partition(model, {}, cheap_transfers(model), options);
  ASSERT_EQ(result.parts.size(), 1u);
  EXPECT_EQ(result.parts[0].ops, (Ops{0, 1, 2}));
  EXPECT_EQ(result.ops[3].place, Place::kAfterCut);
  EXPECT_TRUE(result.notes.empty());
  options.intermediate_tensors = {"nothing"};
  const auto unknown = partition(model, all_fit_but(model, {}), cheap_transfers(model), options);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("no tensor 'nothing'"), std::string::npos);
  options.intermediate_tensors = {"input"};
  EXPECT_FALSE(partition(model, all_fit_but(model, {}), cheap_transfers(model), options).ok());
}

TEST(Partition, NamesOfIntermediateTensorsMayHaveCommasAndNeedNotBeUnique) {
  QuantizedModel builder;
  const std::int32_t input = builder.input({1, 8, 8, 8}, "twice");
  const std::int32_t a = builder.conv(input, 8), b = builder.conv(a, 8), c = builder.conv(b, 8);
  builder.name(a, "one");
  builder.name(b, "one,two");
  builder.name(c, "twice");
  const ir::Model model = builder.finish({builder.conv(c, 8)});
  PartitionOptions options;
  options.intermediate_tensors = {"one", "two"};  // as -i one,two is taken apart
  EXPECT_EQ(must_partition(model, {}, cheap_transfers(model), options).parts[0].ops, (Ops{0, 1}));
  options.intermediate_tensors = {"one"};
  EXPECT_EQ(must_partition(model, {}, cheap_transfers(model), options).parts[0].ops, (Ops{0}));
  options.intermediate_tensors = {"twice"};
  EXPECT_EQ(must_partition(model, {}, cheap_transfers(model), options).parts[0].ops, (Ops{0, 1, 2}));
}

// The last operator's result is 64 times what it is made of.
TEST(Advice, OutputsThatCostMoreThanTheySaveAreSaid) {
  QuantizedModel builder;
  std::int32_t x = builder.input({1, 8, 8, 16});
  for (int i = 0; i < 3; ++i) x = builder.conv(x, 16);
  builder.name(x, "small");
  const ir::Model model = builder.finish({builder.resize("RESIZE_NEAREST_NEIGHBOR", x, 64, 64)});
  const FlatCosts costs(model, {.chip = 1, .cpu = 100}, 0.02);
  const std::vector<std::string> notes = advise(model, costs, must_partition(model, {}, costs));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("-i 'small'"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("to send back instead of"), std::string::npos) << notes[0];
  const FlatCosts cheap(model, {.chip = 1, .cpu = 100}, 0.0001);
  EXPECT_TRUE(advise(model, cheap, must_partition(model, {}, cheap)).empty());
}

TEST(Partition, NothingFits) {
  const ir::Model model = chain(3);
  const Partition result = must_partition(model, {0, 1, 2}, cheap_transfers(model));
  EXPECT_TRUE(result.parts.empty());
  EXPECT_DOUBLE_EQ(result.predicted_us, result.all_cpu_us);
}

// Balanced by time: one operator ten times as slow as the others stands alone.
TEST(Segments, BalancedByPredictedTime) {
  class OneSlow : public FlatCosts {
   public:
    using FlatCosts::FlatCosts;
    PartCost part(std::span<const std::int32_t> ops, std::span<const std::int32_t> inputs,
                  std::span<const std::int32_t> outputs, std::int64_t cache) const override {
      PartCost cost = FlatCosts::part(ops, inputs, outputs, cache);
      if (std::find(ops.begin(), ops.end(), 8) != ops.end()) cost.compute += 9;
      return cost;
    }
  };
  const ir::Model model = chain(10);
  const OneSlow costs(model, {.chip = 1, .cpu = 10}, 0);
  const auto segments = cut_segments(model, all_fit_but(model, {}), costs, 2);
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  ASSERT_EQ(segments->size(), 2u);
  EXPECT_EQ((*segments)[0].ops, (Ops{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ((*segments)[1].ops, (Ops{8, 9}));
  EXPECT_EQ((*segments)[0].outputs, (*segments)[1].inputs);
  EXPECT_FALSE(cut_segments(model, all_fit_but(model, {}), costs, 11).ok());
  EXPECT_FALSE(cut_segments(model, all_fit_but(model, {}), costs, 0).ok());
}

TEST(Segments, LongModelsAreCutToo) {
  const ir::Model model = chain(700);
  const auto segments = cut_segments(model, all_fit_but(model, {}), cheap_transfers(model), 4);
  ASSERT_TRUE(segments.ok());
  std::int32_t next = 0;
  for (const Segment& segment : *segments) {
    EXPECT_NEAR(static_cast<double>(segment.ops.size()), 175, 5);
    for (const std::int32_t op : segment.ops) EXPECT_EQ(op, next++);
  }
  EXPECT_EQ(next, 700);
}

TEST(Segments, AnExtractedModelIsWellFormed) {
  const ir::Model model = chain(6);
  const auto segments = cut_segments(model, all_fit_but(model, {}), cheap_transfers(model), 3);
  ASSERT_TRUE(segments.ok());
  for (const Segment& segment : *segments) {
    const ir::Model part = extract_model(model, segment.ops, segment.inputs, segment.outputs);
    EXPECT_TRUE(ir::verify(part).ok()) << ir::verify(part).message();
    EXPECT_EQ(part.subgraphs[0].operators.size(), 2u);
    EXPECT_EQ(part.subgraphs[0].tensors.size(), 7u);  // 3 activations, 2 weights, 2 biases
    EXPECT_EQ(part.buffers.size(), 5u);
  }
}

TEST(Search, FindsTheLongestInFewAttempts) {
  for (const std::int32_t ops : {1, 2, 7, 535}) {
    for (const std::int32_t step : {1, 10}) {
      for (std::int32_t limit = 0; limit <= ops; limit += std::max(1, ops / 9)) {
        const auto found = longest_that_compiles(ops, step, [&](std::int32_t n) -> Result<bool> { return n <= limit; });
        ASSERT_TRUE(found.ok());
        std::int32_t expected = ops;
        while (expected > limit) expected -= step;
        EXPECT_EQ(found->ops, std::max(0, expected)) << ops << " " << step << " " << limit;
        EXPECT_LE(found->attempts, 2 + static_cast<int>(std::ceil(std::log2(ops / step + 1))));
      }
    }
  }
  EXPECT_FALSE(longest_that_compiles(5, 0, [](std::int32_t) -> Result<bool> { return true; }).ok());
}

}  // namespace
}  // namespace reef::partition
