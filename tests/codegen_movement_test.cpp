// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, several inputs and outputs: generated code on the virtual device against the chip
// reference, bit by bit, in several orders of execution; a part through the race finder.
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "generated_code.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

std::string describe(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const auto list = [&](const std::vector<std::int32_t>& tensors) {
    std::string text;
    for (const std::int32_t t : tensors) {
      text += fmt::format(" %{} {}", t, graph.tensors[static_cast<std::size_t>(t)].shape.to_string());
    }
    return text;
  };
  std::string text = "inputs" + list(graph.inputs);
  for (const ir::Operator& op : graph.operators) {
    text += fmt::format("\n  {}{} ->{}", op.type, list(op.inputs), list(op.outputs));
  }
  return text + "\noutputs" + list(graph.outputs);
}

// Operators by their usual form.
class Movements {
 public:
  explicit Movements(QuantizedModel& model) : model_(model) {}

  std::int32_t like(std::int32_t x, ir::Shape shape) {
    const ir::Tensor& from = model_.tensor(x);
    return model_.computed(std::move(shape), {from.type, from.quantization.scale[0], from.quantization.zero_point[0]});
  }
  std::int32_t pad(std::int32_t x, const std::vector<std::int32_t>& amounts) {
    ir::Shape shape = model_.shape(x);
    for (int d = 0; d < shape.rank(); ++d) {
      shape[d] += amounts[static_cast<std::size_t>(2 * d)] + amounts[static_cast<std::size_t>(2 * d + 1)];
    }
    return model_.op("PAD", {x, model_.ints(amounts, {shape.rank(), 2})}, {like(x, shape)}, "PadOptions");
  }
  std::int32_t slice(std::int32_t x, const std::vector<std::int32_t>& begin, const ir::Shape& size) {
    return model_.op("SLICE", {x, model_.ints(begin), model_.ints(size.dims())}, {like(x, size)}, "SliceOptions");
  }
  std::int32_t strided_slice(std::int32_t x, const std::vector<std::int32_t>& begin,
                             const std::vector<std::int32_t>& end, const std::vector<std::int32_t>& strides) {
    ir::Shape shape = model_.shape(x);
    for (int d = 0; d < shape.rank(); ++d) {
      const auto i = static_cast<std::size_t>(d);
      shape[d] = (end[i] - begin[i] + strides[i] - 1) / strides[i];
    }
    return model_.op("STRIDED_SLICE", {x, model_.ints(begin), model_.ints(end), model_.ints(strides)}, {like(x, shape)},
                     "StridedSliceOptions");
  }
  std::vector<std::int32_t> split(std::int32_t x, int axis, int parts) {
    ir::Shape shape = model_.shape(x);
    shape[axis] /= parts;
    std::vector<std::int32_t> outputs;
    for (int i = 0; i < parts; ++i) outputs.push_back(like(x, shape));
    ir::Attributes a;
    a.set("num_splits", std::int64_t{parts});
    model_.op("SPLIT", {model_.ints({axis}, ir::Shape{}), x}, outputs, "SplitOptions", a);
    return outputs;
  }
  std::int32_t tile(std::int32_t x, const std::vector<std::int32_t>& times) {
    ir::Shape shape = model_.shape(x);
    for (int d = 0; d < shape.rank(); ++d) shape[d] *= times[static_cast<std::size_t>(d)];
    return model_.op("TILE", {x, model_.ints(times)}, {like(x, shape)}, "TileOptions");
  }
  std::int32_t space_to_depth(std::int32_t x, int block) {
    const ir::Shape s = model_.shape(x);
    ir::Attributes a;
    a.set("block_size", std::int64_t{block});
    return model_.op("SPACE_TO_DEPTH", {x}, {like(x, {1, s[1] / block, s[2] / block, s[3] * block * block})},
                     "SpaceToDepthOptions", a);
  }
  std::int32_t depth_to_space(std::int32_t x, int block) {
    const ir::Shape s = model_.shape(x);
    ir::Attributes a;
    a.set("block_size", std::int64_t{block});
    return model_.op("DEPTH_TO_SPACE", {x}, {like(x, {1, s[1] * block, s[2] * block, s[3] / block / block})},
                     "DepthToSpaceOptions", a);
  }

 private:
  QuantizedModel& model_;
};

void expect_exact(const ir::Model& model, unsigned seed = 1) {
  const auto package = compiler::generate_code(WholeModel(model).part(7));
  ASSERT_TRUE(package.ok()) << package.status().message() << "\n" << describe(model);
  const Status runs = runs_as_chip_reference(model, *package, seed);
  EXPECT_TRUE(runs.ok()) << runs.message() << "\n" << describe(model);
  const Status races = has_no_races(*package);
  EXPECT_TRUE(races.ok()) << races.message() << "\n" << describe(model);
}

