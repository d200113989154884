// SPDX-License-Identifier: Apache-2.0
// Options, order, reports, and the rewrites that concern the model as a whole.
#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

constexpr Affine8 kPlain = {DataType::kInt8, 0.05f, -3};
constexpr Affine8 kOther = {DataType::kInt8, 0.04f, -20};

// float -> QUANTIZE -> RELU -> DEQUANTIZE -> float
ir::Model float_ends() {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.float_input({1, 2, 3, 4});
  builder.set_name(x, "image");
  const std::int32_t q = ops.tensor({1, 2, 3, 4}, kPlain);
  ops.add("QUANTIZE", "QuantizeOptions", {}, {x}, {q}, DataType::kFloat32);
  const std::int32_t r = ops.unary("RELU", q, kOther);
  const std::int32_t y = ops.tensor(DataType::kFloat32, {1, 2, 3, 4}, {});
  builder.set_name(y, "scores");
  ops.add("DEQUANTIZE", "DequantizeOptions", {}, {r}, {y}, DataType::kInt8);
  return builder.finish({y});
}

TEST(Rewrites, NamesAreUniqueAndSaid) {
  std::set<std::string_view> names;
  for (const PassInfo& info : passes_of(Stage::kChip)) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(info.summary.back(), '.') << info.name;
    EXPECT_TRUE(info.safety != Safety::kInterface || !info.on_by_default) << info.name;
  }
  for (const char* name : {"io", "hard-swish", "leaky-relu", "elu", "gelu", "silu", "fold-constants", "fixed-shapes",
                           "unroll-batch", "yolo-head", "resize", "pixel-shuffle", "split-v", "unpack", "pad-v2"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Rewrites, UnknownNamesAreRefused) {
  ir::Model model = float_ends();
  RewriteOptions options;
  options.disable = {"sparkle"};
  const auto result = apply_rewrites(model, options);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("hard-swish"), std::string::npos) << "it should say which there are";
}

TEST(Rewrites, FloatEndsAreKeptUnlessAskedFor) {
  const ir::Model model = float_ends();
  const Rewritten kept = rewritten(model, standard_options());
  EXPECT_EQ(kept.model, model);
  ASSERT_EQ(kept.applications.size(), 2u);
  for (const Application& each : kept.applications) {
    EXPECT_FALSE(each.made);
    EXPECT_EQ(each.how, "--rewrite io");
    EXPECT_NE(each.what.find("could be"), std::string::npos);
  }
  RewriteOptions options = standard_options();
  options.enable = {"io"};
  const Rewritten stripped = rewritten(model, options);
  const ir::Subgraph& graph = stripped.model.subgraphs[0];
  EXPECT_EQ(op_types(stripped.model), std::vector<std::string>{"RELU"});
  const ir::Tensor& in = graph.tensors[at(graph.inputs[0])];
  const ir::Tensor& out = graph.tensors[at(graph.outputs[0])];
  EXPECT_EQ(in.type, DataType::kInt8);
  EXPECT_EQ(in.name, "image");
  EXPECT_EQ(out.name, "scores");
  EXPECT_EQ(in.quantization.scale[0], kPlain.scale);
  EXPECT_EQ(out.quantization.scale[0], kOther.scale);
  // What QUANTIZE makes of the floats, RELU alone must take to what DEQUANTIZE would have read.
  std::mt19937 random(1);
  const Buffers floats = random_inputs(model, random);
  std::vector<std::uint8_t> stored(24);
  for (std::size_t i = 0; i < 24; ++i) {
    float value;
    std::memcpy(&value, &floats[0][4 * i], 4);
    stored[i] =
        static_cast<std::uint8_t>(std::clamp<long>(std::lround(value / kPlain.scale) + kPlain.zero_point, -128, 127));
  }
  const auto expected = evaluate(model, floats), found = evaluate(stripped.model, Buffers{stored});
  ASSERT_TRUE(expected.ok() && found.ok());
  for (std::size_t i = 0; i < 24; ++i) {
    float value;
    std::memcpy(&value, &(*expected)[0][4 * i], 4);
    EXPECT_EQ(value, kOther.scale * static_cast<float>(static_cast<std::int8_t>((*found)[0][i]) - kOther.zero_point));
  }
}

