// SPDX-License-Identifier: Apache-2.0
#include "quantize/headroom.h"

#include <cmath>

#include <gtest/gtest.h>

#include "quantize/graph_constants.h"
#include "small_models.h"

namespace reef::quantize {
namespace {

// One operator with a range for each tensor, as calibration saw it.
struct Observed {
  Observed(const char* type, std::vector<Range> seen) : ranges(std::move(seen)) {
    model.buffers.resize(1);
    model.subgraphs.resize(1);
    std::vector<std::int32_t> inputs;
    for (const Range& range : ranges) {
      model.subgraphs[0].tensors.push_back(testing::tensor(ir::DataType::kFloat32, {1, 4, 1}));
      TensorStatistics statistics;
      statistics.samples = 6;
      statistics.min = range.min;
      statistics.max = range.max;
      calibration.tensors.push_back(statistics);
    }
    for (std::int32_t t = 0; t + 1 < static_cast<std::int32_t>(ranges.size()); ++t) inputs.push_back(t);
    add(type, inputs, static_cast<std::int32_t>(ranges.size()) - 1);
  }
  void add(const char* type, std::vector<std::int32_t> inputs, std::int32_t output) {
    model.subgraphs[0].operators.push_back(testing::op(type, std::move(inputs), {output}));
  }
  // Of the last tensor. Ranges hold zero, as choose_range makes them.
  Range result() {
    for (Range& range : ranges) range = {std::min(range.min, 0.0F), std::max(range.max, 0.0F)};
    leave_headroom(model, calibration, ranges);
    return ranges.back();
  }

  ir::Model model;
  Calibration calibration;
  std::vector<Range> ranges;
};

// Variances from 0.01 to 0.04: factors from 5 to 10. A flatter token may have 40.
TEST(Headroom, FactorsMayBeLargerThanAllThatWereSeen) {
  EXPECT_FLOAT_EQ(Observed("RSQRT", {{0.01F, 0.04F}, {5, 10}}).result().max, 40);
}

TEST(Headroom, TheSmallestFactorKeepsItsSteps) {
  const Range range = Observed("RSQRT", {{0.01F, 1}, {1, 10}}).result();
  EXPECT_FLOAT_EQ(range.max, 12);
  EXPECT_EQ(range.min, 0);
}

// Steps of the variance are 1 / 255. One of 1e-6 becomes 0, as one of a quarter of a step does.
TEST(Headroom, FactorsOfVariancesThatBecomeZeroAreAllTheSame) {
  const Range range = Observed("RSQRT", {{1e-6F, 1}, {1, 1000}}).result();
  EXPECT_NEAR(range.max, std::sqrt(4 * 255.0), 1e-3);
}

// A sum of attention's weights from a guard of 1e-5 to 255: no quotient is larger than that of 8 steps.
TEST(Headroom, QuotientsEndWhereDivisorsAreRoundedAway) {
  Observed division("DIV", {{1, 1}, {1e-5F, 255}, {1.0F / 255, 1e5F}});
  ir::Tensor& one = division.model.subgraphs[0].tensors[0];
  one.shape = {1};
  set_constant(division.model, one, std::vector<float>{1});
  EXPECT_FLOAT_EQ(division.result().max, 0.125F);
  Observed even("DIV", {{1, 1}, {100, 255}, {1.0F / 255, 0.01F}});
  ir::Tensor& top = even.model.subgraphs[0].tensors[0];
  top.shape = {1};
  set_constant(even.model, top, std::vector<float>{1});
  EXPECT_FLOAT_EQ(even.result().max, 0.01F);
}

TEST(Headroom, MeansMayHaveEitherSign) {
  Observed normalization("MEAN", {{-2, 6}, {-0.01F, 0.5F}});
  EXPECT_FLOAT_EQ(normalization.result().max, 0.5F);  // of a pool: nobody subtracts it
  normalization.add("SUB", {0, 1}, 1);
  const Range range = normalization.result();
  EXPECT_FLOAT_EQ(range.min, -1);
  EXPECT_FLOAT_EQ(range.max, 1);
}

TEST(Headroom, MeansKeepHalfOfTheStepsOfTheirOperand) {
  Observed normalization("MEAN", {{-2, 6}, {0, 3}});
  normalization.add("SUB", {0, 1}, 1);
  const Range range = normalization.result();
  EXPECT_FLOAT_EQ(range.min, -2);
  EXPECT_FLOAT_EQ(range.max, 3);
}

}  // namespace
}  // namespace reef::quantize
