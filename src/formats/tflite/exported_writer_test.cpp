// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/exported_writer.h"

#include "formats/tflite/test_models.h"

namespace reef::tflite {
namespace {

std::vector<std::uint8_t> must_export(const ir::Model& model) {
  auto file = write_exported_model(model);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::move(file).value() : std::vector<std::uint8_t>();
}

ir::Model make_exported_model() {
  ir::Model model = testing::make_small_model();
  model.description = "Exported from Subgraph.";
  model.buffers.resize(2);
  model.buffers[1].data = Bytes({1, 2, 3, 4});
  ir::Subgraph& graph = model.subgraphs[0];
  graph.name = "main";
  ir::Tensor constant = testing::make_tensor("constant", ir::DataType::kInt8, {4}, 1);
  constant.has_quantization = true;
  constant.quantization.scale = {0.5f, 1, 2, 3};
  constant.quantization.zero_point = {0, 0, 0, 7};
  graph.tensors.push_back(constant);
  graph.tensors.push_back(testing::make_tensor("scalar", ir::DataType::kInt64, {}));
  graph.tensors.back().is_variable = true;
  ir::Operator custom;
  custom.type = "edgetpu-custom-op";
  custom.builtin_code = ir::kCustomBuiltinCode;
  custom.inputs = {2, 3, -1};
  custom.outputs = {4};
  custom.custom_options = Bytes(std::vector<std::uint8_t>(33, 7));
  graph.operators.push_back(custom);
  graph.outputs = {4, 2};
  return model;
}

TEST(ExportedWriter, LosesNothing) {
  const ir::Model model = make_exported_model();
  const auto file = must_export(model);
  EXPECT_TRUE(testing::must_read(file) == model);
  EXPECT_EQ(must_export(model), file);
  EXPECT_NE(file, testing::must_write(model));  // another layout
}

TEST(ExportedWriter, DataIsAligned) {
  const auto file = must_export(make_exported_model());
  const auto find = [&](std::vector<std::uint8_t> bytes) {
    return std::search(file.begin(), file.end(), bytes.begin(), bytes.end()) - file.begin();
  };
  EXPECT_EQ(find(std::vector<std::uint8_t>(33, 7)) % 32, 0);
  EXPECT_EQ(find({4, 0, 0, 0, 1, 2, 3, 4}) % 16, 12);
}

// Contents for which the exporter has no place are written all the same.
TEST(ExportedWriter, OtherModelsAreWrittenTheOtherWay) {
  const ir::Model full = testing::make_full_model();
  EXPECT_EQ(must_export(full), testing::must_write(full));
  for (const auto change : {
           +[](ir::Model& model) {
             model.metadata = {{"reef", 1}};
           },
           +[](ir::Model& model) {
             model.subgraphs[0].tensors[0].shape_signature = {-1, 2};
           },
           +[](ir::Model& model) { model.subgraphs[0].operators[1].mutating_variable_inputs = {true}; },
           +[](ir::Model& model) { model.subgraphs[0].operators[1].custom_options_are_large = true; },
           +[](ir::Model& model) { model.buffers[1].is_external = true; },
       }) {
    ir::Model model = make_exported_model();
    change(model);
    const auto file = must_export(model);
    EXPECT_EQ(file, testing::must_write(model));
    EXPECT_TRUE(testing::must_read(file) == model);
  }
}

TEST(ExportedWriter, RefusesNonsense) {
  ir::Model model = make_exported_model();
  model.subgraphs[0].operators[0].attributes.set("no such field", true);
  EXPECT_FALSE(write_exported_model(model).ok());
  model = make_exported_model();
  model.subgraphs[0].operators[0].type = "CONV_2D";  // but the code says ADD
  EXPECT_FALSE(write_exported_model(model).ok());
}

}  // namespace
}  // namespace reef::tflite
