// SPDX-License-Identifier: Apache-2.0
// Models for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"

namespace reef::tflite::testing {

inline ir::Tensor make_tensor(std::string name, ir::DataType type, ir::Shape shape, std::int32_t buffer = 0) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.buffer = buffer;
  return tensor;
}

inline void add_tensors(ir::Subgraph& subgraph) {
  ir::Tensor input = make_tensor("input", ir::DataType::kInt8, {1, 4, 4, 2});
  input.has_quantization = true;
  input.quantization.scale = {0.5f};
  input.quantization.zero_point = {-3};
  input.quantization.min = {-64};
  input.quantization.max = {63};
  input.shape_signature = {-1, 4, 4, 2};

  ir::Tensor weights = make_tensor("weights", ir::DataType::kInt8, {3, 1, 1, 2}, 1);
  weights.has_quantization = true;
  weights.quantization.scale = {0.25f, 0.5f, 1.0f};
  weights.quantization.zero_point = {0, 0, std::int64_t{1} << 40};
  weights.quantization.dimension = 3;

  ir::Tensor blockwise = make_tensor("blockwise", ir::DataType::kInt4, {8}, 2);
  blockwise.has_quantization = true;
  blockwise.quantization.details = ir::BlockwiseQuantization{1, -1, 32, {1, 32}};
  ir::Tensor multi_axis = make_tensor("multi_axis", ir::DataType::kInt2, {8});
  multi_axis.has_quantization = true;
  multi_axis.quantization.details = ir::MultiAxisQuantization{1, 2, 0, {0, 2}};
  ir::Tensor custom = make_tensor("custom", ir::DataType::kFloat8E5M2, {8});
  custom.has_quantization = true;
  custom.quantization.details = ir::CustomQuantization{Bytes({1, 2, 3})};

  ir::Tensor sparse = make_tensor("sparse", ir::DataType::kFloat32, {4, 4});
  sparse.sparsity.emplace();
  sparse.sparsity->traversal_order = {0, 1, 2};
  sparse.sparsity->block_map = {1};
  sparse.sparsity->dimensions = {
      {0, 4, {}, {}}, {1, 0, {1, {0, 70000}}, {2, {0, 65535}}}, {1, 0, {3, {0, 255, 1}}, {3, {7}}}};
  ir::Tensor variant = make_tensor("", static_cast<ir::DataType>(200), {});
  variant.has_rank = true;
  variant.is_variable = true;
  variant.external_buffer = 9;
  variant.variant_sub_types = {{{1, 2}, ir::DataType::kInt64, true}, {{}, ir::DataType::kBool, false}};
  ir::Tensor empty = make_tensor("no elements", ir::DataType::kInt32, {0}, 3);
  subgraph.tensors = {input, weights, blockwise, multi_axis, custom, sparse, variant, empty};
}

// One ADD of two inputs.
inline ir::Model make_small_model() {
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph& subgraph = model.subgraphs.emplace_back();
  for (const char* name : {"a", "b", "sum"}) {
    subgraph.tensors.push_back(make_tensor(name, ir::DataType::kFloat32, {2, 2}));
  }
  ir::Operator op;
  op.type = "ADD";
  op.inputs = {0, 1};
  op.outputs = {2};
  op.options_type = "AddOptions";
  op.attributes.set("fused_activation_function", ir::EnumName{"RELU"});
  op.attributes.set("pot_scale_int16", true);
  subgraph.operators = {op};
  subgraph.inputs = {0, 1};
  subgraph.outputs = {2};
  return model;
}

// A model that says something in every field of the IR that needs no special case.
inline ir::Model make_full_model() {
  ir::Model model;
  model.description = "all kinds of things";
  model.buffers.resize(6);
  model.buffers[1].data = Bytes({1, 2, 3, 4, 5, 6});
  model.buffers[2] = {Bytes({9, 8, 7, 6}), true, false};
  model.buffers[3].is_empty_constant = true;
  model.buffers[4] = {Bytes(std::vector<std::uint8_t>(100, 5)), true, false};
  model.buffers[5].data = Bytes({'m', 'e', 't', 'a'});
  model.metadata = {{"min_runtime_version", 5}, {"", 4}};
  model.metadata_buffers = {5};
  model.signatures = {{"serving_default", 0, {{"x", 0}}, {{"y", 5}}}, {"empty", 1, {}, {}}};
  model.external_buffer_groups = {"weights.bin", ""};
  model.external_buffers = {{9, 1, std::uint64_t{1} << 40, 12, "packed"}, {}};

  ir::Subgraph& main = model.subgraphs.emplace_back();
  main.name = "main";
  main.inputs = {0};
  main.outputs = {5, 6};
  main.debug_metadata_index = 4;
  add_tensors(main);
  ir::Operator custom;
  custom.type = "edgetpu-custom-op";
  custom.builtin_code = ir::kCustomBuiltinCode;
  custom.version = 2;
  custom.inputs = {0, -1};
  custom.outputs = {5};
  custom.intermediates = {1};
  custom.mutating_variable_inputs = {true, false};
  custom.custom_options = Bytes({1, 2, 3});
  custom.debug_metadata_index = 7;
  ir::Operator large = custom;
  large.custom_options = Bytes(std::vector<std::uint8_t>(33, 7));
  large.custom_options_are_large = true;
  ir::Operator newer;
  newer.type = "BUILTIN_250";
  newer.builtin_code = 250;
  main.operators = {custom, large, newer};
  model.subgraphs.push_back(make_small_model().subgraphs[0]);
  return model;
}

inline std::vector<std::uint8_t> must_write(const ir::Model& model) {
  auto file = write_model(model);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::move(file).value() : std::vector<std::uint8_t>();
}
inline ir::Model must_read(const std::vector<std::uint8_t>& file, std::vector<std::string>* notes = nullptr) {
  auto model = read_model(Bytes(file), notes);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(model).value() : ir::Model();
}
inline Status read_error(const std::vector<std::uint8_t>& file) { return read_model(Bytes(file)).status(); }

// Saving and loading gives the same model back, and saving that gives the same bytes.
inline void expect_round_trip(const ir::Model& model) {
  const std::vector<std::uint8_t> file = must_write(model);
  const ir::Model again = must_read(file);
  EXPECT_TRUE(again == model);
  EXPECT_EQ(must_write(again), file);
}

}  // namespace reef::tflite::testing