ir::Model hard_swish_model() {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 4, 16, 5}, {DataType::kInt8, 8.0f / 255, -8});
  return builder.finish(
      {builder.add("HARD_SWISH", "HardSwishOptions", {}, {x}, {1, 4, 16, 5}, {DataType::kInt8, 4.5f / 255, -107})});
}

TEST(Rewrites, CanBeSwitchedOffAndThenSaySo) {
  const ir::Model model = hard_swish_model();
  RewriteOptions none = standard_options();
  none.none = true;
  const Rewritten possible = rewritten(model, none);
  EXPECT_EQ(possible.model, model);
  ASSERT_EQ(possible.applications.size(), 1u);
  EXPECT_FALSE(possible.applications[0].made);
  EXPECT_EQ(possible.applications[0].how, "--rewrite hard-swish");
  RewriteOptions off = standard_options();
  off.disable = {"hard-swish"};
  EXPECT_EQ(rewritten(model, off).model, model);
  RewriteOptions only = none;
  only.enable = {"hard-swish"};
  const Rewritten made = rewritten(model, only);
  ASSERT_EQ(made.applications.size(), 1u);
  EXPECT_TRUE(made.applications[0].made);
  EXPECT_EQ(made.applications[0].op, 0);
  EXPECT_EQ(made.applications[0].what, "op 0 HARD_SWISH 'made/reef_2' became DEPTHWISE_CONV_2D and MUL");
  EXPECT_EQ(made.applications[0].how, "--no-rewrite hard-swish");
}

TEST(Rewrites, WithoutAnEvaluatorNothingIsTried) {
  const ir::Model model = hard_swish_model();
  RewriteOptions options = standard_options();
  options.evaluate = {};
  EXPECT_EQ(rewritten(model, options).model, model);
}

TEST(Rewrites, NothingIsMadeThatWouldNotFit) {
  const ir::Model model = hard_swish_model();
  RewriteOptions options = standard_options();
  options.fits = [](const ir::Model& each) { return std::vector<bool>(each.subgraphs[0].operators.size(), false); };
  const Rewritten result = rewritten(model, options);
  EXPECT_EQ(result.model, model);
  EXPECT_TRUE(result.applications.empty());
}

TEST(Rewrites, WhatFitsIsLeftAlone) {
  const ir::Model model = hard_swish_model();
  RewriteOptions options = standard_options();
  options.fits = [](const ir::Model& each) { return std::vector<bool>(each.subgraphs[0].operators.size(), true); };
  EXPECT_EQ(rewritten(model, options).model, model);
}

TEST(Rewrites, MetadataSignaturesAndOtherSubgraphsSurvive) {
  ir::Model model = hard_swish_model();
  model.buffers.push_back({Bytes({1, 2, 3}), false, false});
  model.metadata = {{"note", static_cast<std::int32_t>(model.buffers.size()) - 1}};
  ir::Subgraph& graph = model.subgraphs[0];
  model.signatures = {{"serve", 0, {{"x", graph.inputs[0]}}, {{"y", graph.outputs[0]}}}};
  const ir::Subgraph other = graph;
  model.subgraphs.push_back(other);
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(result.model.buffers[at(result.model.metadata[0].buffer)].data, Bytes({1, 2, 3}));
  EXPECT_EQ(result.model.signatures[0].outputs[0].tensor, result.model.subgraphs[0].outputs[0]);
  EXPECT_EQ(result.model.subgraphs[1].operators[0].type, "HARD_SWISH");
  EXPECT_EQ(result.model.subgraphs[0].operators.size(), 2u);
}