TEST(CodegenMovement, SeveralInputs) {
  QuantizedModel model;
  const std::int32_t a = model.input({1, 8, 12, 8}, "a"), b = model.input({1, 9, 7, 3}, "b"),
                     c = model.input({1, 16, 16, 3}, "c");
  const std::int32_t from_b = model.conv(b, 8, 3), from_a = model.conv(a, 16, 3);
  expect_exact(model.finish({model.conv(from_b, 4), from_a, model.conv(c, 8, 3, 2), from_b}));
}

TEST(CodegenMovement, OutputsThatAreInputsOrViews) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 6, 10, 5});
  const std::int32_t view = model.computed({1, 6, 10, 5}, {ir::DataType::kUInt8, 0.05f, 128}, "view");
  model.op("QUANTIZE", {x}, {view}, "QuantizeOptions");
  expect_exact(model.finish({view}));
}

TEST(CodegenMovement, JoinedChannels) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 9, 14, 8});
  expect_exact(model.finish({model.concatenation({model.conv(x, 8, 3), x, model.conv(x, 68)}, 3)}));
}

TEST(CodegenMovement, JoinedChannelsThatAreNoWholeWords) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 8, 11, 3});
  const std::int32_t joined = model.concatenation({x, model.conv(x, 5, 3), model.conv(x, 1), x, model.conv(x, 7)}, 3);
  expect_exact(model.finish({model.conv(joined, 8, 3), joined}));
}

TEST(CodegenMovement, JoinedRowsAndColumns) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 9, 14, 8}), y = model.conv(x, 8, 3);
  const std::int32_t tall = model.concatenation({x, y, x}, 1);
  expect_exact(model.finish({model.concatenation({tall, tall}, 2), model.conv(tall, 4, 3)}));
}

TEST(CodegenMovement, JoinedWithOtherScales) {
  QuantizedModel model(Quantized{ir::DataType::kUInt8, 0.05f, 100});
  const std::int32_t x = model.input({1, 9, 6, 8});
  const std::int32_t y = model.conv(x, 6);
  model.tensor(y).quantization.scale = {0.031f};
  model.tensor(y).quantization.zero_point = {77};
  expect_exact(model.finish({model.concatenation({x, y}, 3)}));
}

TEST(CodegenMovement, PaddingThatIsReal) {
  QuantizedModel model;
  Movements move(model);
  const std::int32_t x = model.input({1, 6, 7, 6});
  expect_exact(model.finish({move.pad(x, {0, 0, 1, 2, 3, 0, 0, 0})}));
  for (const auto& amounts : std::vector<std::vector<std::int32_t>>{
           {0, 0, 31, 60, 17, 2, 0, 0}, {0, 0, 0, 0, 0, 0, 3, 7}, {0, 0, 1, 1, 1, 1, 2, 0}, {0, 0, 0, 0, 0, 0, 4, 4}}) {
    QuantizedModel far(Quantized{ir::DataType::kUInt8, 0.05f, 100});
    expect_exact(far.finish({Movements(far).pad(far.input({1, 2, 2, 3}), amounts)}));
  }
}

// A small image in a large one: most of the tiles that compute have no part of it.
TEST(CodegenMovement, PaddingFarBeyondAnImage) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 2, 2, 8});
  const std::int32_t padded = Movements(model).pad(x, {0, 0, 6, 8, 4, 10, 0, 0});
  expect_exact(model.finish({model.conv(padded, 8, 3), model.conv(padded, 4)}));
}

TEST(CodegenMovement, Parts) {
  QuantizedModel model;
  Movements move(model);
  const std::int32_t x = model.conv(model.input({1, 12, 15, 8}), 24, 3);
  const std::vector<std::int32_t> thirds = move.split(x, 3, 3), rows = move.split(x, 1, 4);
  std::vector<std::int32_t> outputs = {model.conv(thirds[1], 8, 3), thirds[2], rows[3], rows[0]};
  outputs.push_back(move.slice(x, {0, 3, 5, 6}, {1, 7, 9, 11}));
  outputs.push_back(move.strided_slice(x, {0, 1, 0, 3}, {1, 12, 15, 24}, {1, 2, 3, 5}));
  expect_exact(model.finish(outputs));
}

TEST(CodegenMovement, OtherOrders) {
  QuantizedModel model;
  Movements move(model);
  const std::int32_t x = model.conv(model.input({1, 8, 12, 8}), 12, 3);
  expect_exact(model.finish({model.transpose(x, {0, 2, 1, 3}), model.transpose(x, {0, 3, 1, 2}),
                             model.transpose(x, {0, 2, 3, 1}), move.space_to_depth(x, 2), move.depth_to_space(x, 2),
                             move.tile(x, {1, 2, 1, 3}), model.resize("RESIZE_NEAREST_NEIGHBOR", x, 16, 24),
                             model.resize("RESIZE_NEAREST_NEIGHBOR", x, 21, 17)}));
}

}  // namespace
}  // namespace reef::testing
