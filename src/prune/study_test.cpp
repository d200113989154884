// SPDX-License-Identifier: Apache-2.0
#include "prune/study.h"

#include <algorithm>
#include <numeric>

#include "prune/normal_equations.h"
#include "prune/removal_order.h"
#include "prune/sparse_weights.h"
#include "prune/test_networks.h"

namespace reef::prune {
namespace {

using testing::Network;
using testing::RandomSamples;

TEST(PruneMatrix, SolvesAndInverts) {
  constexpr std::size_t kSize = 70;  // more than two panels
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  Matrix root(kSize, kSize), a(kSize, kSize), x(kSize, 3), b(kSize, 3);
  for (double& v : root.data) v = normal(random);
  for (double& v : x.data) v = normal(random);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t k = 0; k < kSize; ++k) {
      for (std::size_t m = 0; m < kSize; ++m) a(i, k) += root(m, i) * root(m, k);
    }
    a(i, i) += 1;
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t k = 0; k < kSize; ++k) {
      for (std::size_t o = 0; o < 3; ++o) b(i, o) += a(i, k) * x(k, o);
    }
  }
  Matrix u = a;
  ASSERT_TRUE(factor(u));
  solve(u, b);
  for (std::size_t i = 0; i < x.data.size(); ++i) EXPECT_NEAR(b.data[i], x.data[i], 1e-8);
  const Matrix inverted = inverse(a);
  for (std::size_t i = 0; i < kSize; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < kSize; ++k) sum += a(i, k) * inverted(k, i);
    EXPECT_NEAR(sum, 1, 1e-8);
  }
  a(5, 5) = -1;
  EXPECT_FALSE(factor(a));
}

// Of two inputs that are equal one can go for nothing, however large its weights are; an independent one cannot.
TEST(PruneOrder, RedundantInputsGoFirst) {
  Reader reader;
  reader.gram = Matrix(3, 3);
  reader.gram(0, 0) = reader.gram(1, 1) = reader.gram(0, 1) = reader.gram(1, 0) = 100;
  reader.gram(2, 2) = 100;
  reader.weights = Matrix(3, 1);
  reader.weights(0, 0) = 5, reader.weights(1, 0) = 6, reader.weights(2, 0) = 1;
  reader.columns = {{0}, {1}, {2}};
  const std::vector<std::size_t> order = removal_order({reader}, 3);
  ASSERT_EQ(order.size(), 3u);
  EXPECT_NE(order[0], 2u);
  EXPECT_EQ(order[1], 2u);
}

// A layer whose outputs are all linear combinations of `rank` of them.
void make_redundant(ir::Model& model, std::size_t layer_number, int rank) {
  const LinearLayer layer = linear_layers(model)[layer_number];
  const std::vector<Matrix> before = {weights_of(model, layer, 0)};
  Matrix w = before[0];
  std::mt19937 random(11);
  std::normal_distribution<double> normal(0, 0.7);
  for (std::size_t o = static_cast<std::size_t>(rank); o < layer.outputs; ++o) {
    for (std::size_t c = 0; c <= layer.columns(); ++c) w(c, o) = 0;
    for (int k = 0; k < rank; ++k) {
      const double share = normal(random);
      for (std::size_t c = 0; c <= layer.columns(); ++c) w(c, o) += share * w(c, static_cast<std::size_t>(k));
    }
  }
  set_weights(model, layer, {w});
}

Cost parameters() {
  return [](const ir::Model& model) -> Result<double> { return static_cast<double>(parameter_count(model)); };
}

std::vector<std::int64_t> first(std::int64_t count) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), std::int64_t{0});
  return samples;
}

// 4 of 16 channels say everything: removing 12 must cost nothing once the next layer is fitted.
TEST(PruneStudy, RedundantChannelsCostNothing) {
  Network n;
  const auto x = n.conv(n.conv(n.input({1, 8, 8, 3}), 16, 3), 6, 3);
  ir::Model model = n.finish(x);
  make_redundant(model, 0, 4);
  StudyOptions options;
  options.multiple = 1;
  const auto study = Study::make(model, std::make_shared<RandomSamples>(24), first(24), options, parameters());
  ASSERT_TRUE(study.ok()) << study.status().message();
  std::size_t point = 0;
  while (point < (*study)->steps() && (*study)->removed_at(point)[0] < 12) ++point;
  ASSERT_EQ((*study)->removed_at(point)[0], 12u);
  const auto cut = (*study)->cut(point);
  ASSERT_TRUE(cut.ok());
  EXPECT_GT(testing::difference(model, *cut), 0.05) << "nothing to repair: the test shows nothing";
  const auto pruned = (*study)->repaired(point);
  ASSERT_TRUE(pruned.ok()) << pruned.status().message();
  EXPECT_LT(testing::difference(model, pruned->model), 1e-5);
  EXPECT_LT(parameter_count(pruned->model), parameter_count(model) / 3);
}