// TRANSPOSE of constant weights in front of TRANSPOSE_CONV, as quantization-aware training leaves it, and a shape
// computed from a shape.
TEST(Rewrites, ConstantsAreFolded) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 3, 3, 2}, kPlain);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(4 * 2 * 2 * 2));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(37 * i);
  const std::int32_t stored = ops.weights({2, 2, 4, 2}, DataType::kInt8, values, {0.02f}, 0, 0);
  const std::vector<int> order = {2, 0, 1, 3};
  const std::int32_t weights = ops.transpose(stored, order);
  const std::vector<std::int64_t> out_shape = {1, 6, 6, 4};
  const std::int32_t size = ops.int_vector(out_shape);
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("stride_w", std::int64_t{2});
  attributes.set("stride_h", std::int64_t{2});
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t wide =
      builder.add("TRANSPOSE_CONV", "TransposeConvOptions", attributes, {size, weights, x}, {1, 6, 6, 4}, kOther);
  const std::int32_t shape = ops.tensor(DataType::kInt32, {4}, {});
  ir::Attributes type;
  type.set("out_type", ir::EnumName{"INT32"});
  ops.add("SHAPE", "ShapeOptions", type, {wide}, {shape}, DataType::kInt32);
  const std::int32_t flat = ops.tensor({1, 6, 6, 4}, kOther);
  ops.add("RESHAPE", "ReshapeOptions", {}, {ops.unary("RELU", wide, kOther), shape}, {flat}, DataType::kInt8);
  const ir::Model model = builder.finish({flat});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(op_types(result.model), (std::vector<std::string>{"TRANSPOSE_CONV", "RELU", "RESHAPE"}));
  EXPECT_EQ(difference(model, result.model, 1), 0);
  for (const Application& each : result.applications) EXPECT_EQ(each.rewrite, "fold-constants");
}

TEST(Rewrites, OpenBatchesAreFixed) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 4, 4, 3}, kPlain);
  const std::int32_t r = ops.unary("RELU", x, kOther);
  // The shape of the result is written as [SHAPE(r)[0], 48].
  const std::int32_t shape = ops.tensor(DataType::kInt32, {4}, {});
  ir::Attributes type;
  type.set("out_type", ir::EnumName{"INT32"});
  ops.add("SHAPE", "ShapeOptions", type, {r}, {shape}, DataType::kInt32);
  const std::vector<std::int64_t> zero = {0}, one = {1};
  const std::int32_t from = ops.int_vector(zero), to = ops.int_vector(one), step = ops.int_vector(one);
  const std::int32_t batch = ops.tensor(DataType::kInt32, {}, {});
  ir::Attributes shrink;
  for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"})
    shrink.set(mask, std::int64_t{0});
  shrink.set("shrink_axis_mask", std::int64_t{1});
  ops.add("STRIDED_SLICE", "StridedSliceOptions", shrink, {shape, from, to, step}, {batch}, DataType::kInt32);
  const std::int32_t target = ops.tensor(DataType::kInt32, {2}, {});
  ir::Attributes pack;
  pack.set("values_count", std::int64_t{2});
  pack.set("axis", std::int64_t{0});
  ops.add("PACK", "PackOptions", pack, {batch, ops.int_scalar(48)}, {target}, DataType::kInt32);
  const std::int32_t y = ops.tensor({1, 48}, kOther);
  ops.add("RESHAPE", "ReshapeOptions", {}, {r, target}, {y}, DataType::kInt8);
  ir::Model model = builder.finish({y});
  ir::Subgraph& graph = model.subgraphs[0];
  graph.tensors[at(graph.inputs[0])].shape_signature = {-1, 4, 4, 3};
  graph.tensors[at(graph.operators[0].outputs[0])].shape_signature = {-1, 4, 4, 3};
  graph.tensors[at(graph.outputs[0])].shape_signature = {-1, 48};
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(op_types(result.model), (std::vector<std::string>{"RELU", "RESHAPE"}));
  for (const ir::Tensor& tensor : result.model.subgraphs[0].tensors) EXPECT_TRUE(tensor.shape_signature.empty());
  EXPECT_EQ(difference(model, result.model, 1), 0);
}

TEST(Rewrites, OtherOpenSizesAreLeft) {
  ir::Model model = hard_swish_model();
  ir::Tensor& input = model.subgraphs[0].tensors[at(model.subgraphs[0].inputs[0])];
  input.shape = {1, 1, 1, 5};
  input.shape_signature = {-1, -1, -1, 5};
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(result.model, model);
  ASSERT_EQ(result.applications.size(), 1u);
  EXPECT_EQ(result.applications[0].rewrite, "fixed-shapes");
  EXPECT_FALSE(result.applications[0].made);
}

