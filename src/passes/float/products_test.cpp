// SPDX-License-Identifier: Apache-2.0
// Products of two computed matrices become BATCH_MATMUL of at most four axes.
#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

constexpr double kRounding = 1e-5;

int dense_of(Maker& make, int x, int weights, int bias) {
  Shape result = make.shape(x);
  result[result.rank() - 1] = make.shape(weights)[0];
  ir::Attributes options = Maker::no_activation();
  options.set("keep_num_dims", result.rank() > 2);
  std::vector<int> inputs = {x, weights};
  if (bias >= 0) inputs.push_back(bias);
  return make.op("FULLY_CONNECTED", "FullyConnectedOptions", options, inputs, result);
}

// torch.mm, F.linear, and Gemm with a bias.
TEST(Products, DenseLayersOfComputedWeights) {
  for (const bool has_bias : {false, true}) {
    for (const bool has_batch : {false, true}) {
      Maker make;
      const int x = make.input(has_batch ? Shape({2, 3, 8}) : Shape({6, 8})), weights = make.input({5, 8});
      const ir::Model after =
          expect_same(make.finish({dense_of(make, x, weights, has_bias ? make.numbers({5}) : -1)}), kRounding);
      EXPECT_EQ(count(after, "BATCH_MATMUL"), 1) << operators_of(after);
      EXPECT_EQ(count(after, "FULLY_CONNECTED"), 0) << operators_of(after);
      EXPECT_EQ(count(after, "ADD"), has_bias ? 1 : 0) << operators_of(after);
    }
  }
}

TEST(Products, ConstantWeightsStayALayer) {
  Maker make;
  const int x = make.input({6, 8});
  const int turned = make.transpose(make.numbers({8, 5}), {1, 0});
  const ir::Model after = expect_same(make.finish({dense_of(make, x, turned, -1)}), kRounding);
  EXPECT_EQ(count(after, "FULLY_CONNECTED"), 1) << operators_of(after);
}

int product(Maker& make, int a, int b, bool adj_y, Shape result) {
  return make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_x", false}, {"adj_y", adj_y}}), {a, b},
                 std::move(result));
}

// Two groups of three heads; the keys and values of a group are its own, or one for each head, or one for all.
TEST(Products, GroupedHeadsHaveFourAxes) {
  for (const Shape& shared : {Shape({1, 2, 1, 6, 8}), Shape({1, 2, 3, 6, 8}), Shape({1, 1, 1, 6, 8})}) {
    Maker make;
    const int q = make.input({1, 2, 3, 7, 8}), k = make.input(shared), v = make.input(shared);
    const int scores = make.binary("MUL", product(make, q, k, true, {1, 2, 3, 7, 6}), make.number(0.35f));
    ir::Attributes beta;
    beta.set("beta", 1.0);
    const int weights = make.op("SOFTMAX", "SoftmaxOptions", beta, {scores}, make.shape(scores));
    const ir::Model after = expect_same(make.finish({product(make, weights, v, false, {1, 2, 3, 7, 8})}), kRounding);
    std::vector<std::string> between;
    for (const ir::Operator& op : after.subgraphs[0].operators) {
      if (op.type != "BATCH_MATMUL" && op.type != "SOFTMAX") continue;
      between.push_back(op.type);
      for (const auto* tensors : {&op.inputs, &op.outputs}) {
        for (const std::int32_t t : *tensors) {
          EXPECT_LE(after.subgraphs[0].tensors[at(t)].shape.rank(), 4) << operators_of(after);
        }
      }
    }
    EXPECT_EQ(between, (std::vector<std::string>{"BATCH_MATMUL", "SOFTMAX", "BATCH_MATMUL"})) << operators_of(after);
    EXPECT_EQ(count(after, "MUL"), 0) << "SOFTMAX takes the factor in: " << operators_of(after);
  }
}

TEST(Products, RandomShapesComputeTheSame) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Maker make(seed);
    const int rank = 3 + make.draw(3);  // BATCH_MATMUL takes five axes
    Shape a, b, result;
    for (int axis = 0; axis + 2 < rank; ++axis) {
      const int size = 1 + make.draw(3);
      result.push_back(size);
      a.push_back(make.draw(3) == 0 ? 1 : size);
      b.push_back(a[axis] == size && make.draw(2) == 0 ? 1 : size);
    }
    const int rows = 1 + make.draw(5), depth = 1 + make.draw(5), columns = 1 + make.draw(5);
    const bool adj_y = make.draw(2) == 0;
    for (const int size : {rows, depth}) a.push_back(size);
    for (const int size : {adj_y ? columns : depth, adj_y ? depth : columns}) b.push_back(size);
    for (const int size : {rows, columns}) result.push_back(size);
    const int x = make.input(a), y = make.draw(4) == 0 && rank > 3 ? make.numbers(b) : make.input(b);
    expect_same(make.finish({product(make, x, y, adj_y, result)}), kRounding);
  }
}

}  // namespace
}  // namespace reef::passes::testing
