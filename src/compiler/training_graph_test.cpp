// SPDX-License-Identifier: Apache-2.0
#include "compiler/training_graph.h"

#include <cmath>

#include <gtest/gtest.h>

namespace reef::compiler {
namespace {

ir::Operator function_op(const std::string& type) {
  ir::Operator op;
  op.type = type;
  op.inputs = {0};
  op.outputs = {1};
  return op;
}

TEST(TrainingGraph, FunctionCodesFollowTheFunction) {
  const ops::ChipAffine in{0.05f, 128}, out{1.0f / 256, 0};
  const auto codes = chip_function_codes(function_op("LOGISTIC"), in, out);
  ASSERT_TRUE(codes.ok()) << codes.status().message();
  for (int code = 0; code < 256; ++code) {
    const double real = 256 / (1 + std::exp(-0.05 * (code - 128)));
    EXPECT_NEAR((*codes)[at(code)], std::min(real, 255.0), 0.51) << code;
  }
}

TEST(TrainingGraph, OnlyFunctionsOfOneTensorHaveCodes) {
  ir::Operator op = function_op("ADD");
  op.inputs = {0, 0};
  EXPECT_FALSE(chip_function_codes(op, {0.1f, 0}, {0.1f, 0}).ok());
}

ir::Model two_constants_of_one_buffer() {
  ir::Model model;
  model.buffers.resize(2);
  model.buffers[1].data = Bytes::copy_of(std::vector<std::uint8_t>{1, 2, 3, 4});
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  for (const char* name : {"a", "b"}) {
    ir::Tensor& tensor = graph.tensors.emplace_back();
    tensor.name = name;
    tensor.type = ir::DataType::kInt8;
    tensor.shape = ir::Shape({4});
    tensor.buffer = 1;
    tensor.has_quantization = true;
    tensor.quantization.scale = {0.5f};
    tensor.quantization.zero_point = {0};
    tensor.quantization.min = {-1};
  }
  return model;
}

TEST(TrainingGraph, EditsChangeOneTensorAlone) {
  const ir::Model model = two_constants_of_one_buffer();
  const std::vector<std::uint8_t> data = {5, 6, 7, 8};
  const TensorEdit edit{1, data, {0.25f}, {3}};
  const auto changed = with_edits(model, std::span(&edit, 1));
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  const auto& tensors = changed->subgraphs[0].tensors;
  EXPECT_EQ(ir::constant_data(*changed, tensors[0]).data()[0], 1);
  EXPECT_EQ(ir::constant_data(*changed, tensors[1]).data()[0], 5);
  EXPECT_EQ(tensors[0].quantization.scale[0], 0.5f);
  EXPECT_EQ(tensors[1].quantization.scale[0], 0.25f);
  EXPECT_EQ(tensors[1].quantization.zero_point[0], 3);
  EXPECT_TRUE(tensors[1].quantization.min.empty());
}

TEST(TrainingGraph, EditsThatDoNotFitAreRefused) {
  const ir::Model model = two_constants_of_one_buffer();
  const std::vector<std::uint8_t> three = {5, 6, 7};
  for (const TensorEdit& edit :
       {TensorEdit{7, {}, {1.0f}, {0}}, TensorEdit{0, three, {}, {}}, TensorEdit{0, {}, {1.0f, 2.0f}, {0, 0}},
        TensorEdit{0, {}, {-1.0f}, {0}}, TensorEdit{0, {}, {NAN}, {0}}, TensorEdit{0, {}, {1.0f}, {}}}) {
    EXPECT_FALSE(with_edits(model, std::span(&edit, 1)).ok());
  }
}

}  // namespace
}  // namespace reef::compiler
