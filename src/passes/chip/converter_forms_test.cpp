// SPDX-License-Identifier: Apache-2.0
// Forms that today's converters write of ordinary layers, and what becomes of them.
#include <cmath>

#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

constexpr Affine8 kPlain = {DataType::kInt8, 0.05f, -3};

ir::Attributes with_activation(const char* name = "NONE") {
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{name});
  return attributes;
}

std::vector<std::uint8_t> noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() % 255 - 127);
  return bytes;
}

// The standard predicate with one more condition.
template <bool (*kAlso)(const ir::Model&, const ir::Operator&)>
RewriteOptions options_if() {
  RewriteOptions options = standard_options();
  options.fits = for_each_op([](const ir::Model& model, std::int32_t op) {
    return fits_the_chip(model, op) && kAlso(model, model.subgraphs[0].operators[at(op)]);
  });
  return options;
}

void expect_same_bytes(const ir::Model& model, const RewriteOptions& options, std::vector<std::string> types) {
  const Rewritten result = rewritten(model, options);
  EXPECT_EQ(op_types(result.model), types);
  for (const unsigned seed : {1u, 2u, 3u}) EXPECT_EQ(difference(model, result.model, seed), 0);
}

// LOG(1 + EXP(x)) with 8 bits in between: a step of EXP is up to dozens where the function ends, so that replacing EXP
// and LOG within a step each would change the whole by far more.
TEST(ConverterForms, PartsOfASteepFunctionStay) {
  ModelBuilder builder;
  const ir::Shape shape = {1, 4, 16, 5};
  const std::int32_t x = builder.input(shape, {DataType::kInt8, 0.0417f, -5});
  const Affine8 coarse = {DataType::kInt8, 0.974f, -128};
  const std::int32_t grown = builder.add("EXP", "ExpOptions", {}, {x}, shape, coarse);
  const std::int32_t one = builder.ops().filled({1}, {DataType::kInt8, 1.0f / 127, 0}, 127);
  const std::int32_t more = builder.ops().binary("ADD", grown, one, coarse);
  const std::int32_t y = builder.add("LOG", "", {}, {more}, shape, {DataType::kInt8, 0.0216f, -128});
  const ir::Model model = builder.finish({y});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_LE(difference(model, result.model, 1), kLargestDifference);
  EXPECT_EQ(count_ops(result.model, "EXP"), 1u);
}

TEST(ConverterForms, PartsOfATameFunctionAreReplaced) {
  ModelBuilder builder;
  const ir::Shape shape = {1, 4, 16, 5};
  const std::int32_t x = builder.input(shape, {DataType::kInt8, 0.03f, 0});
  const Affine8 out = {DataType::kInt8, 0.05f, 0};
  const std::int32_t size = builder.add("ABS", "AbsOptions", {}, {x}, shape, {DataType::kInt8, 0.03f, 0});
  const std::int32_t y = builder.ops().unary("RELU", size, out);
  const ir::Model model = builder.finish({y});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(count_ops(result.model, "ABS"), 0u);
  EXPECT_LE(difference(model, result.model, 1), 2 * kLargestDifference);
}

bool old_fully_connected(const ir::Model&, const ir::Operator& op) {
  return op.type != "FULLY_CONNECTED" || op.version <= 4;
}

TEST(ConverterForms, DenseLayersThatKeepDimensions) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 1, 1, 24}, kPlain);
  const std::int32_t weights = builder.ops().weights({6, 24}, DataType::kInt8, noise(144, 1), {0.004f}, 0, 0);
  const std::int32_t bias = builder.ops().bias({5, -70, 0, 900, -3, 44}, {0.004f * kPlain.scale});
  ir::Attributes attributes = with_activation("RELU");
  attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  attributes.set("keep_num_dims", true);
  const std::int32_t y = builder.add("FULLY_CONNECTED", "FullyConnectedOptions", attributes, {x, weights, bias},
                                     {1, 1, 1, 6}, {DataType::kInt8, 0.06f, -128});
  builder.ops().last().version = 5;
  const ir::Model model = builder.finish({y});
  const Rewritten result = rewritten(model, options_if<old_fully_connected>());
  EXPECT_EQ(count_ops(result.model, "FULLY_CONNECTED"), 0u);
  EXPECT_EQ(count_ops(result.model, "CONV_2D"), 1u);
  for (const unsigned seed : {1u, 2u, 3u}) EXPECT_LE(difference(model, result.model, seed, 1), 1);
}

