// SPDX-License-Identifier: Apache-2.0
// Windows as exporters write them: GATHERs by grids of indices.
#include "passes/float/test_graph.h"

namespace reef::passes {
namespace {

using namespace testing;

// indices[i, j] = begin + i * step_i + j * step_j.
int grid(Maker& make, int rows, int columns, int step_i, int step_j, int begin = 0) {
  std::vector<std::int32_t> values;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) values.push_back(begin + i * step_i + j * step_j);
  }
  return make.constant(values, {rows, columns}, DataType::kInt32);
}

int gather(Maker& make, int x, int indices, int axis) {
  Shape shape;
  const Shape from = make.shape(x), form = make.shape(indices);
  for (int d = 0; d < from.rank(); ++d) {
    if (d != axis) {
      shape.push_back(from[d]);
    } else {
      for (const std::int32_t size : form) shape.push_back(size);
    }
  }
  return make.op("GATHER", "GatherOptions", Maker::attributes({{"axis", std::int64_t{axis}}}), {x, indices}, shape);
}

// torch.nn.functional.unfold with windows side by side, then [channels * window, windows].
TEST(IndexGrids, UnfoldedWindowsAreATransposition) {
  for (const auto& [height, width, size_y, size_x] :
       std::vector<std::array<int, 4>>{{8, 8, 2, 2}, {6, 9, 2, 3}, {4, 12, 4, 4}}) {
    Maker make;
    const int x = make.unary("TANH", make.input({1, 5, height, width}));
    const int rows = gather(make, x, grid(make, size_y, height / size_y, 1, size_y), 2);
    const int both = gather(make, rows, grid(make, size_x, width / size_x, 1, size_x), 4);
    const ir::Model after = expect_same(make.finish({make.unary("ABS", both)}), 0);
    EXPECT_EQ(count(after, "GATHER"), 0) << operators_of(after);
  }
}

TEST(IndexGrids, RangesOfAnAxis) {
  Maker make;
  const int x = make.unary("TANH", make.input({3, 11, 4}));
  const int y = gather(make, x, grid(make, 3, 2, 1, 3, 4), 1);
  const ir::Model after = expect_same(make.finish({make.unary("ABS", y)}), 0);
  EXPECT_EQ(count(after, "GATHER"), 0) << operators_of(after);
  EXPECT_EQ(count(after, "SLICE"), 1) << operators_of(after);
}

// Windows that overlap, elements that are left out, and grids that are none.
TEST(IndexGrids, OthersStay) {
  for (const auto& [step_i, step_j] : std::vector<std::pair<int, int>>{{1, 1}, {1, 2}, {1, 4}, {2, 6}, {0, 1}}) {
    Maker make;
    const int x = make.unary("TANH", make.input({2, 30, 3}));
    const int y = gather(make, x, grid(make, 3, 4, step_i, step_j), 1);
    EXPECT_EQ(count(expect_same(make.finish({make.unary("ABS", y)}), 0), "GATHER"), 1) << step_i << " " << step_j;
  }
  Maker make;
  const int x = make.unary("TANH", make.input({2, 4}));
  const int y = gather(make, x, make.constant(std::vector<std::int32_t>{0, 2, 3, 1}, {2, 2}, DataType::kInt32), 1);
  EXPECT_EQ(count(expect_same(make.finish({make.unary("ABS", y)}), 0), "GATHER"), 1);
}

}  // namespace
}  // namespace reef::passes
