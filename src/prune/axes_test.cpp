// SPDX-License-Identifier: Apache-2.0
// A unit whose producers compute nothing but zeros adds nothing to any result, so that a model with it and one without
// it must give the same outputs. That is tried for every group of units of networks with all structures that tie
// channels together: a channel that is tied to a wrong one, or cut at a wrong place, changes the outputs or the shapes.
#include "prune/axes.h"

#include <algorithm>

#include "prune/activations.h"
#include "prune/remove_units.h"
#include "prune/test_networks.h"
#include "prune/unit_groups.h"

namespace reef::prune {
namespace {

using testing::Network;

// Sets what the layers compute for a unit to zero.
void silence(ir::Model& model, const Axes& axes, std::int32_t unit) {
  for (const LinearLayer& layer : linear_layers(model)) {
    for (const std::int32_t t : {layer.weights, layer.bias}) {
      ir::Tensor& tensor = model.subgraphs[0].tensors[reef::at(t)];
      const int axis = t == layer.bias ? 0 : layer.output_axis;
      std::vector<float> values = ir::float_values(model, tensor);
      const std::int64_t inner = tensor.shape.product(axis + 1, tensor.shape.rank());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto at = static_cast<std::int32_t>(static_cast<std::int64_t>(i) / inner % tensor.shape[axis]);
        if (axes.unit(t, axis, at) == unit) values[i] = 0;
      }
      ir::set_constant(model, tensor, values);
    }
  }
}

// Returns how many units each group has.
std::vector<std::size_t> expect_removable(ir::Model model, HeadUnits heads = HeadUnits::kWithinHeads) {
  own_biases(model);
  const Result<Axes> axes = Axes::find(model, heads);
  EXPECT_TRUE(axes.ok());
  std::vector<std::size_t> sizes;
  for (const UnitGroup& group : unit_groups(model, *axes, linear_layers(model))) {
    sizes.push_back(group.units.size());
    ir::Model silent = model;
    std::vector<bool> removed(static_cast<std::size_t>(axes->limit()), false);
    for (const std::size_t u : {std::size_t{0}, group.units.size() / 2}) {
      silence(silent, *axes, group.units[u]);
      removed[reef::at(group.units[u])] = true;
    }
    const Result<ir::Model> smaller = remove_units(silent, kept_indices(silent, *axes, removed));
    EXPECT_TRUE(smaller.ok()) << group.name << ": " << smaller.status().message();
    if (!smaller.ok()) continue;
    EXPECT_NE(smaller->subgraphs[0].tensors.size(), 0u);
    EXPECT_LT(testing::difference(silent, *smaller), 1e-10) << group.name;
    EXPECT_GT(testing::difference(model, *smaller), 1e-6) << group.name << ": the units did not matter";
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

TEST(PruneAxes, ChainOfConvolutions) {
  Network n;
  const auto x = n.relu(n.conv(n.conv(n.input({1, 6, 6, 3}), 8, 3, 1, "RELU"), 12, 3));
  EXPECT_EQ(expect_removable(n.finish(n.conv(x, 5, 1))), (std::vector<std::size_t>{8, 12}));
}

TEST(PruneAxes, ResidualStream) {
  Network n;
  const auto x = n.conv(n.input({1, 6, 6, 3}), 8, 3);
  const auto y = n.add(x, n.conv(n.relu(n.conv(x, 16, 1)), 8, 3));
  const auto z = n.add(n.conv(n.relu(y), 8, 3), y);
  EXPECT_EQ(expect_removable(n.finish(n.conv(n.relu(z), 4, 1))), (std::vector<std::size_t>{8, 16}));
}

TEST(PruneAxes, Concatenation) {
  Network n;
  const auto x = n.input({1, 6, 6, 3});
  const auto a = n.conv(x, 8, 3), b = n.conv(x, 6, 3);
  EXPECT_EQ(expect_removable(n.finish(n.conv(n.relu(n.concatenation(a, b)), 4, 3))), (std::vector<std::size_t>{6, 8}));
}

TEST(PruneAxes, SplitInPartsOfDifferentUse) {
  Network n;
  const auto parts = n.split(n.conv(n.input({1, 6, 6, 3}), 16, 3), 2);
  const auto y = n.concatenation(n.conv(n.relu(parts[0]), 8, 3), parts[1]);
  EXPECT_EQ(expect_removable(n.finish(n.conv(y, 4, 1))), (std::vector<std::size_t>{8, 8, 8}));
}

TEST(PruneAxes, DepthwiseAndSqueezeExcite) {
  Network n;
  const auto x = n.relu(n.depthwise(n.conv(n.input({1, 6, 6, 3}), 12, 1), 3));
  const auto gate = n.op("LOGISTIC", "", {n.conv(n.relu(n.conv(n.mean(x), 4, 1)), 12, 1)}, {1, 1, 1, 12});
  EXPECT_EQ(expect_removable(n.finish(n.conv(n.multiply(x, gate), 5, 1))), (std::vector<std::size_t>{4, 12}));
}

TEST(PruneAxes, GroupedConvolution) {
  Network n;
  const auto x = n.relu(n.conv(n.input({1, 6, 6, 3}), 12, 3));
  const auto y = n.relu(n.conv(x, 18, 3, /*groups=*/3));
  // Each group loses the same: 4 of 12, 6 of 18.
  EXPECT_EQ(expect_removable(n.finish(n.conv(y, 5, 1))), (std::vector<std::size_t>{4, 6}));
}

TEST(PruneAxes, FlattenedToADenseLayer) {
  Network n;
  const auto x = n.relu(n.conv(n.input({1, 4, 4, 3}), 8, 3));
  EXPECT_EQ(expect_removable(n.finish(n.dense(n.relu(n.dense(n.reshape(x, {1, 128}), 10)), 4))),
            (std::vector<std::size_t>{8, 10}));
}

TEST(PruneAxes, ChannelsFirstFlattened) {
  Network n;
  const auto x = n.transpose(n.relu(n.conv(n.input({1, 4, 4, 3}), 8, 3)), {0, 3, 1, 2});
  EXPECT_EQ(expect_removable(n.finish(n.dense(n.reshape(x, {1, 128}), 4))), (std::vector<std::size_t>{8}));
}

std::int32_t attention(Network& n, std::int32_t x, int heads, int each) {
  const auto to_heads = [&](std::int32_t t) { return n.transpose(n.reshape(t, {1, 6, heads, each}), {0, 2, 1, 3}); };
  const auto q = to_heads(n.dense(x, heads * each)), k = to_heads(n.dense(x, heads * each));
  const auto v = to_heads(n.dense(x, heads * each));
  const auto scores = n.product(q, k, true);
  const auto weights = n.op("SOFTMAX", "SoftmaxOptions", {scores}, n.shape(scores), {{"beta", 1.0}});
  const auto joined = n.reshape(n.transpose(n.product(weights, v, false), {0, 2, 1, 3}), {1, 6, heads * each});
  return n.add(x, n.dense(joined, n.shape(x).last()));
}

TEST(PruneAxes, AttentionWithinHeads) {
  Network n;
  const auto y = attention(n, n.input({1, 6, 10}), 3, 8);
  // Queries with keys, and values: the same units of each head.
  EXPECT_EQ(expect_removable(n.finish(n.dense(y, 4))), (std::vector<std::size_t>{8, 8}));
}

TEST(PruneAxes, WholeHeads) {
  Network n;
  const auto y = attention(n, n.input({1, 6, 10}), 4, 5);
  EXPECT_EQ(expect_removable(n.finish(n.dense(y, 4)), HeadUnits::kWholeHeads), (std::vector<std::size_t>{4}));
}

// What is kept in multiples of what tiles like is the width of a head, not that of all heads together.
TEST(PruneAxes, ChannelsOfAUnitBesideEachOther) {
  Network n;
  ir::Model model = n.finish(n.dense(attention(n, n.input({1, 6, 10}), 3, 8), 4));
  own_biases(model);
  for (const auto& [heads, each] : {std::pair(HeadUnits::kWithinHeads, 1), std::pair(HeadUnits::kWholeHeads, 8)}) {
    const Result<Axes> axes = Axes::find(model, heads);
    ASSERT_TRUE(axes.ok());
    const std::vector<UnitGroup> groups = unit_groups(model, *axes, linear_layers(model));
    EXPECT_FALSE(groups.empty());
    for (const UnitGroup& group : groups) EXPECT_EQ(group.channels_each, each) << group.name;
  }
}

TEST(PruneAxes, WhatANormalizationAveragesOverStaysWhole) {
  Network n;
  const auto x = n.dense(n.input({1, 6, 10}), 12);
  const auto mean = n.op("MEAN", "ReducerOptions", {x, n.ints({2})}, {1, 6, 1}, {{"keep_dims", true}});
  const auto y = n.dense(n.relu(n.dense(n.binary("SUB", "SubOptions", x, mean), 16)), 4);
  EXPECT_EQ(expect_removable(n.finish(y)), (std::vector<std::size_t>{16}));
}

TEST(PruneAxes, OperatorsWithoutARuleKeepEverything) {
  Network n;
  const auto x = n.conv(n.input({1, 4, 4, 3}), 8, 3);
  const auto y =
      n.op("CUMSUM", "CumsumOptions", {x, n.ints({3}, true)}, {1, 4, 4, 8}, {{"exclusive", false}, {"reverse", false}});
  EXPECT_TRUE(expect_removable(n.finish(n.conv(y, 4, 1))).empty());
}

}  // namespace
}  // namespace reef::prune