TEST(ConverterForms, FloatIslandsThatOnlyMoveElements) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 80}, kPlain);
  OpList& ops = builder.ops();
  const std::int32_t real = ops.tensor(DataType::kFloat32, {1, 80}, {});
  ops.add("DEQUANTIZE", "DequantizeOptions", {}, {x}, {real}, DataType::kInt8);
  const std::vector<std::int32_t> gates = ops.split(real, 1, 4);
  std::vector<std::int32_t> outputs;
  for (const std::int32_t gate : gates) {
    outputs.push_back(ops.tensor({1, 20}, {DataType::kInt8, 0.04f + 0.01f * static_cast<float>(outputs.size()), 7}));
    ops.add("QUANTIZE", "QuantizeOptions", {}, {gate}, {outputs.back()}, DataType::kFloat32);
  }
  const ir::Model model = builder.finish(outputs);
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(count_ops(result.model, "SPLIT"), 1u);
  for (const ir::Tensor& tensor : result.model.subgraphs[0].tensors) EXPECT_NE(tensor.type, DataType::kFloat32);
  for (const unsigned seed : {1u, 2u, 3u}) EXPECT_LE(difference(model, result.model, seed, 1), 1);
}

TEST(ConverterForms, SumsLeftInFloatingPoint) {
  for (const std::size_t terms : {2u, 3u}) {
    ModelBuilder builder;
    OpList& ops = builder.ops();
    const ir::Shape shape = {1, 4, 16, 5};
    std::vector<std::int32_t> reals;
    for (std::size_t i = 0; i < terms; ++i) {
      const std::int32_t x = builder.input(shape, {DataType::kInt8, 0.02f + 0.01f * static_cast<float>(i), -9});
      reals.push_back(ops.tensor(DataType::kFloat32, shape, {}));
      ops.add("DEQUANTIZE", "DequantizeOptions", {}, {x}, {reals.back()}, DataType::kInt8);
    }
    const std::int32_t sum = ops.tensor(DataType::kFloat32, shape, {});
    ops.add("ADD_N", "AddNOptions", {}, reals, {sum}, DataType::kFloat32);
    const std::int32_t y = ops.tensor(shape, {DataType::kInt8, 0.03f, 3});  // saturates
    ops.add("QUANTIZE", "QuantizeOptions", {}, {sum}, {y}, DataType::kFloat32);
    const ir::Model model = builder.finish({y});
    const Rewritten result = rewritten(model, standard_options());
    EXPECT_EQ(op_types(result.model), std::vector<std::string>(terms - 1, "ADD"));
    ASSERT_EQ(result.applications.size(), 1u);
    for (const unsigned seed : {1u, 2u, 3u}) EXPECT_LE(difference(model, result.model, seed, 1), 1);
  }
}

bool without_strides(const ir::Model& model, const ir::Operator& op) {
  if (op.type != "STRIDED_SLICE") return true;
  const ir::Tensor& strides = model.subgraphs[0].tensors[at(op.inputs[3])];
  const auto bytes = ir::constant_data(model, strides).span();
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::int32_t stride;
    std::memcpy(&stride, &bytes[i], 4);
    if (stride != 1) return false;
  }
  return true;
}

ir::Model slice_model(std::vector<std::int64_t> begins, std::vector<std::int64_t> ends,
                      std::vector<std::int64_t> strides, std::int64_t mask, ir::Shape out,
                      ir::Shape in = {1, 9, 12, 3}) {
  ModelBuilder builder;
  const std::int32_t x = builder.input(std::move(in), kPlain);
  ir::Attributes attributes;
  attributes.set("begin_mask", mask);
  attributes.set("end_mask", mask);
  for (const char* name : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) attributes.set(name, std::int64_t{0});
  const std::int32_t from = builder.ops().int_vector(begins), to = builder.ops().int_vector(ends);
  const std::int32_t by = builder.ops().int_vector(strides);
  return builder.finish(
      {builder.add("STRIDED_SLICE", "StridedSliceOptions", attributes, {x, from, to, by}, out, kPlain)});
}

