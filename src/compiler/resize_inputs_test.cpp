// SPDX-License-Identifier: Apache-2.0
#include "compiler/resize_inputs.h"

#include <gtest/gtest.h>

#include "passes/float/test_graph.h"

namespace reef::compiler {
namespace {

using ir::DataType;
using passes::testing::Maker;

// A Flatten of Keras whose batch is open: the batch is taken out of SHAPE, and packed beside the rest.
ir::Model flatten(int features) {
  Maker make;
  const int x = make.input({1, 4, 4, 2});
  const int y = make.unary("RELU", x);
  const int shape = make.op("SHAPE", "ShapeOptions", {}, {y}, {4}, DataType::kInt32);
  ir::Attributes first;
  first.set("shrink_axis_mask", std::int64_t{1});
  const int batch = make.op("STRIDED_SLICE", "StridedSliceOptions", std::move(first),
                            {shape, make.ints({0}), make.ints({1}), make.ints({1})}, {}, DataType::kInt32);
  ir::Attributes two;
  two.set("values_count", std::int64_t{2});
  const int sizes =
      make.op("PACK", "PackOptions", std::move(two), {batch, make.scalar(features)}, {2}, DataType::kInt32);
  return make.finish({make.op("RESHAPE", "ReshapeOptions", {}, {y, sizes}, {1, 32})});
}

TEST(ResizeInputs, FollowsSizesThroughTheirArithmetic) {
  for (const std::int64_t batch : {1, 3}) {
    ir::Model model = flatten(32);
    const Status status = resize_inputs(model, {{"", {batch, 4, 4, 2}}});
    ASSERT_TRUE(status.ok()) << status.message();
    const ir::Subgraph& graph = model.subgraphs[0];
    EXPECT_EQ(graph.tensors[at(graph.outputs[0])].shape, (ir::Shape{static_cast<std::int32_t>(batch), 32}));
    EXPECT_EQ(graph.operators.size(), flatten(32).subgraphs[0].operators.size());  // nothing is folded
    for (const ir::Operator& op : graph.operators) {
      for (const std::int32_t t : op.outputs) {
        EXPECT_TRUE(constant_data(model, graph.tensors[at(t)]).empty());
      }
    }
  }
}

TEST(ResizeInputs, SaysWhichOperatorDoesNotTakeTheNewSizes) {
  ir::Model model = flatten(32);
  const Status status = resize_inputs(model, {{"", {1, 5, 4, 2}}});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("RESHAPE"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace reef::compiler
