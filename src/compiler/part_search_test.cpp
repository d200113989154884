// SPDX-License-Identifier: Apache-2.0
// Cutting parts, with answers made for the test instead of a code generator. tests/cut_networks_test.cpp has the real
// one.
#include "compiler/part_search.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "chip/links.h"
#include "quantized_model.h"

namespace reef::compiler {
namespace {

using testing::QuantizedModel;

using Ops = std::vector<std::int32_t>;

bool has(const Ops& ops, std::int32_t op) { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

// Convolutions one behind the other, each with enough work to be worth the chip.
ir::Model chain(int length) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 32, 32, 128});
  for (int i = 0; i < length; ++i) x = model.conv(x, 128, 3);
  return model.finish({x});
}

// Op 0 is read by two chains of `length`, the second of which ends in a sum with nothing else: 0, then 1..length and
// length+1..2*length.
ir::Model fork(int length) {
  QuantizedModel model;
  const std::int32_t trunk = model.conv(model.input({1, 32, 32, 128}), 128, 3);
  std::vector<std::int32_t> ends;
  for (int branch = 0; branch < 2; ++branch) {
    std::int32_t x = trunk;
    for (int i = 0; i < length; ++i) x = model.conv(x, 128, 3);
    ends.push_back(x);
  }
  return model.finish(ends);
}