TEST(ConverterForms, StepsOverTokensAndChannels) {
  const RewriteOptions options = options_if<without_strides>();
  const ir::Shape tokens = {1, 11, 8};
  expect_same_bytes(slice_model({0, 0, 0}, {1, 11, 8}, {1, 3, 1}, 0, {1, 4, 8}, tokens), options,
                    {"RESHAPE", "MAX_POOL_2D", "RESHAPE"});
  expect_same_bytes(slice_model({0, 1, 0}, {0, 9, 0}, {1, 4, 1}, 5, {1, 2, 8}, tokens), options,
                    {"RESHAPE", "STRIDED_SLICE", "MAX_POOL_2D", "RESHAPE"});
  expect_same_bytes(slice_model({0, 0, 1}, {0, 0, 8}, {1, 1, 2}, 3, {1, 11, 4}, tokens), options,
                    {"RESHAPE", "CONV_2D", "RESHAPE"});
  expect_same_bytes(slice_model({0, -5}, {0, -1}, {1, 2}, 1, {1, 2}, {1, 8}), options,
                    {"RESHAPE", "CONV_2D", "RESHAPE"});
}

TEST(ConverterForms, SlicesThatLeaveOutRowsAndColumns) {
  const RewriteOptions options = options_if<without_strides>();
  expect_same_bytes(slice_model({0, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 2, 1}, 15, {1, 5, 6, 3}), options, {"MAX_POOL_2D"});
  expect_same_bytes(slice_model({0, 1, 1, 0}, {1, 9, 12, 3}, {1, 2, 2, 1}, 0, {1, 4, 6, 3}), options,
                    {"STRIDED_SLICE", "MAX_POOL_2D"});
  expect_same_bytes(slice_model({0, -8, 2, 0}, {1, 100, -1, 3}, {1, 3, 1, 1}, 0, {1, 3, 9, 3}), options,
                    {"STRIDED_SLICE", "MAX_POOL_2D"});
  // Rows 8, 6, 4 and 2.
  const std::string slice = "STRIDED_SLICE";
  expect_same_bytes(slice_model({0, 8, 0, 0}, {1, 0, 12, 3}, {1, -2, 1, 1}, 0, {1, 4, 12, 3}), options,
                    {slice, slice, slice, slice, "CONCATENATION"});
  const ir::Model both_ways = slice_model({0, 8, 9, 0}, {1, 0, 0, 3}, {1, -2, -1, 1}, 0, {1, 4, 9, 3});
  EXPECT_EQ(rewritten(both_ways, options).model, both_ways);
  // A cut picture with blue first for one with red first, as exporters of flips write the end, and as others do.
  expect_same_bytes(slice_model({0, 2, 1, -1}, {1, 8, 9, -100}, {1, 1, 1, -1}, 0, {1, 6, 8, 3}), options,
                    {"STRIDED_SLICE", "CONV_2D"});
  expect_same_bytes(slice_model({0, 0, 0, 0}, {0, 0, 0, 0}, {1, 1, 1, -1}, 15, {1, 9, 12, 3}), options, {"CONV_2D"});
  const ir::Model channels = slice_model({0, 0, 0, 0}, {1, 9, 12, 3}, {1, 1, 1, 2}, 0, {1, 9, 12, 2});
  for (const std::string& type : op_types(rewritten(channels, options).model)) {
    EXPECT_NE(type, "MAX_POOL_2D") << "pooling does not leave out channels";
  }
}

