// SPDX-License-Identifier: Apache-2.0
// Parts are cut out before operators that treat places alike, and what they compute stays the same (other
// passes, which run as well, may round).
#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

// [begin, begin + size) of one axis.
int slice(Maker& make, int x, int axis, int begin, int size) {
  std::vector<std::int32_t> begins(static_cast<std::size_t>(make.shape(x).rank()), 0);
  Shape sizes = make.shape(x);
  begins[at(axis)] = begin;
  sizes[axis] = size;
  const int from = make.ints(begins), extent = make.ints({sizes.begin(), sizes.end()});
  return make.op("SLICE", "SliceOptions", {}, {x, from, extent}, sizes, make.tensor(x).type);
}

int softmax(Maker& make, int x) {
  return make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 0.5}}), {x}, make.shape(x));
}

int products(Maker& make, int a, int b, bool adj_x, bool adj_y, Shape result) {
  return make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_x", adj_x}, {"adj_y", adj_y}}), {a, b},
                 std::move(result));
}

// (x - mean) / deviation along the last axis.
int normalized(Maker& make, int x) {
  const int last = make.shape(x).rank() - 1;
  const int mean = make.reduce("MEAN", x, {last}, true);
  const int variance = make.reduce("MEAN", make.binary("SQUARED_DIFFERENCE", x, mean), {last}, true);
  const int deviation = make.unary("RSQRT", make.binary("ADD", variance, make.number(1e-5f)));
  return make.binary("MUL", make.binary("SUB", x, mean), deviation);
}

// Elements that operators of this type compute.
std::int64_t elements(const ir::Model& model, std::string_view type) {
  std::int64_t sum = 0;
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type == type) sum += model.subgraphs[0].tensors[at(op.outputs[0])].shape.elements();
  }
  return sum;
}

TEST(PickEarly, TheLastBlockOfATransformerIsComputedForOneToken) {
  constexpr int kTokens = 16, kWidth = 12, kHeads = 3, kHead = 4;
  Maker make;
  const int x = make.dense(make.input({1, kTokens, kWidth}), kWidth);
  const int n = normalized(make, x);
  const auto heads = [&](int of) {
    return make.transpose(make.reshape(of, {1, kTokens, kHeads, kHead}), {0, 2, 1, 3});
  };
  const int q = heads(make.dense(n, kWidth)), k = heads(make.dense(n, kWidth)), v = heads(make.dense(n, kWidth));
  const int scores = softmax(make, products(make, q, k, false, true, {1, kHeads, kTokens, kTokens}));
  const int mixed = products(make, scores, v, false, false, {1, kHeads, kTokens, kHead});
  const int joined = make.reshape(make.transpose(mixed, {0, 2, 1, 3}), {1, kTokens, kWidth});
  const int sum = make.binary("ADD", x, make.dense(joined, kWidth));
  const int hidden = make.unary("TANH", make.dense(normalized(make, sum), 4 * kWidth));
  const int all = normalized(make, make.binary("ADD", sum, make.dense(hidden, kWidth)));
  const int first = make.reshape(slice(make, all, 1, 0, 1), {1, kWidth});
  const ir::Model after = expect_same(make.finish({make.dense(first, 2)}), 1e-5);
  EXPECT_EQ(elements(after, "TANH"), 4 * kWidth);
  EXPECT_EQ(elements(after, "SOFTMAX"), kHeads * kTokens);
  EXPECT_EQ(elements(after, "ADD"), 2 * kWidth + kTokens + 2);  // two sums, and the three deviations' ADDs
  EXPECT_EQ(count(after, "SLICE"), 2) << operators_of(after);   // of the residual and of the queries
}

TEST(PickEarly, WhatIsReadElsewhereOrKeptMostlyStays) {
  Maker make;
  const int x = make.input({1, 8, 4});
  const int y = make.unary("TANH", x);
  EXPECT_EQ(operators_of(expect_same(make.finish({slice(make, y, 1, 2, 1), y}), 0)), "TANH SLICE");
  Maker other;
  const int z = other.unary("TANH", other.input({1, 8, 4}));
  const ir::Model mostly = expect_same(other.finish({slice(other, z, 1, 1, 7)}), 0);
  EXPECT_EQ(operators_of(mostly), "TANH SLICE");
}

TEST(PickEarly, PartsOfBroadcastOperands) {
  Maker make;
  const int x = make.input({2, 6, 4}), row = make.input({4}), column = make.input({6, 1});
  const int y = make.binary("MUL", make.binary("ADD", make.binary("ADD", x, row), column), make.numbers({1, 6, 4}));
  const ir::Model after = expect_same(make.finish({slice(make, y, 1, 3, 2)}), 0);
  EXPECT_EQ(count(after, "SLICE"), 2) << operators_of(after);  // of x and the column; the constant is cut now
  EXPECT_EQ(elements(after, "MUL"), 2 * 2 * 4);
}

