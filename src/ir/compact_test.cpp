// SPDX-License-Identifier: Apache-2.0
#include "ir/compact.h"

#include <gtest/gtest.h>

namespace reef::ir {
namespace {

using Numbers = std::vector<std::int32_t>;

Model model_of(std::size_t tensors) {
  Model model;
  model.buffers.resize(1);
  Subgraph& graph = model.subgraphs.emplace_back();
  for (std::size_t i = 0; i < tensors; ++i) graph.tensors.emplace_back().name = std::to_string(i);
  return model;
}

std::string names(const Model& model) {
  std::string result;
  for (const Tensor& tensor : model.subgraphs[0].tensors) result += tensor.name;
  return result;
}

TEST(Compact, KeepsOperandsInOrderAndRenumbersThem) {
  Model model = model_of(8);
  Subgraph& graph = model.subgraphs[0];
  graph.inputs = {7};
  graph.outputs = {2};
  Operator& op = graph.operators.emplace_back();
  op.inputs = {7, -1, 4};
  op.outputs = {2};
  op.intermediates = {5};
  EXPECT_EQ(drop_unused_tensors(graph), (Numbers{-1, -1, 0, -1, 1, 2, -1, 3}));
  EXPECT_EQ(names(model), "2457");
  EXPECT_EQ(graph.inputs, (Numbers{3}));
  EXPECT_EQ(graph.outputs, (Numbers{0}));
  EXPECT_EQ(op.inputs, (Numbers{3, -1, 1}));
  EXPECT_EQ(op.intermediates, (Numbers{2}));
}

// Also if the scales stand before the tensor that they belong to, and have scales of their own.
TEST(Compact, KeepsScalesOfWhatStays) {
  Model model = model_of(6);
  Subgraph& graph = model.subgraphs[0];
  graph.outputs = {4};
  BlockwiseQuantization blocks;
  blocks.scales = 1;
  blocks.zero_points = -1;
  graph.tensors[4].quantization.details = blocks;
  blocks.scales = 0;
  graph.tensors[5].quantization.details = blocks;  // is dropped, and what it names with it
  MultiAxisQuantization axes;
  axes.scales = 3;
  axes.zero_points = 2;
  graph.tensors[1].quantization.details = axes;
  drop_unused_tensors(graph);
  EXPECT_EQ(names(model), "1234");
  EXPECT_EQ(std::get<BlockwiseQuantization>(graph.tensors[3].quantization.details).scales, 0);
  EXPECT_EQ(std::get<BlockwiseQuantization>(graph.tensors[3].quantization.details).zero_points, -1);
  EXPECT_EQ(std::get<MultiAxisQuantization>(graph.tensors[0].quantization.details).scales, 2);
  EXPECT_EQ(std::get<MultiAxisQuantization>(graph.tensors[0].quantization.details).zero_points, 1);
}

TEST(Compact, SignaturesOfTheSubgraphAreUses) {
  Model model = model_of(3);
  model.subgraphs.push_back(model.subgraphs[0]);
  model.signatures = {{"other", 1, {{"x", 2}}, {}}, {"mine", 0, {{"x", 1}}, {{"y", 2}}}};
  drop_unused_tensors(model, 0);
  EXPECT_EQ(names(model), "12");
  EXPECT_EQ(model.signatures[0].inputs[0].tensor, 2);
  EXPECT_EQ(model.signatures[1].inputs[0].tensor, 0);
  EXPECT_EQ(model.signatures[1].outputs[0].tensor, 1);
  EXPECT_EQ(model.subgraphs[1].tensors.size(), 3u);
}

TEST(Compact, BuffersOfTensorsAndMetadataStay) {
  Model model = model_of(2);
  model.buffers.resize(6);
  for (std::uint8_t i = 1; i < 6; ++i) model.buffers[i].data = Bytes({i});
  model.subgraphs[0].tensors[1].buffer = 5;
  model.metadata.push_back({"labels", 2});
  model.metadata_buffers = {3};
  drop_unused_buffers(model);
  ASSERT_EQ(model.buffers.size(), 4u);
  EXPECT_EQ(model.subgraphs[0].tensors[0].buffer, 0);
  EXPECT_EQ(model.subgraphs[0].tensors[1].buffer, 3);
  EXPECT_EQ(model.buffers[3].data.data()[0], 5);
  EXPECT_EQ(model.metadata[0].buffer, 1);
  EXPECT_EQ(model.metadata_buffers, (Numbers{2}));
}

}  // namespace
}  // namespace reef::ir