TEST(ConverterForms, ChannelsAndRowsInAnotherOrder) {
  for (const int axis : {1, 3}) {
    ModelBuilder builder;
    const std::int32_t x = builder.input({1, 6, 5, 6}, kPlain);
    // A convolution puts all channels in order; slices pick some, and some twice.
    const std::vector<std::int64_t> indices =
        axis == 3 ? std::vector<std::int64_t>{4, 5, 0, 1, 3, 2} : std::vector<std::int64_t>{4, 5, 0, 1, 1};
    ir::Attributes attributes;
    attributes.set("axis", std::int64_t{axis == 3 ? -1 : axis});
    ir::Shape out = {1, 6, 5, 6};
    out[axis] = static_cast<std::int32_t>(indices.size());
    const ir::Model model = builder.finish(
        {builder.add("GATHER", "GatherOptions", attributes, {x, builder.ops().int_vector(indices)}, out, kPlain)});
    const std::string slice = "STRIDED_SLICE";
    expect_same_bytes(model, standard_options(),
                      axis == 3 ? std::vector<std::string>{"CONV_2D"}
                                : std::vector{slice, slice, slice, std::string("CONCATENATION")});
  }
}

TEST(ConverterForms, ReversedChannels) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 6, 5, 3}, kPlain);
  const std::vector<std::int64_t> axes = {3};
  const ir::Model model = builder.finish(
      {builder.add("REVERSE_V2", "ReverseV2Options", {}, {x, builder.ops().int_vector(axes)}, {1, 6, 5, 3}, kPlain)});
  expect_same_bytes(model, standard_options(), {"CONV_2D"});
}

TEST(ConverterForms, LongDimensionsArePickedAsChannels) {
  // 40 rows turned round are too many slices.
  ModelBuilder turned;
  const std::int32_t x = turned.input({1, 40, 5, 3}, kPlain);
  const std::vector<std::int64_t> axes = {1};
  const ir::Model model = turned.finish(
      {turned.add("REVERSE_V2", "ReverseV2Options", {}, {x, turned.ops().int_vector(axes)}, {1, 40, 5, 3}, kPlain)});
  expect_same_bytes(model, standard_options(), {"RESHAPE", "TRANSPOSE", "CONV_2D", "TRANSPOSE", "RESHAPE"});
  // Overlapping windows: a table of indices.
  ModelBuilder windows;
  const std::int32_t y = windows.input({1, 6, 5}, kPlain);
  const std::vector<std::int64_t> table = {0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5};
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{1});
  const std::int32_t indices = windows.ops().int_matrix(table, 4);
  const ir::Model unfolded =
      windows.finish({windows.add("GATHER", "GatherOptions", attributes, {y, indices}, {1, 3, 4, 5}, kPlain)});
  expect_same_bytes(unfolded, standard_options(), {"RESHAPE", "TRANSPOSE", "CONV_2D", "TRANSPOSE", "RESHAPE"});
}

TEST(ConverterForms, GatherBeyondTheEndStays) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 6, 5, 6}, kPlain);
  const std::vector<std::int64_t> indices = {0, 6};
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{1});
  const ir::Model model = builder.finish({builder.add("GATHER", "GatherOptions", attributes,
                                                      {x, builder.ops().int_vector(indices)}, {1, 2, 5, 6}, kPlain)});
  EXPECT_EQ(rewritten(model, standard_options()).model, model);
}

bool tile_too(const ir::Model& model, std::int32_t op) {
  return model.subgraphs[0].operators[at(op)].type == "TILE" || fits_the_chip(model, op);
}

TEST(ConverterForms, BroadcastOfOnePixel) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 1, 7}, kPlain);
  const std::vector<std::int64_t> size = {1, 4, 3, 7};
  const ir::Model model = builder.finish({builder.add("BROADCAST_TO", "BroadcastToOptions", {},
                                                      {x, builder.ops().int_vector(size)}, {1, 4, 3, 7}, kPlain)});
  RewriteOptions options = standard_options();
  options.fits = for_each_op(tile_too);
  expect_same_bytes(model, options, {"RESHAPE", "TILE"});
}

bool without_groups(const ir::Model& model, const ir::Operator& op) {
  if (op.type != "CONV_2D") return true;
  const auto& tensors = model.subgraphs[0].tensors;
  return tensors[at(op.inputs[0])].shape.last() == tensors[at(op.inputs[1])].shape.last();
}

