// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor_names.h"

#include <gtest/gtest.h>

namespace reef::ir {
namespace {

TEST(TensorNames, EqualOnesAreNumberedAndInputsAndOutputsKeepTheirs) {
  Model model;
  Subgraph& graph = model.subgraphs.emplace_back();
  for (const char* name : {"x", "y", "y", "y", "y#2", ""}) graph.tensors.emplace_back().name = name;
  graph.tensors.emplace_back().name = "";  // both without a name
  graph.inputs = {0};
  graph.outputs = {3};
  for (const std::int32_t made : {1, 2, 3, 4, 5, 6}) {
    Operator& op = graph.operators.emplace_back();
    op.inputs = {0};
    op.outputs = {made};
  }
  ASSERT_TRUE(has_equal_names(model));
  name_apart(model);
  EXPECT_FALSE(has_equal_names(model));
  std::vector<std::string> names;
  for (const Tensor& tensor : graph.tensors) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "y#3", "y#4", "y", "y#2", "", "#2"}));
}

TEST(TensorNames, TheNumberCanBeTakenOff) {
  EXPECT_EQ(name_before_apart("y#12"), "y");
  EXPECT_EQ(name_before_apart("y#"), "y#");
  EXPECT_EQ(name_before_apart("y#a"), "y#a");
  EXPECT_EQ(name_before_apart("y"), "y");
}

}  // namespace
}  // namespace reef::ir
