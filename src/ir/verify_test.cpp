// SPDX-License-Identifier: Apache-2.0
// A model that verifies, and one deliberate fault per test: each must be refused with a message that names the place.
#include "ir/verify.h"

#include <functional>

#include <gtest/gtest.h>

namespace reef::ir {
namespace {

Tensor make_tensor(std::string name, DataType type, Shape shape, std::int32_t buffer = 0) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.buffer = buffer;
  return tensor;
}

Operator make_op(std::string type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs) {
  Operator op;
  op.type = std::move(type);
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  return op;
}

// in, weights -> FULLY_CONNECTED -> middle -> RELU -> out
Model good_model() {
  Model model;
  model.buffers.resize(3);
  model.buffers[1].data = Bytes(std::vector<std::uint8_t>(12));
  model.buffers[2].data = Bytes(std::vector<std::uint8_t>{1, 2});
  Subgraph graph;
  graph.name = "main";
  graph.tensors = {make_tensor("in", DataType::kInt8, {1, 4}), make_tensor("weights", DataType::kInt8, {3, 4}, 1),
                   make_tensor("middle", DataType::kInt8, {1, 3}), make_tensor("out", DataType::kInt8, {1, 3})};
  graph.tensors[1].quantization.scale = {0.5f, 0.25f, 1.0f};
  graph.inputs = {0};
  graph.outputs = {3};
  graph.operators = {make_op("FULLY_CONNECTED", {0, 1, -1}, {2}), make_op("RELU", {2}, {3})};
  model.subgraphs = {graph};
  model.metadata = {{"min_runtime_version", 2}};
  model.metadata_buffers = {2};
  model.signatures = {{"serving_default", 0, {{"x", 0}}, {{"y", 3}}}};
  return model;
}

void expect_fault(const std::function<void(Model&)>& break_it, std::string_view expected) {
  Model model = good_model();
  break_it(model);
  const Status status = verify(model);
  ASSERT_FALSE(status.ok()) << "accepted, expected: " << expected;
  EXPECT_EQ(status.code(), StatusCode::kInvalidInput);
  EXPECT_NE(status.message().find(expected), std::string::npos) << status.message();
}

void expect_fine(const std::function<void(Model&)>& change) {
  Model model = good_model();
  change(model);
  const Status status = verify(model);
  EXPECT_TRUE(status.ok()) << status.message();
}

Tensor& tensor(Model& model, std::size_t index) { return model.subgraphs[0].tensors[index]; }
Operator& op(Model& model, std::size_t index) { return model.subgraphs[0].operators[index]; }

TEST(Verify, AcceptsAGoodModel) {
  expect_fine([](Model&) {});
}

TEST(Verify, ModelWithoutSubgraph) { EXPECT_FALSE(verify(Model{}).ok()); }

TEST(Verify, TensorIndices) {
  expect_fault([](Model& m) { op(m, 0).inputs[1] = 900; },
               "subgraph 0 'main': op 0 FULLY_CONNECTED: input 1 is tensor 900, but there are only 4 tensors");
  expect_fault([](Model& m) { op(m, 0).inputs[1] = -2; }, "input 1 is tensor -2");
  expect_fault([](Model& m) { op(m, 1).outputs[0] = -1; }, "op 1 RELU: output 0 is tensor -1");
  expect_fault([](Model& m) { op(m, 1).outputs[0] = 4; }, "output 0 is tensor 4");
  expect_fault([](Model& m) { op(m, 1).intermediates = {-1, 4}; }, "intermediate 1 is tensor 4");
  expect_fault([](Model& m) { m.subgraphs[0].inputs = {4}; }, "graph input 0 is tensor 4");
  expect_fault([](Model& m) { m.subgraphs[0].outputs = {3, -1}; }, "graph output 1 is tensor -1");
  expect_fine([](Model& m) { op(m, 1).intermediates = {-1, 2}; });
  expect_fine([](Model& m) { op(m, 1).inputs = {2, 2}; });
}

TEST(Verify, ReadBeforeWrite) {
  expect_fault([](Model& m) { std::swap(op(m, 0), op(m, 1)); },
               "op 0 RELU: input 0 is tensor 2 'middle', which nothing has written by then");
  expect_fault([](Model& m) { m.subgraphs[0].inputs.clear(); }, "input 0 is tensor 0 'in'");
  expect_fault([](Model& m) { op(m, 0).inputs[0] = 2; }, "tensor 2 'middle'");
  expect_fault([](Model& m) { m.subgraphs[0].operators.pop_back(); }, "graph output 0 is tensor 3 'out', which no op");
}

TEST(Verify, ReadableWithoutAWriter) {
  const auto detach_input = [](Model& m) { m.subgraphs[0].inputs.clear(); };
  expect_fine([&](Model& m) { detach_input(m), tensor(m, 0).is_variable = true; });
  expect_fine([&](Model& m) { detach_input(m), tensor(m, 0).shape = {0, 4}; });
  expect_fine([&](Model& m) { detach_input(m), tensor(m, 0).type = DataType::kResource; });
  expect_fine([&](Model& m) { detach_input(m), op(m, 0).builtin_code = kCustomBuiltinCode; });
  expect_fault([&](Model& m) { detach_input(m), tensor(m, 0).type = DataType::kString; }, "tensor 0 'in'");
}

TEST(Verify, WrittenOnlyOnce) {
  expect_fault([](Model& m) { op(m, 1).outputs[0] = 2; },
               "output 0 is tensor 2 'middle', which op 0 FULLY_CONNECTED already writes");
  expect_fault([](Model& m) { op(m, 1).outputs = {3, 3}; }, "which op 1 RELU already writes");
  expect_fault([](Model& m) { op(m, 1).outputs[0] = 1; }, "'weights', which is a constant");
  expect_fault([](Model& m) { op(m, 1).outputs[0] = 0; }, "'in', which is an input of the graph");
  expect_fault([](Model& m) { m.subgraphs[0].inputs = {0, 0}; }, "tensor 0 'in' is listed twice");
}

TEST(Verify, Shapes) {
  expect_fault([](Model& m) { tensor(m, 0).shape = {1, -1}; }, "tensor 0 'in': shape [1, -1] has a negative size");
  expect_fault([](Model& m) { tensor(m, 0).shape = {1 << 16, 1 << 15}; }, "2^31 elements or more");
  expect_fault([](Model& m) { tensor(m, 0).shape = Shape(std::vector<std::int32_t>(40, 1 << 30)); }, "2^31 elements");
  expect_fine([](Model& m) { tensor(m, 0).shape = {0, 2147483647}; });
  expect_fault([](Model& m) { tensor(m, 0).shape_signature = {-1}; }, "the shape signature has 1 dimensions");
  expect_fault([](Model& m) { tensor(m, 0).shape_signature = {-2, 4}; }, "a size of -2");
  expect_fine([](Model& m) { tensor(m, 0).shape_signature = {-1, 4}; });
}

TEST(Verify, Constants) {
  expect_fault([](Model& m) { tensor(m, 1).buffer = 3; }, "its buffer is 3, but there are only 3 buffers");
  expect_fault([](Model& m) { tensor(m, 1).buffer = -1; }, "its buffer is -1");
  expect_fault([](Model& m) { tensor(m, 1).type = DataType::kInt16; },
               "tensor 1 'weights': int16[3, 4] takes 24 bytes, but its buffer 1 holds 12");
  expect_fault([](Model& m) { tensor(m, 1).is_variable = true; }, "both variable and constant");
  expect_fine([](Model& m) {
    m.buffers.push_back({{}, false, true});
    tensor(m, 2).buffer = 3;  // computed
  });
  expect_fine([](Model& m) {
    tensor(m, 1).type = DataType::kInt4;
    tensor(m, 1).shape = {3, 1, 7};  // 21 elements: 10 bytes and a half
    m.buffers[1].data = Bytes(std::vector<std::uint8_t>(11));
  });
}

TEST(Verify, StringConstants) {
  const auto with_strings = [](std::vector<std::uint8_t> data, Shape shape) {
    return [data, shape](Model& m) {
      m.subgraphs[0].tensors.push_back(make_tensor("words", DataType::kString, shape, 3));
      m.buffers.emplace_back().data = Bytes(data);
    };
  };
  const std::vector<std::uint8_t> words = {2, 0, 0, 0, 16, 0, 0, 0, 17, 0, 0, 0, 18, 0, 0, 0, 'a', 'b'};
  expect_fine(with_strings(words, {2}));
  expect_fault(with_strings(words, {3}),
               "tensor 4 'words': string[3] has 3 elements, but its buffer 3 holds 2 strings");
  const auto with_byte = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> data = words;
    data[at] = value;
    return with_strings(data, {2});
  };
  expect_fault(with_byte(4, 15), "does not hold a list of strings");   // into the header
  expect_fault(with_byte(8, 19), "does not hold a list of strings");   // decreasing
  expect_fault(with_byte(12, 19), "does not hold a list of strings");  // past the end
  expect_fault(with_byte(3, 255), "does not hold a list of strings");  // count
  expect_fault(with_strings({0, 0, 0}, {}), "does not hold a list of strings");
}