// `groups` of `inputs` channels, each with `outputs` results.
ir::Model grouped_model(std::int32_t groups, std::int32_t inputs, std::int32_t outputs, DataType type) {
  const Affine8 in = {type, 0.05f, type == DataType::kInt8 ? -3 : 120};
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 7, 6, groups * inputs}, in);
  const bool is_signed = type == DataType::kInt8;
  std::vector<float> scales(is_signed ? static_cast<std::size_t>(groups * outputs) : 1);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 0.0005f * static_cast<float>(i % 7 + 1);
  const auto count = static_cast<std::size_t>(groups * outputs * 9 * inputs);
  const std::int32_t weights =
      builder.ops().weights({groups * outputs, 3, 3, inputs}, type, noise(count, 3), scales, is_signed ? 0 : 113, 0);
  for (float& scale : scales) scale *= in.scale;
  std::vector<std::int32_t> offsets;
  for (std::int32_t i = 0; i < groups * outputs; ++i) offsets.push_back(37 * (i % 29) - 400);
  const std::int32_t bias = builder.ops().bias(offsets, scales);
  ir::Attributes attributes = with_activation("RELU6");
  attributes.set("padding", ir::EnumName{"SAME"});
  for (const char* name : {"stride_w", "stride_h"}) attributes.set(name, std::int64_t{2});
  for (const char* name : {"dilation_w_factor", "dilation_h_factor"}) attributes.set(name, std::int64_t{1});
  const std::int32_t y = builder.add("CONV_2D", "Conv2DOptions", attributes, {x, weights, bias},
                                     {1, 4, 3, groups * outputs}, {type, 0.04f, is_signed ? -100 : 20});
  builder.ops().last().version = 6;
  return builder.finish({y});
}

TEST(ConverterForms, ConvolutionsInGroups) {
  struct Case {
    std::int32_t groups, inputs, outputs;
    std::size_t parts;
  };
  // Few channels are convolved at once, and as many groups as make 64 channels where there are more; 92 groups of 8
  // (a RegNet) are not a whole number of such parts.
  for (const Case& one : {Case{3, 4, 3, 1}, Case{2, 40, 33, 2}, Case{32, 4, 4, 2}, Case{5, 20, 30, 3},
                          Case{92, 8, 8, 12}, Case{4, 6, 100, 4}}) {
    for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
      const ir::Model model = grouped_model(one.groups, one.inputs, one.outputs, type);
      const Rewritten result = rewritten(model, options_if<without_groups>());
      EXPECT_EQ(count_ops(result.model, "CONV_2D"), one.parts) << one.groups << " groups";
      EXPECT_EQ(count_ops(result.model, "CONCATENATION"), one.parts == 1 ? 0u : 1u);
      EXPECT_EQ(difference(model, result.model, 1), 0) << one.groups << " groups";
    }
  }
}

TEST(ConverterForms, SeveralResultsForEachChannel) {
  for (const std::int32_t multiplier : {2, 3}) {
    for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
      const bool is_signed = type == DataType::kInt8;
      const Affine8 in = {type, 0.05f, is_signed ? -3 : 120};
      ModelBuilder builder;
      const std::int32_t x = builder.input({1, 9, 8, 6}, in);
      const std::int32_t results = 6 * multiplier;
      std::vector<float> scales(is_signed ? static_cast<std::size_t>(results) : 1, 0.004f);
      const std::int32_t weights =
          builder.ops().weights({1, 5, 5, results}, type, noise(static_cast<std::size_t>(25 * results), 7), scales,
                                is_signed ? 0 : 90, is_signed ? 3 : 0);
      ir::Attributes attributes = with_activation("RELU");
      attributes.set("padding", ir::EnumName{"SAME"});
      for (const char* name : {"stride_w", "stride_h"}) attributes.set(name, std::int64_t{2});
      for (const char* name : {"dilation_w_factor", "dilation_h_factor"}) attributes.set(name, std::int64_t{1});
      attributes.set("depth_multiplier", std::int64_t{multiplier});
      const ir::Model model =
          builder.finish({builder.add("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", attributes, {x, weights},
                                      {1, 5, 4, results}, {type, 0.03f, is_signed ? -128 : 0})});
      expect_same_bytes(model, standard_options(), {"CONV_2D", "DEPTHWISE_CONV_2D"});
    }
  }
}

