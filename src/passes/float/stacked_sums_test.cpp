// SPDX-License-Identifier: Apache-2.0
// Attention over stacked branches is computed without tensors of five axes; sums of other tensors stay.
#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

constexpr double kRounding = 1e-5;

int largest_rank(const ir::Model& model) {
  int rank = 0;
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    for (const std::int32_t id : op.outputs) {
      rank = std::max(rank, model.subgraphs[0].tensors[at(id)].shape.rank());
    }
  }
  return rank;
}

// softmax over axis 1 of [1, parts, c, 1, 1], as an importer writes it.
int softmax_over_parts(Maker& make, int x) {
  const int turned = make.transpose(x, {0, 4, 2, 3, 1});
  const int soft =
      make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 1.0}}), {turned}, make.shape(turned));
  return make.transpose(soft, {0, 4, 2, 3, 1});
}

// What weighs `stack` [1, parts, c, h, w] by attention that its own sum leads to, and adds it up.
int attended(Maker& make, int stack) {
  const std::int32_t parts = make.shape(stack)[1], channels = make.shape(stack)[2];
  const int pooled = make.reduce("MEAN", make.reduce("SUM", stack, {1}, false), {2, 3}, true);
  const int scores = make.conv(make.unary("RELU", make.conv(pooled, 3, 1)), parts * channels, 1);
  const int weights = softmax_over_parts(make, make.reshape(scores, {1, parts, channels, 1, 1}));
  return make.reduce("SUM", make.binary("MUL", stack, weights), {1}, false);
}

TEST(StackedSums, SelectiveKernelsHaveFourAxes) {
  Maker make;
  const int x = make.to_nchw(make.input({1, 6, 5, 4}));
  std::vector<int> branches;
  for (const int filter : {3, 5}) branches.push_back(make.reshape(make.conv(x, 4, filter), {1, 1, 4, 6, 5}));
  const int y = make.conv(attended(make, make.concatenation(branches, 1)), 4, 1);
  const ir::Model after = expect_same(make.finish({make.to_nhwc(y)}), kRounding);
  EXPECT_LE(largest_rank(after), 4) << operators_of(after);
  EXPECT_EQ(count(after, "SUM") + count(after, "SOFTMAX") + count(after, "TRANSPOSE"), 0) << operators_of(after);
}

TEST(StackedSums, SplitAttentionTakesSlicesOfChannels) {
  Maker make;
  const int x = make.to_nchw(make.input({1, 6, 5, 4}));
  const int radix = make.reshape(make.unary("RELU", make.conv(x, 8, 3)), {1, 2, 4, 6, 5});
  const int y = make.conv(attended(make, radix), 4, 1);
  const ir::Model after = expect_same(make.finish({make.to_nhwc(y)}), kRounding);
  EXPECT_LE(largest_rank(after), 4) << operators_of(after);
  EXPECT_EQ(count(after, "SUM") + count(after, "TRANSPOSE"), 0) << operators_of(after);
}

TEST(StackedSums, OtherReductionsOfThreeParts) {
  for (const char* reduction : {"SUM", "REDUCE_MAX", "REDUCE_MIN"}) {
    for (const bool keeps : {false, true}) {
      Maker make;
      const int x = make.input({2, 3, 4, 5, 6});
      const int scaled = make.binary("MUL", x, make.numbers({3, 1, 5, 1}));
      const ir::Model after = expect_same(make.finish({make.reduce(reduction, scaled, {1}, keeps)}), kRounding);
      EXPECT_EQ(count(after, reduction), 0) << operators_of(after);
    }
  }
}

TEST(StackedSums, LongAxesAndTensorsOfFourAxesStay) {
  Maker make;
  const int x = make.input({1, 20, 3, 4, 5}), y = make.input({1, 2, 4, 5});
  const ir::Model after =
      expect_same(make.finish({make.reduce("SUM", x, {1}, false), make.reduce("SUM", y, {1}, false)}), kRounding);
  EXPECT_EQ(count(after, "SUM"), 2) << operators_of(after);
}

}  // namespace
}  // namespace reef::passes::testing