TEST(Verify, Quantization) {
  expect_fault([](Model& m) { tensor(m, 1).quantization.zero_point = {0, 0}; }, "3 scales but 2 zero points");
  expect_fault([](Model& m) { tensor(m, 1).quantization.dimension = 1; }, "3 scales along dimension 1");
  expect_fault([](Model& m) { tensor(m, 1).quantization.dimension = 2; }, "dimension 2, but the shape is [3, 4]");
  expect_fault([](Model& m) { tensor(m, 1).quantization.dimension = -1; }, "dimension -1");
  expect_fault([](Model& m) { tensor(m, 3).shape = {}, tensor(m, 3).quantization.scale = {1, 1}; }, "shape is []");
  expect_fine([](Model& m) { tensor(m, 1).quantization.min = {0, 1, 2, 3, 4}; });
  // A bias that repeats its filter's dimension.
  expect_fine([](Model& m) {
    tensor(m, 3).shape = {2};
    tensor(m, 3).quantization.scale = {1, 1};
    tensor(m, 3).quantization.dimension = 3;
  });
  expect_fine([](Model& m) { tensor(m, 1).quantization.details = BlockwiseQuantization{2, -1, 32, {}}; });
  expect_fault(
      [](Model& m) {
        tensor(m, 1).quantization.details = BlockwiseQuantization{4, -1, 32, {}};
      },
      "scales are tensor 4");
  expect_fault(
      [](Model& m) {
        tensor(m, 1).quantization.details = BlockwiseQuantization{2, -2, 32, {}};
      },
      "zero points are tensor -2");
  expect_fault(
      [](Model& m) {
        tensor(m, 1).quantization.details = BlockwiseQuantization{2, 2, 0, {}};
      },
      "blocks of 0 elements");
}