bool joins_no_constants(const ir::Model& model, const ir::Operator& op) {
  return op.type != "CONCATENATION" || std::none_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t input) {
           return !ir::constant_data(model, model.subgraphs[0].tensors[at(input)]).empty();
         });
}

TEST(ConverterForms, ConstantsThatAreJoined) {
  {
    ModelBuilder builder;
    const std::int32_t x = builder.input({1, 4, 5, 6}, kPlain), other = builder.input({1, 4, 5, 1}, kPlain);
    const std::int32_t places =
        builder.ops().weights({1, 4, 5, 2}, DataType::kInt8, noise(40, 9), {kPlain.scale}, kPlain.zero_point, 0);
    const ir::Model model = builder.finish({builder.ops().concatenation(std::vector{x, places, other}, 3)});
    expect_same_bytes(model, options_if<joins_no_constants>(),
                      {"STRIDED_SLICE", "CONV_2D", "RESHAPE", "CONCATENATION"});
  }
  ModelBuilder builder;
  const std::int32_t tokens = builder.input({1, 9, 7}, kPlain);
  const std::int32_t first =
      builder.ops().weights({1, 1, 7}, DataType::kInt8, noise(7, 9), {kPlain.scale}, kPlain.zero_point, 0);
  const ir::Model model = builder.finish({builder.ops().concatenation(std::vector{first, tokens}, 1)});
  expect_same_bytes(model, options_if<joins_no_constants>(),
                    {"STRIDED_SLICE", "RESHAPE", "CONV_2D", "RESHAPE", "CONCATENATION"});
}

bool old_conv(const ir::Model& model, const ir::Operator& op) {
  return (op.type != "CONV_2D" || op.version <= 5) && without_groups(model, op);
}

// A convolution in as many groups as channels, and one without groups whose version rose with it.
TEST(ConverterForms, ConvolutionsOfSingleChannels) {
  ModelBuilder builder;
  ir::Attributes attributes = with_activation();
  attributes.set("padding", ir::EnumName{"SAME"});
  for (const char* name : {"stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"}) {
    attributes.set(name, std::int64_t{1});
  }
  std::int32_t x = builder.input({1, 7, 6, 5}, kPlain);
  for (const std::int32_t depth : {1, 10}) {
    std::vector<float> scales(10);
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 0.003f * static_cast<float>(i + 1);
    const auto count = static_cast<std::size_t>(10 * 9 * depth);
    const std::int32_t weights =
        builder.ops().weights({10, 3, 3, depth}, DataType::kInt8, noise(count, 3), scales, 0, 0);
    for (float& scale : scales) scale *= kPlain.scale;
    const std::int32_t bias = builder.ops().bias({1, 200, -300, 4, 5, 600, 7, -8, 9, 0}, scales);
    x = builder.add("CONV_2D", "Conv2DOptions", attributes, {x, weights, bias}, {1, 7, 6, 10}, kPlain);
    builder.ops().last().version = 6;
  }
  expect_same_bytes(builder.finish({x}), options_if<old_conv>(), {"CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D"});
}

bool old_transpose_conv(const ir::Model&, const ir::Operator& op) {
  return op.type != "TRANSPOSE_CONV" || op.version <= 3;
}

ir::Model transpose_conv_model(std::int32_t batch, const char* activation, std::int32_t version) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({batch, 4, 5, 6}, kPlain);
  const std::vector<std::int64_t> size = {batch, 8, 10, 3};
  const std::int32_t weights = builder.ops().weights({3, 2, 2, 6}, DataType::kInt8, noise(72, 5), {0.01f}, 0, 0);
  ir::Attributes attributes = with_activation(activation);
  attributes.set("padding", ir::EnumName{"SAME"});
  for (const char* name : {"stride_w", "stride_h"}) attributes.set(name, std::int64_t{2});
  const std::int32_t y =
      builder.add("TRANSPOSE_CONV", "TransposeConvOptions", attributes, {builder.ops().int_vector(size), weights, x},
                  {batch, 8, 10, 3}, {DataType::kInt8, 0.05f, -20});
  builder.ops().last().version = version;
  return builder.finish({y});
}