TEST(PickEarly, APartOfOneOperandOfAConcatenation) {
  Maker make;
  const int a = make.input({1, 3, 4}), b = make.input({1, 5, 4});
  const int joined = make.unary("TANH", make.concatenation({make.unary("EXP", a), make.unary("ABS", b)}, 1));
  const ir::Model inside = expect_same(make.finish({slice(make, joined, 1, 4, 2)}), 0);
  EXPECT_EQ(count(inside, "CONCATENATION"), 0);
  EXPECT_EQ(count(inside, "EXP"), 0);
  EXPECT_EQ(elements(inside, "ABS"), 2 * 4);
  Maker across;
  const int c = across.concatenation({across.input({1, 3, 4}), across.input({1, 5, 4})}, 1);
  EXPECT_EQ(count(expect_same(across.finish({slice(across, c, 1, 2, 2)}), 0), "CONCATENATION"), 1);
}

TEST(PickEarly, AxesThatAreMixedStay) {
  Maker make;
  const int x = make.input({2, 6, 4});
  const int a = slice(make, softmax(make, x), 2, 1, 1), b = slice(make, make.dense(x, 6), 2, 0, 2);
  const int c = slice(make, make.reshape(make.unary("TANH", x), {12, 4}), 0, 2, 3);
  const int d = slice(make, make.reduce("MEAN", make.unary("EXP", x), {1}, false), 1, 1, 2);
  const ir::Model after = expect_same(make.finish({a, b, c, d}), 0);
  EXPECT_EQ(elements(after, "SOFTMAX"), 2 * 6 * 4);
  EXPECT_EQ(elements(after, "FULLY_CONNECTED"), 2 * 6 * 6);
  EXPECT_EQ(elements(after, "RESHAPE"), 12 * 4);  // 2 x 6 became 12: a part of that is none of either
  EXPECT_EQ(elements(after, "EXP"), 2 * 6 * 2);   // while the mean of columns needs but those columns
}

// One random operator of those that know what they need.
int random_step(Maker& make, int x) {
  const Shape shape = make.shape(x);
  const int axis = make.draw(3);
  switch (make.draw(10)) {
    case 0:
      return make.transpose(x, make.draw(2) == 0 ? std::vector<std::int32_t>{1, 0, 2} : std::vector{2, 0, 1});
    case 1:
      return make.reshape(make.reshape(x, {shape[0], 1, shape[1], shape[2]}), shape);
    case 2:
      return make.binary("SUB", x, make.reduce("REDUCE_MAX", x, {axis}, true));
    case 3:
      return softmax(make, x);
    case 4:
      return make.dense(x, 2 + make.draw(5));
    case 5: {
      const bool flag = make.draw(2) == 0;
      const int other = make.numbers({shape[0], flag ? 5 : shape[2], flag ? shape[2] : 5});
      return products(make, x, other, false, flag, {shape[0], shape[1], 5});
    }
    case 6: {
      const int other = make.numbers({shape[0], make.draw(2) == 0 ? shape[1] : 1, shape[2]});
      return make.binary("MUL", x, other);
    }
    case 7:
      return make.concatenation({x, make.unary("TANH", x)}, axis);
    case 8:
      return make.binary("ADD", x, make.unary("LOGISTIC", x));
    default:
      return shape[axis] < 2 ? x : slice(make, x, axis, make.draw(shape[axis]), 1);
  }
}

TEST(PickEarly, RandomChainsComputeTheSame) {
  for (std::uint32_t seed = 1; seed <= 800; ++seed) {
    SCOPED_TRACE(seed);
    Maker make(seed);
    int x = make.input({1 + make.draw(3), 2 + make.draw(6), 2 + make.draw(4)});
    for (int i = 0, steps = 2 + make.draw(8); i < steps && make.shape(x).elements() < 4000; ++i)
      x = random_step(make, x);
    const int axis = make.draw(3), size = make.shape(x)[axis], begin = make.draw(size);
    const int z = slice(make, x, axis, begin, 1 + make.draw(size - begin));
    const ir::Model after = expect_same(make.finish({make.unary("ABS", z)}), 2e-5);
    ir::Model again = after;
    ASSERT_TRUE(simplify(again).ok());
    EXPECT_TRUE(again == after) << operators_of(after) << "\n" << operators_of(again);
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace reef::passes::testing