// Convolution, activation, pooling, a branch, a constant addend, flattening, a dense layer and softmax.
ir::Model batch_model(std::int32_t n, const Affine8& affine) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  std::mt19937 random(5);
  const std::int32_t x = builder.input({n, 4, 4, 3}, affine);
  const bool is_signed = affine.type == DataType::kInt8;
  std::vector<std::uint8_t> weights(5 * 3), dense(7 * 80);
  for (auto* list : {&weights, &dense}) {
    for (std::uint8_t& value : *list) value = static_cast<std::uint8_t>(random());
  }
  const std::int32_t filter = ops.weights({5, 1, 1, 3}, affine.type, weights, {0.02f}, is_signed ? 0 : 120, 0);
  const std::int32_t bias = ops.bias({5, -300, 20, 999, 0}, {0.02f * affine.scale});
  const std::int32_t conv = ops.pointwise(x, filter, bias, "NONE", ops.tensor({n, 4, 4, 5}, affine));
  const std::int32_t gate = ops.unary("LOGISTIC", conv, unit_affine(affine.type));
  const std::int32_t addend = ops.filled({1, 1, 1, 5}, affine, 100);
  const std::int32_t sum = ops.binary("ADD", ops.binary("MUL", conv, gate, affine), addend, affine);
  const std::int32_t part = ops.slice(sum, 3, 1, 2), rest = ops.slice(sum, 3, 0, 3);
  const std::vector<std::int32_t> parts = {part, rest};
  const std::int32_t flat = ops.reshape(ops.concatenation(parts, 3), {n, 80});
  const std::int32_t dense_weights = ops.weights({7, 80}, affine.type, dense, {0.01f}, is_signed ? 0 : 130, 0);
  const std::int32_t dense_bias = ops.bias(std::vector<std::int32_t>(7, 11), {0.01f * affine.scale});
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"RELU"});
  attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  attributes.set("keep_num_dims", false);
  const std::int32_t scores = builder.add("FULLY_CONNECTED", "FullyConnectedOptions", attributes,
                                          {flat, dense_weights, dense_bias}, {n, 7}, affine);
  ir::Attributes beta;
  beta.set("beta", 1.0);
  const std::int32_t y = builder.add("SOFTMAX", "SoftmaxOptions", beta, {scores}, {n, 7}, unit_affine(affine.type));
  return builder.finish({y, sum});
}

TEST(Rewrites, BatchesAreWrittenOut) {
  for (const std::int32_t n : {2, 4, 16}) {
    for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
      const ir::Model model = batch_model(n, {type, 0.06f, type == DataType::kInt8 ? -11 : 117});
      RewriteOptions options = standard_options();
      options.disable = {"matmul"};
      const Rewritten result = rewritten(model, options);
      EXPECT_EQ(difference(model, result.model, 1), 0);
      const auto images = static_cast<std::size_t>(n);
      EXPECT_EQ(count_ops(result.model, "CONV_2D"), images);
      EXPECT_EQ(count_ops(result.model, "FULLY_CONNECTED"), images);
      EXPECT_EQ(count_ops(result.model, "SPLIT"), 1u);
      std::size_t misfits = 0;
      for (std::size_t i = 0; i < result.model.subgraphs[0].operators.size(); ++i) {
        misfits += fits_the_chip(result.model, static_cast<std::int32_t>(i)) ? 0 : 1;
      }
      EXPECT_EQ(misfits, 2u) << "SPLIT, and the CONCATENATION of four dimensions";
      // Weights are shared and not copied.
      std::set<std::int32_t> filters;
      for (const ir::Operator& op : result.model.subgraphs[0].operators) {
        if (op.type == "CONV_2D") filters.insert(op.inputs[1]);
      }
      EXPECT_EQ(filters.size(), 1u);
    }
  }
}

TEST(Rewrites, LargeBatchesAreLeft) {
  const ir::Model model = batch_model(17, kPlain);
  RewriteOptions options = standard_options();
  options.disable = {"matmul"};
  EXPECT_EQ(rewritten(model, options).model, model);
}

}  // namespace
}  // namespace reef::passes