TEST(ConverterForms, TransposedConvolutionsWithActivations) {
  const RewriteOptions options = options_if<old_transpose_conv>();
  expect_same_bytes(transpose_conv_model(1, "RELU", 4), options, {"TRANSPOSE_CONV", "RELU"});
  expect_same_bytes(transpose_conv_model(1, "NONE", 4), options, {"TRANSPOSE_CONV"});
  const ir::Model fine = transpose_conv_model(1, "NONE", 2);
  EXPECT_EQ(rewritten(fine, options).model, fine);
}

TEST(ConverterForms, TransposedConvolutionsOfABatch) {
  expect_same_bytes(transpose_conv_model(2, "NONE", 2), standard_options(),
                    {"SPLIT", "TRANSPOSE_CONV", "TRANSPOSE_CONV", "CONCATENATION"});
}

bool without_means_of_channels(const ir::Model& model, const ir::Operator& op) {
  return op.type != "MEAN" || model.subgraphs[0].tensors[at(op.inputs[0])].shape.last() % 4 == 0;
}

TEST(ConverterForms, MeansOfChannels) {
  for (const std::int32_t channels : {1, 3, 6, 255}) {
    ModelBuilder builder;
    const std::int32_t x = builder.input({1, 20, channels}, kPlain);
    ir::Attributes attributes;
    attributes.set("keep_dims", true);
    const std::vector<std::int64_t> axes = {-1};
    const ir::Model model =
        builder.finish({builder.add("MEAN", "ReducerOptions", attributes, {x, builder.ops().int_vector(axes)},
                                    {1, 20, 1}, {DataType::kInt8, 0.03f, 4})});
    const Rewritten result = rewritten(model, options_if<without_means_of_channels>());
    EXPECT_EQ(count_ops(result.model, "CONV_2D"), 1u) << channels;
    for (const unsigned seed : {1u, 2u, 3u}) EXPECT_LE(difference(model, result.model, seed, 1), 1) << channels;
  }
}

// RESHAPE and TILE as Keras 3 repeats rows and columns; `swapped`: the copies stand one after the other as a whole.
ir::Model upsampling_model(std::int32_t down, std::int32_t across, bool swapped) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t h = 4, w = 5, c = 3;
  const std::int32_t x = builder.input({1, h, w, c}, kPlain);
  const std::int32_t rows = ops.reshape(x, swapped ? ir::Shape({1, 1, h, w, c}) : ir::Shape({1, h, 1, w, c}));
  const std::vector<std::int64_t> by_rows =
      swapped ? std::vector<std::int64_t>{1, down, 1, 1, 1} : std::vector<std::int64_t>{1, 1, down, 1, 1};
  const std::int32_t columns = ops.reshape(ops.tile(rows, by_rows), {1, h * down, w, 1, c});
  const std::int32_t wide = ops.tile(columns, std::vector<std::int64_t>{1, 1, 1, across, 1});
  return builder.finish({ops.reshape(wide, {1, h * down, w * across, c})});
}

TEST(ConverterForms, UpSamplingByReshapeAndTile) {
  expect_same_bytes(upsampling_model(2, 2, false), standard_options(), {"RESIZE_NEAREST_NEIGHBOR"});
  expect_same_bytes(upsampling_model(3, 1, false), standard_options(), {"RESIZE_NEAREST_NEIGHBOR"});
  const Rewritten other = rewritten(upsampling_model(2, 2, true), standard_options());
  EXPECT_EQ(difference(upsampling_model(2, 2, true), other.model, 1), 0);
  EXPECT_GE(count_ops(other.model, "TILE"), 1u) << "copies of the whole image are no enlargement";
}

}  // namespace
}  // namespace reef::passes