TEST(Verify, QuantizationOverSeveralAxes) {
  expect_fine([](Model& m) { tensor(m, 1).quantization.details = MultiAxisQuantization{2, -1, 0, {0, 1}}; });
  expect_fault(
      [](Model& m) {
        tensor(m, 1).quantization.details = MultiAxisQuantization{2, -1, 0, {0, 2}};
      },
      "dimension 2, but the shape is [3, 4]");
  expect_fault(
      [](Model& m) {
        tensor(m, 1).quantization.details = MultiAxisQuantization{2, 4, 0, {0}};
      },
      "zero points are tensor 4");
}

TEST(Verify, ExternalBuffers) {
  const auto external = [](Model& m) {
    m.external_buffer_groups = {"weights.bin"};
    m.external_buffers = {{7, 0, 0, 12, ""}};
    tensor(m, 1).buffer = 0;
    tensor(m, 1).external_buffer = 7;
  };
  expect_fine(external);
  expect_fault([&](Model& m) { external(m), tensor(m, 1).external_buffer = 1; },
               "tensor 1 'weights': its data is external buffer 1, which the model does not list");
  expect_fault([&](Model& m) { external(m), m.external_buffers[0].group = 1; }, "its group is 1");
  expect_fault([&](Model& m) { external(m), m.external_buffers.push_back(m.external_buffers[0]); }, "id 7 is taken");
}

