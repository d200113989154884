// SPDX-License-Identifier: Apache-2.0
// Operators on five and six axes behind a RESHAPE compute the same on four; what cannot be merged stays.
#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

constexpr double kRounding = 1e-5;

int largest_rank(const ir::Model& model, std::string_view but = "RESHAPE") {
  int rank = 0;
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type == but) continue;
    for (const std::int32_t id : op.outputs) {
      rank = std::max(rank, model.subgraphs[0].tensors[at(id)].shape.rank());
    }
  }
  return rank;
}

// x / standard deviation of groups of channels, as EvoNorm is exported.
int divided_by_group_deviation(Maker& make, int x, int groups) {
  const Shape shape = make.shape(x);
  const Shape grouped = {shape[0], shape[1], shape[2], groups, shape[3] / groups};
  const int g = make.reshape(x, grouped);
  const int mean = make.reduce("MEAN", g, {1, 2, 4}, true);
  const int variance = make.reduce("MEAN", make.binary("SQUARED_DIFFERENCE", g, mean), {1, 2, 4}, true);
  const int deviation = make.unary("SQRT", make.binary("ADD", variance, make.number(0.01f)));
  const int wide = make.op("BROADCAST_TO", "BroadcastToOptions", {},
                           {deviation, make.ints({grouped.begin(), grouped.end()})}, grouped);
  return make.binary("DIV", x, make.reshape(wide, shape));
}

TEST(MergedAxes, GroupDeviationsHaveFourAxes) {
  Maker make;
  const int x = make.conv_nhwc(make.input({1, 6, 5, 3}), 12, 3, 1, "SAME");
  const ir::Model after = expect_same(make.finish({divided_by_group_deviation(make, x, 3)}), kRounding);
  EXPECT_LE(largest_rank(after, ""), 4) << operators_of(after);
  EXPECT_LE(count(after, "BROADCAST_TO"), 1) << operators_of(after);  // within a group, where nothing is large
  for (const ir::Operator& op : after.subgraphs[0].operators) {
    if (op.type != "BROADCAST_TO") continue;
    EXPECT_EQ(after.subgraphs[0].tensors[at(op.outputs[0])].shape.elements(), 12);
  }
}

// Shapes, operators and operands drawn at random; each operand has some axes of size 1.
TEST(MergedAxes, RandomOperatorsComputeTheSame) {
  int merged = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    Maker make(seed);
    const int rank = 5 + make.draw(2);
    Shape full;
    for (int axis = 0; axis < rank; ++axis) full.push_back(1 + make.draw(3));
    Shape small = full;
    for (int axis = 0; axis < rank; ++axis) small[axis] = make.draw(2) == 0 ? 1 : full[axis];
    const int x = make.reshape(make.input({static_cast<std::int32_t>(full.elements())}), full);
    const int other = make.reshape(make.input({static_cast<std::int32_t>(small.elements())}), small);
    int y = 0;
    switch (make.draw(5)) {
      case 0:
        y = make.binary("MUL", x, other);
        break;
      case 1:
        y = make.binary("SUB", make.numbers(small), x);
        break;
      case 2:
        y = make.unary("TANH", x);
        break;
      case 3:
        y = make.op("BROADCAST_TO", "BroadcastToOptions", {}, {other, make.ints({full.begin(), full.end()})}, full);
        break;
      default: {
        std::vector<std::int32_t> axes;
        for (int axis = 0; axis < rank; ++axis) {
          if (make.draw(2) == 0) axes.push_back(axis);
        }
        if (axes.empty()) axes.push_back(rank - 1);
        y = make.reduce(make.draw(2) == 0 ? "MEAN" : "REDUCE_MAX", x, axes, make.draw(2) == 0);
      }
    }
    const ir::Model after = expect_same(make.finish({make.unary("EXP", y)}), kRounding);
    merged += largest_rank(after) <= 4 ? 1 : 0;
  }
  EXPECT_GT(merged, 150);  // most, but not all: [2, 1, 2, 1, 2] cannot be merged with a full operand
}

// reshape(broadcast(x)) in front of arithmetic: the repeated axes are left out where they are whole axes of the result.
TEST(MergedAxes, ReshapedBroadcastsAreLeftOut) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Maker make(seed);
    Shape wide, small, result;
    for (int axis = 0; axis < 5; ++axis) {
      wide.push_back(1 + make.draw(3));
      small.push_back(make.draw(2) == 0 ? 1 : wide[axis]);
      // The result has the same axes, some of them joined with the one before.
      if (axis > 0 && make.draw(2) == 0) {
        result[result.rank() - 1] *= wide[axis];
      } else {
        result.push_back(wide[axis]);
      }
    }
    const int x = make.input(small);
    const int y = make.op("BROADCAST_TO", "BroadcastToOptions", {}, {x, make.ints({wide.begin(), wide.end()})}, wide);
    expect_same(make.finish({make.binary("MUL", make.input(result), make.reshape(y, result))}), 0);
  }
}

}  // namespace
}  // namespace reef::passes::testing