TEST(PruneStudy, RepairHelpsBehindActivationsAndStreams) {
  Network n;
  const auto x = n.conv(n.input({1, 8, 8, 3}), 16, 3, 1, "RELU");
  const auto y = n.add(x, n.conv(n.depthwise(n.conv(x, 32, 1, 1, "RELU6"), 3), 16, 1));
  const ir::Model model = n.finish(n.dense(n.mean(n.relu(y)), 5, false));
  StudyOptions options;
  const auto study = Study::make(model, std::make_shared<RandomSamples>(40), first(40), options, parameters());
  ASSERT_TRUE(study.ok()) << study.status().message();
  for (const std::size_t point : {(*study)->steps() / 3, (*study)->steps() / 2}) {
    const auto cut = (*study)->cut(point);
    const auto pruned = (*study)->repaired(point);
    ASSERT_TRUE(cut.ok() && pruned.ok());
    EXPECT_LT(testing::difference(model, pruned->model), 0.5 * testing::difference(model, *cut));
    // Activations are fused again, and channels come in fours.
    EXPECT_EQ(pruned->model.subgraphs[0].operators.size(), model.subgraphs[0].operators.size());
    for (const LinearLayer& layer : linear_layers(pruned->model)) {
      const std::size_t channels = layer.outputs * layer.groups;
      EXPECT_TRUE(channels < 8 || channels % 4 == 0) << channels;
    }
  }
}

// A block that adds next to nothing goes whole, before channels of the stream do.
TEST(PruneStudy, BlocksThatAddLittleGo) {
  Network n;
  const auto x = n.conv(n.input({1, 8, 8, 3}), 16, 3, 1, "RELU");
  const auto y = n.add(x, n.conv(n.conv(x, 32, 3, 1, "RELU"), 16, 3));
  ir::Model model = n.finish(n.conv(n.relu(y), 6, 1));
  const LinearLayer last_of_block = linear_layers(model)[2];
  Matrix w = weights_of(model, last_of_block, 0);
  for (std::size_t c = 0; c < last_of_block.columns(); ++c) {
    for (std::size_t o = 0; o < last_of_block.outputs; ++o) w(c, o) *= 1e-3;
  }
  set_weights(model, last_of_block, {w});
  StudyOptions options;
  options.blocks = true;
  const auto study = Study::make(model, std::make_shared<RandomSamples>(24), first(24), options, parameters());
  ASSERT_TRUE(study.ok()) << study.status().message();
  ASSERT_EQ((*study)->blocks().size(), 1u);
  std::size_t point = 0;
  while (point < (*study)->steps() && (*study)->blocks_removed_at(point).empty()) ++point;
  ASSERT_EQ((*study)->blocks_removed_at(point).size(), 1u);
  const auto pruned = (*study)->repaired(point);
  ASSERT_TRUE(pruned.ok()) << pruned.status().message();
  EXPECT_EQ(linear_layers(pruned->model).size(), 2u);
  EXPECT_LT(testing::difference(model, pruned->model), 1e-4);
}

TEST(PruneStudy, ResultsDoNotDependOnThreads) {
  Network n;
  const ir::Model model = n.finish(n.conv(n.conv(n.conv(n.input({1, 8, 8, 3}), 16, 3, 1, "RELU"), 12, 3), 4, 1));
  std::vector<ir::Model> results;
  for (const int threads : {1, 3}) {
    StudyOptions options;
    options.threads = threads;
    const auto study = Study::make(model, std::make_shared<RandomSamples>(20), first(20), options, parameters());
    ASSERT_TRUE(study.ok());
    auto pruned = (*study)->repaired((*study)->steps() / 2);
    ASSERT_TRUE(pruned.ok());
    results.push_back(std::move(pruned->model));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(PruneStudy, SaysWhenThereIsNothingToRemove) {
  Network n;
  const ir::Model model = n.finish(n.conv(n.input({1, 4, 4, 3}), 8, 3));
  const auto study = Study::make(model, std::make_shared<RandomSamples>(4), first(4), {}, parameters());
  ASSERT_FALSE(study.ok());
  EXPECT_NE(study.status().message().find("nothing can be removed"), std::string::npos);
  const auto none = Study::make(model, std::make_shared<RandomSamples>(4), {}, {}, parameters());
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("no samples"), std::string::npos);
}

// Exactly the share that was asked for is zero, and the outputs are nearer than with the smallest weights cut off.
TEST(PruneZeros, BeatMagnitude) {
  Network n;
  const auto x = n.conv(n.conv(n.input({1, 8, 8, 3}), 16, 3, 1, "RELU"), 16, 3, 1, "RELU");
  const ir::Model model = n.finish(n.conv(x, 6, 1));
  const auto study = Study::make(model, std::make_shared<RandomSamples>(40), first(40), {}, parameters());
  ASSERT_TRUE(study.ok());
  const auto pruned = (*study)->repaired(0, 0.5);
  ASSERT_TRUE(pruned.ok()) << pruned.status().message();
  EXPECT_NEAR(static_cast<double>(pruned->report.zeros), 0.5 * static_cast<double>(pruned->report.weights), 3);
  ir::Model plain = model;
  for (const LinearLayer& layer : linear_layers(plain)) {
    ir::Tensor& tensor = plain.subgraphs[0].tensors[at(layer.weights)];
    std::vector<float> values = ir::float_values(plain, tensor), sizes;
    for (const float v : values) sizes.push_back(std::abs(v));
    std::nth_element(sizes.begin(), sizes.begin() + std::ssize(sizes) / 2, sizes.end());
    const float limit = sizes[sizes.size() / 2];
    for (float& v : values) v = std::abs(v) < limit ? 0 : v;
    ir::set_constant(plain, tensor, values);
  }
  EXPECT_LT(testing::difference(model, pruned->model), 0.6 * testing::difference(model, plain));
}

}  // namespace
}  // namespace reef::prune