class PartSearch : public ::testing::Test {
 protected:
  // Answers kUnsupported for a part that `fails`, with an operator where memory is short.
  void fail_where(const std::function<bool(const Ops&)>& fails, std::int32_t crowded) {
    try_part_ = [=](const ir::Model&, const partition::Part& part) {
      PartTrial trial;
      if (!fails(part.ops)) return trial;
      trial.status = unsupported("activations do not fit");
      trial.crowded = has(part.ops, crowded) ? crowded : -1;
      return trial;
    };
  }
  // The same with operators that have no code.
  void refuse(const std::set<std::int32_t>& refused) {
    try_part_ = [=](const ir::Model&, const partition::Part& part) {
      PartTrial trial;
      for (const std::int32_t op : part.ops) {
        if (refused.contains(op)) trial.refused.push_back({op, "no code"});
      }
      if (!trial.refused.empty()) trial.status = unsupported("no code");
      return trial;
    };
  }
  void search(const ir::Model& model) {
    options_.plan.rewrites.none = true;
    const auto shared = std::make_shared<const ir::Model>(model);
    auto plan = make_plan(shared, options_.plan);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    plan_ = std::move(plan).value();
    ASSERT_EQ(plan_.partition.chip_op_count(), static_cast<std::int32_t>(shared->subgraphs[0].operators.size()));
    std::size_t tried_ops = 0;
    const auto counting = [&](const ir::Model& one, const partition::Part& part) {
      tried_ops += part.ops.size();
      return try_part_(one, part);
    };
    auto report = find_parts(plan_, counting, options_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    report_ = std::move(report).value();
    // Whatever was found, all of it has code.
    for (const partition::Part& part : plan_.partition.parts) {
      EXPECT_TRUE(try_part_(*plan_.model, part).status.ok());
    }
    // As often as allowed, and a bisection.
    EXPECT_LE(tried_ops, static_cast<std::size_t>(options_.most_trials + 10) * shared->subgraphs[0].operators.size());
  }
  // Where a second part pays.
  static PartSearchOptions on_a_slow_host() {
    PartSearchOptions options;
    options.plan.costs.link = chip::find_link("usb3-rpi4");
    return options;
  }
  std::vector<Ops> parts() const {
    std::vector<Ops> result;
    for (const partition::Part& part : plan_.partition.parts) result.push_back(part.ops);
    return result;
  }

  TryPart try_part_ = [](const ir::Model&, const partition::Part&) { return PartTrial{}; };
  PartSearchOptions options_ = on_a_slow_host();
  Plan plan_;
  PartSearchReport report_;
};

TEST_F(PartSearch, WhatHasCodeIsTriedOnceAndLeftAsItIs) {
  search(chain(5));
  EXPECT_EQ(parts(), (std::vector<Ops>{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(report_.trials, 1);
  EXPECT_FALSE(report_.is_cut);
  EXPECT_TRUE(report_.left.empty());
}

TEST_F(PartSearch, AnOperatorThatNeverFitsIsLeftToTheCpuWhereverItStands) {
  for (const std::int32_t bad : {0, 1, 4, 7, 8}) {
    fail_where([=](const Ops& ops) { return has(ops, bad); }, bad);
    search(chain(9));
    std::size_t on_chip = 0;
    for (const Ops& ops : parts()) on_chip += ops.size();
    EXPECT_EQ(on_chip, 8u) << bad;
    EXPECT_EQ(parts().size(), bad == 0 || bad == 8 ? 1u : 2u) << bad;
    ASSERT_EQ(report_.left.size(), 1u) << bad;
    EXPECT_EQ(report_.left[0].op, bad);
    EXPECT_NE(report_.left[0].reason.find("activations do not fit"), std::string::npos);
    EXPECT_TRUE(report_.is_cut);
    EXPECT_FALSE(plan_.partition.notes.empty());
    EXPECT_EQ(plan_.partition.ops[at(bad)].place, partition::Place::kRule);
  }
}

TEST_F(PartSearch, WhatDoesNotFitTogetherBecomesTwoParts) {
  fail_where([](const Ops& ops) { return has(ops, 3) && has(ops, 4); }, 4);
  search(chain(9));
  EXPECT_EQ(parts(), (std::vector<Ops>{{0, 1, 2, 3}, {4, 5, 6, 7, 8}}));
  EXPECT_TRUE(report_.left.empty());
}

TEST_F(PartSearch, OperatorsWithoutCodeInTheMiddleLeaveTwoParts) {
  refuse({3, 4});
  search(chain(9));
  EXPECT_EQ(parts(), (std::vector<Ops>{{0, 1, 2}, {5, 6, 7, 8}}));
  EXPECT_EQ(report_.left.size(), 2u);
}

TEST_F(PartSearch, OfManyPiecesTheLargestTwoAreTakenUnlessMoreAreAskedFor) {
  refuse({2, 6, 8});
  search(chain(12));
  EXPECT_EQ(parts(), (std::vector<Ops>{{3, 4, 5}, {9, 10, 11}}));
  options_.plan.partition.several_parts = true;
  search(chain(12));
  EXPECT_EQ(parts(), (std::vector<Ops>{{0, 1}, {3, 4, 5}, {7}, {9, 10, 11}}));
}

// Twelve blocks with the same two faults, of which one shows only when the other is gone.
TEST_F(PartSearch, BlocksThatAreAlikeAreCutTogether) {
  options_.plan.partition.several_parts = true;
  try_part_ = [](const ir::Model&, const partition::Part& part) {
    PartTrial trial;
    for (const std::int32_t op : part.ops) {
      if (op % 5 == 4) trial.refused.push_back({op, "no code"});
    }
    if (!trial.refused.empty() || (part.ops.size() > 1 && part.ops.front() % 5 == 0)) trial.status = unsupported("no");
    if (trial.refused.empty()) trial.crowded = part.ops.front();
    return trial;
  };
  search(chain(60));
  std::size_t on_chip = 0;
  for (const Ops& ops : parts()) on_chip += ops.size();
  EXPECT_GE(on_chip, 36u);
}

TEST_F(PartSearch, TheOtherBranchStays) {
  const int length = 4;  // 0, 1..4, 5..8
  fail_where([](const Ops& ops) { return has(ops, 6); }, 6);
  search(fork(length));
  std::set<std::int32_t> on_chip;
  for (const Ops& ops : parts()) on_chip.insert(ops.begin(), ops.end());
  EXPECT_EQ(on_chip, (std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 7, 8}));
}

TEST_F(PartSearch, AReasonWithoutAPlaceIsFoundByHalving) {
  fail_where([](const Ops& ops) { return ops.size() > 11; }, -1);
  search(chain(64));
  std::size_t on_chip = 0;
  for (const Ops& ops : parts()) on_chip += ops.size();
  EXPECT_GE(on_chip, 8u);
}

TEST_F(PartSearch, ASingleOperatorThatHasCodeIsFound) {
  fail_where([](const Ops& ops) { return ops != Ops{0}; }, -1);
  search(chain(40));
  EXPECT_EQ(parts(), (std::vector<Ops>{{0}}));
}

TEST_F(PartSearch, NothingIsAnAnswerToo) {
  fail_where([](const Ops&) { return true; }, -1);
  search(chain(20));
  EXPECT_TRUE(parts().empty());
  EXPECT_EQ(plan_.partition.chip_op_count(), 0);
  EXPECT_FALSE(report_.left.empty());
}

TEST_F(PartSearch, TheSameQuestionHasTheSameAnswer) {
  fail_where([](const Ops& ops) { return ops.size() > 5 || has(ops, 9); }, 9);
  search(chain(30));
  const std::vector<Ops> first = parts();
  search(chain(30));
  EXPECT_EQ(parts(), first);
}

TEST_F(PartSearch, OtherErrorsEndIt) {
  try_part_ = [](const ir::Model&, const partition::Part&) { return PartTrial{internal_error("broken"), {}, -1}; };
  auto plan = make_plan(std::make_shared<const ir::Model>(chain(3)), {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(find_parts(*plan, try_part_, options_).status().message(), "broken");
}

TEST_F(PartSearch, TimeThatRunsOutIsAnErrorAndNotAnotherAnswer) {
  fail_where([](const Ops& ops) { return ops.size() > 2; }, -1);
  int left = 3;
  options_.is_late = [&left] { return --left < 0; };
  auto plan = make_plan(std::make_shared<const ir::Model>(chain(30)), {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(find_parts(*plan, try_part_, options_).status().code(), StatusCode::kResourceExhausted);
}

// LEAKY_RELU is rewritten into several operators; those have no code here, and the model without them does better.
TEST_F(PartSearch, RewritesThatDoNotFitAreTakenBack) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 32, 32, 128});
  for (int i = 0; i < 4; ++i) x = model.conv(x, 128, 3);
  x = model.unary("LEAKY_RELU", x, "LeakyReluOptions", {}, 2);
  const auto given = std::make_shared<const ir::Model>(model.finish({x}));
  options_.given = given;
  auto plan = make_plan(given, options_.plan);
  ASSERT_TRUE(plan.ok());
  ASSERT_NE(plan->model, given);
  try_part_ = [&](const ir::Model& tried, const partition::Part& part) {
    PartTrial trial;
    if (&tried != given.get() && part.ops.size() > 1) trial.status = unsupported("too much");
    return trial;
  };
  const auto report = find_parts(*plan, try_part_, options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(plan->model, given);
  EXPECT_EQ(plan->partition.chip_op_count(), 4);
  EXPECT_TRUE(report->is_cut);
}

}  // namespace
}  // namespace reef::compiler
