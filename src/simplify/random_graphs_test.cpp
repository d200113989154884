// SPDX-License-Identifier: Apache-2.0
// Random networks, channels first with every layer wrapped in TRANSPOSEs as an importer makes them, compute the same
// when simplified; those that are convolutional networks have no TRANSPOSE left but at the border.
#include "simplify/test_graph.h"

namespace reef::simplify::testing {
namespace {

// A map [n, c, h, w] through one random step.
int step(Maker& make, int x, std::vector<int>& maps) {
  const Shape shape = make.shape(x);
  const auto same_shape = [&]() -> int {
    for (int tries = 0; tries < 4; ++tries) {
      const int other = maps[static_cast<std::size_t>(make.draw(static_cast<int>(maps.size())))];
      if (make.shape(other) == shape) return other;
    }
    return x;
  };
  switch (make.draw(22)) {
    case 0:
      return make.conv(x, 1 + make.draw(8), 1 + 2 * make.draw(2), 1,
                       make.draw(2) == 0 || shape[2] < 3 || shape[3] < 3 ? "SAME" : "VALID");
    case 1:
      return make.conv(x, 2 + make.draw(6), 3, 2);
    case 2:
      return make.depthwise(x, 3, 1 + make.draw(2));
    case 3:
      return make.pool(x, make.draw(2) == 0 ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", 2, 2);
    case 4:
      return shape[2] * shape[3] > 200 ? x : make.resize(x, 2);
    case 5:
      return make.unary("RELU", x);
    case 6:
      return make.binary("MUL", x, make.unary("LOGISTIC", x));
    case 7:
      return make.binary("ADD", x, same_shape());
    case 8:
      return make.binary("MUL", x, make.numbers({1, shape[1], 1, 1}, 0.5f, 1.5f));
    case 9:
      return make.binary("ADD", make.numbers({shape[1], 1, 1}), x);
    case 10:
      return shape[1] > 24 ? x : make.concatenation({x, same_shape()}, 1);
    case 11: {  // halves of the channels, swapped
      if (shape[1] % 2 != 0) return x;
      const Shape half = {shape[0], shape[1] / 2, shape[2], shape[3]};
      const int axis = make.scalar(make.draw(2) == 0 ? 1 : -3), a = make.add_tensor(half), b = make.add_tensor(half);
      make.add("SPLIT", "SplitOptions", Maker::attributes({{"num_splits", std::int64_t{2}}}), {axis, x}, {a, b});
      return make.concatenation({b, make.unary("TANH", a)}, 1);
    }
    case 12: {  // squeeze and excitation
      const int mean = make.reduce("MEAN", x, {2, 3}, true);
      return make.binary("MUL", x,
                         make.unary("LOGISTIC", make.conv(make.unary("RELU", make.conv(mean, 3, 1)), shape[1], 1)));
    }
    case 13:
      return make.op("PAD", "PadOptions", {},
                     {x, make.constant(std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 0, 2}, {4, 2}, DataType::kInt32)},
                     {shape[0], shape[1], shape[2] + 2, shape[3] + 2});
    case 14: {
      if (shape[2] < 2) return x;
      return make.op("SLICE", "SliceOptions", {},
                     {x, make.ints({0, 0, 1, 0}), make.ints({shape[0], shape[1], shape[2] - 1, -1})},
                     {shape[0], shape[1], shape[2] - 1, shape[3]});
    }
    case 15: {
      const ir::Attributes options = Maker::attributes({{"begin_mask", std::int64_t{0}},
                                                        {"end_mask", std::int64_t{13}},
                                                        {"ellipsis_mask", std::int64_t{0}},
                                                        {"new_axis_mask", std::int64_t{0}},
                                                        {"shrink_axis_mask", std::int64_t{0}},
                                                        {"offset", false}});
      return make.op("STRIDED_SLICE", "StridedSliceOptions", options,
                     {x, make.ints({0, 0, 0, 0}), make.ints({0, (shape[1] + 1) / 2, 0, 0}), make.ints({1, 1, 2, 1})},
                     {shape[0], (shape[1] + 1) / 2, (shape[2] + 1) / 2, shape[3]});
    }
    case 16:
      return make.op("PRELU", "", {}, {x, make.numbers({shape[1], 1, 1}, 0, 0.5f)}, shape);
    case 17:
      return make.op("LEAKY_RELU", "LeakyReluOptions", Maker::attributes({{"alpha", 0.1}}), {x}, shape);
    case 18:
      return make.binary("MINIMUM", make.binary("MAXIMUM", x, make.number(0)), make.number(6));
    case 19:
      return make.binary("DIV", x, make.numbers({1, shape[1], 1, 1}, 1, 2));
    case 20:
      return make.binary("SUB", make.number(1), x);
    default:
      return make.binary("MUL", x, make.reduce("REDUCE_MAX", x, {1}, true));
  }
}

int head(Maker& make, int x) {
  const Shape shape = make.shape(x);
  const std::int32_t features = shape[1] * shape[2] * shape[3];
  switch (make.draw(4)) {
    case 0:
      return make.dense(make.reshape(make.reduce("MEAN", x, {2, 3}, true), {shape[0], shape[1]}), 5);
    case 1:
      return make.dense(make.reshape(x, {shape[0], features}), 4);
    case 2:
      return make.dense(make.unary("RELU", make.reshape(x, {shape[0], features})), 4);
    default:
      return make.to_nhwc(x);
  }
}

ir::Model random_network(std::uint32_t seed) {
  Maker make(seed);
  const int size = 5 + make.draw(8);
  std::vector<int> maps = {make.to_nchw(make.input({1 + make.draw(2), size, size + make.draw(3), 1 + make.draw(4)}))};
  const int steps = 3 + make.draw(12);
  for (int i = 0; i < steps; ++i) {
    const int from =
        make.draw(4) == 0 ? maps[static_cast<std::size_t>(make.draw(static_cast<int>(maps.size())))] : maps.back();
    maps.push_back(step(make, from, maps));
  }
  std::vector<int> outputs = {head(make, make.conv(maps.back(), 3, 1))};
  if (make.draw(3) == 0) outputs.push_back(make.to_nhwc(maps[maps.size() / 2]));
  if (outputs.size() == 2 && outputs[0] == outputs[1]) outputs.pop_back();
  return make.finish(outputs);
}

TEST(SimplifyRandom, ConvolutionalNetworksHaveNoTransposeLeft) {
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Model before = random_network(seed);
    const ir::Model after = expect_same(before, 2e-5);
    EXPECT_EQ(count(after, "TRANSPOSE"), 0) << ir::print(after, {.max_constant_bytes = 32});
    EXPECT_LT(after.subgraphs[0].operators.size(), before.subgraphs[0].operators.size());
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace reef::simplify::testing