TEST(Verify, Sparsity) {
  const auto sparse = [](const std::function<void(Sparsity&)>& change) {
    return [change](Model& m) {
      Sparsity sparsity;
      sparsity.traversal_order = {1, 0, 2};
      sparsity.block_map = {1};
      sparsity.dimensions.resize(3);
      sparsity.dimensions[1] = {1, 0, {3, {0, 2}}, {2, {7, 65535}}};
      change(sparsity);
      tensor(m, 1).sparsity = sparsity;
      m.buffers[1].data = Bytes(std::vector<std::uint8_t>(5));  // fewer bytes than elements
    };
  };
  expect_fine(sparse([](Sparsity&) {}));
  expect_fault(sparse([](Sparsity& s) { s.traversal_order[0] = 3; }),
               "sparsity: the traversal order names dimension 3");
  expect_fault(sparse([](Sparsity& s) { s.traversal_order[0] = 2; }), "dimension 2 twice");
  expect_fault(sparse([](Sparsity& s) { s.traversal_order.pop_back(); }), "lists 2 of 3");
  expect_fault(sparse([](Sparsity& s) { s.block_map[0] = 2; }), "the block map names dimension 2");
  expect_fault(sparse([](Sparsity& s) { s.dimensions.pop_back(); }), "2 dimensions are described");
  expect_fault(sparse([](Sparsity& s) { s.dimensions[1].indices.wire_type = 4; }), "values of unknown type 4");
  expect_fault(sparse([](Sparsity& s) { s.dimensions[1].segments.values[1] = 256; }), "256 is outside 0..255");
  expect_fault(sparse([](Sparsity& s) { s.dimensions[1].indices.values[0] = -1; }), "indices of dimension 1: value -1");
}

TEST(Verify, OpaqueTables) {
  OpaqueTable table;
  table.bytes = Bytes(std::vector<std::uint8_t>(8));
  table.table_offset = 4;
  expect_fine([&](Model& m) { op(m, 0).opaque_options = table; });
  table.table_offset = 5;
  expect_fault([&](Model& m) { op(m, 0).opaque_options = table; }, "options: the table is said to start at byte 5");
  expect_fault([&](Model& m) { op(m, 0).opaque_options_2 = table; }, "second options");
  expect_fault([&](Model& m) { tensor(m, 1).quantization.details = table; }, "quantization details");
}

TEST(Verify, MetadataAndSignatures) {
  expect_fault([](Model& m) { m.metadata[0].buffer = 3; }, "metadata 0 'min_runtime_version': its buffer is 3");
  expect_fault([](Model& m) { m.metadata_buffers[0] = -1; }, "metadata buffer list is -1");
  expect_fault([](Model& m) { m.signatures[0].subgraph = 1; },
               "signature 0 'serving_default': it describes subgraph 1, but there is only 1 subgraph");
  expect_fault([](Model& m) { m.signatures[0].inputs[0].tensor = 4; }, "input 'x' is tensor 4");
  expect_fault([](Model& m) { m.signatures[0].outputs[0].tensor = -1; }, "output 'y' is tensor -1");
}

TEST(Verify, NamesInMessagesAreShortAndPrintable) {
  Model model = good_model();
  tensor(model, 0).name = "a\nb" + std::string(1000, 'x');
  tensor(model, 0).shape = {-1};
  const std::string message = verify(model).message();
  EXPECT_NE(message.find("'a\\nbxxx"), std::string::npos) << message;
  EXPECT_LT(message.size(), 400u);
}

}  // namespace
}  // namespace reef::ir
