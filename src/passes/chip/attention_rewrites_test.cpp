// SPDX-License-Identifier: Apache-2.0
// Rewrites that attention needs: fewer dimensions, computed weights, SiLU in one pass.
#include <array>

#include "ir/verify.h"
#include "ops/table_functions.h"
#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

constexpr Affine8 kPlain = {DataType::kInt8, 0.05f, -3};

// After the standard rewrites the model gives the same bytes, and all its operators fit.
void expect_same_and_fitting(const ir::Model& model) {
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(difference(model, result.model, 1), 0);
  const auto count = static_cast<std::int32_t>(result.model.subgraphs[0].operators.size());
  for (std::int32_t op = 0; op < count; ++op) EXPECT_TRUE(fits_the_chip(result.model, op)) << op;
}

// Queries, keys and values of 4 heads as PyTorch's exporters split them: no operator of many dimensions is left.
TEST(AttentionRewrites, HeadsOnFewerDimensions) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 6, 96}, kPlain);
  const std::vector<std::int32_t> parts = ops.split(ops.reshape(x, {1, 6, 3, 4, 8}), 2, 3);
  const std::array<std::int64_t, 5> begins = {0, 5, 0, 0, 0}, sizes = {1, 1, 1, 4, 8};
  const std::int32_t last = builder.add(
      "SLICE", "SliceOptions", {}, {parts[0], ops.int_vector(begins), ops.int_vector(sizes)}, {1, 1, 1, 4, 8}, kPlain);
  const std::int32_t sum = builder.add("ADD", "AddOptions", {}, {parts[1], last}, {1, 6, 1, 4, 8}, kPlain);
  const ir::Model model = builder.finish({ops.reshape(sum, {1, 6, 32}), ops.reshape(parts[2], {1, 6, 32})});
  expect_same_and_fitting(model);
  EXPECT_FALSE(fits_the_chip(model, 1));
}

// As PyTorch's newer exporter picks queries, keys and values. Tokens and channels stay dimensions of their own, for
// rewrites that look for tokens.
TEST(AttentionRewrites, SlicesInFrontKeepTokensAndChannels) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 9, 5, 8}, kPlain);
  const std::int32_t apart = ops.reshape(x, {3, 1, 3, 5, 8});
  std::vector<std::int32_t> outputs;
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::array<std::int64_t, 5> begins = {i, 0, 0, 0, 0};
    const std::array<std::int64_t, 5> sizes = {1, 1, 3, 5, 8};
    const std::int32_t slice = builder.add(
        "SLICE", "SliceOptions", {}, {apart, ops.int_vector(begins), ops.int_vector(sizes)}, {1, 1, 3, 5, 8}, kPlain);
    outputs.push_back(ops.unary("RELU", ops.reshape(slice, {1, 3, 5, 8}), kPlain));
  }
  const ir::Model model = builder.finish(outputs);
  expect_same_and_fitting(model);
  const ir::Model result = rewritten(model, standard_options()).model;
  for (const ir::Tensor& tensor : result.subgraphs[0].tensors) {
    if (tensor.shape.rank() < 3) continue;
    EXPECT_EQ(tensor.shape.last(), 8) << tensor.name;
  }
}

TEST(AttentionRewrites, ComputedWeightsBecomeAProduct) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({5, 16}, kPlain), y = builder.input({7, 16}, kPlain);
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  const std::int32_t out =
      builder.add("FULLY_CONNECTED", "FullyConnectedOptions", attributes, {x, y}, {5, 7}, {DataType::kInt8, 0.4f, 2});
  const ir::Model model = builder.finish({out});
  RewriteOptions options = standard_options();
  options.fits = [](const ir::Model& judged) {
    std::vector<bool> fits;
    for (const ir::Operator& op : judged.subgraphs[0].operators) fits.push_back(op.type != "FULLY_CONNECTED");
    return fits;
  };
  const Rewritten result = rewritten(model, options);
  EXPECT_EQ(op_types(result.model), (std::vector<std::string>{"BATCH_MATMUL"}));
  EXPECT_LE(difference(model, result.model, 2), 1);
}

TEST(AttentionRewrites, SiluIsMarkedAndStays) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 4, 4, 8}, kPlain);
  const std::int32_t gate = builder.ops().unary("LOGISTIC", x, unit_affine(DataType::kInt8));
  const std::int32_t y = builder.ops().binary("MUL", gate, x, {DataType::kInt8, 0.03f, -110});
  const ir::Model model = builder.finish({y});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(op_types(result.model), (std::vector<std::string>{"LOGISTIC", "MUL"}));
  EXPECT_EQ(result.model.subgraphs[0].operators[1].attributes.get_int(ops::kSiluOperand, -1), 1);
  RewriteOptions off = standard_options();
  off.disable = {"one-pass"};
  EXPECT_EQ(rewritten(model, off).model, model);
  // What is noted for the chip is no part of a file.
  EXPECT_TRUE(tflite::write_model(result.model).ok());
}

// Sums over one of many dimensions, as Hiera pools queries.
TEST(AttentionRewrites, ReductionsOnFewerDimensions) {
  for (const bool keeps : {true, false}) {
    ModelBuilder builder;
    OpList& ops = builder.ops();
    const std::int32_t x = builder.input({1, 96, 8}, kPlain);
    ir::Attributes attributes;
    attributes.set("keep_dims", keeps);
    const std::array<std::int64_t, 1> axis = {2};
    const ir::Shape to = keeps ? ir::Shape{1, 4, 1, 3, 2, 8} : ir::Shape{1, 4, 3, 2, 8};
    const std::int32_t y = builder.add("SUM", "ReducerOptions", attributes,
                                       {ops.reshape(x, {1, 4, 4, 3, 2, 8}), ops.int_vector(axis)}, to, kPlain);
    const ir::Model model = builder.finish({ops.reshape(y, {1, 24, 8})});
    const Rewritten result = rewritten(model, standard_options());
    EXPECT_EQ(difference(model, result.model, 1), 0);
    for (const ir::Tensor& tensor : result.model.subgraphs[0].tensors) EXPECT_LE(tensor.shape.rank(), 4);
  }
}

// Relative positions become absolute ones by padding in two directions, in 4 heads of 3 rows at once (BoTNet).
TEST(AttentionRewrites, PaddingOnFewerDimensions) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 12, 5, 9}, kPlain);
  const std::array<std::int64_t, 10> columns = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const std::int32_t wide = builder.add(
      "PAD", "PadOptions", {}, {ops.reshape(x, {2, 2, 3, 5, 9}), ops.int_matrix(columns, 2)}, {2, 2, 3, 5, 10}, kPlain);
  const std::array<std::int64_t, 6> ends = {0, 0, 0, 0, 2, 4};
  const std::int32_t long_rows = builder.add(
      "PAD", "PadOptions", {}, {ops.reshape(wide, {4, 3, 50}), ops.int_matrix(ends, 2)}, {4, 3, 56}, kPlain);
  const ir::Model model = builder.finish({ops.reshape(long_rows, {1, 12, 56})});
  expect_same_and_fitting(model);
  EXPECT_FALSE(fits_the_chip(model, 1));
}

// Means of groups of channels over a picture: what is reduced does not stand together (GroupNormalization of Keras).
TEST(AttentionRewrites, ReductionsOfDimensionsApart) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 6, 5, 8}, kPlain);
  ir::Attributes attributes;
  attributes.set("keep_dims", true);
  const std::array<std::int64_t, 3> axes = {1, 2, -1};
  const std::int32_t mean =
      builder.add("MEAN", "ReducerOptions", attributes, {ops.reshape(x, {1, 6, 5, 4, 2}), ops.int_vector(axes)},
                  {1, 1, 1, 4, 1}, kPlain);
  const ir::Model model = builder.finish({ops.reshape(mean, {1, 4})});
  expect_same_and_fitting(model);
}

// Dimensions of 1 in front count for code, though not for Google's rules.
TEST(AttentionRewrites, FiveDimensionsOfWhichTheFirstAreOne) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 4}, kPlain), y = builder.input({1, 16}, kPlain);
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t product =
      builder.add("MUL", "MulOptions", attributes, {ops.reshape(x, {1, 1, 1, 4, 1}), ops.reshape(y, {1, 1, 1, 4, 4})},
                  {1, 1, 1, 4, 4}, kPlain);
  const ir::Model model = builder.finish({ops.reshape(product, {1, 16})});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(difference(model, result.model, 2), 0);
  for (const ir::Operator& op : result.model.subgraphs[0].operators) {
    if (op.type != "MUL") continue;
    EXPECT_LE(result.model.subgraphs[0].tensors[at(op.outputs[0])].shape.rank(), 4);
  }
}

// TensorFlow's converter writes RESHAPE without options: what is marked still is a sound model (GroupNormalization of
// Keras).
TEST(AttentionRewrites, MarkedReshapesWithoutOptions) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 6, 5, 8}, kPlain);
  const std::int32_t groups = ops.reshape(x, {1, 6, 5, 4, 2});
  ops.last().options_type.clear();
  ops.last().attributes = {};
  const std::array<int, 5> order = {0, 3, 1, 2, 4};
  const ir::Model model = builder.finish({ops.reshape(ops.transpose(groups, order), {1, 4, 60})});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_TRUE(ir::verify(result.model).ok());
  EXPECT_EQ(difference(model, result.model, 1), 0);
  const auto count = static_cast<std::int32_t>(result.model.subgraphs[0].operators.size());
  for (std::int32_t op = 0; op < count; ++op) EXPECT_TRUE(fits_the_chip(result.model, op)) << op;
}

// Rotary positions of neighbouring channels: every second one, negated, and in turn with the others.
TEST(AttentionRewrites, ChannelsInTurn) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input({1, 3, 5, 8}, kPlain);
  const auto every_second = [&](std::int64_t first) {
    const std::array<std::int64_t, 4> begins = {0, 0, 0, first}, ends = {1, 3, 5, 8}, strides = {1, 1, 1, 2};
    return builder.add("STRIDED_SLICE", "StridedSliceOptions", {},
                       {x, ops.int_vector(begins), ops.int_vector(ends), ops.int_vector(strides)}, {1, 3, 5, 4},
                       kPlain);
  };
  const std::int32_t odd = ops.reshape(ops.unary("RELU", every_second(1), kPlain), {1, 3, 5, 4, 1});
  const std::int32_t even = ops.reshape(every_second(0), {1, 3, 5, 4, 1});
  ir::Attributes axis;
  axis.set("axis", std::int64_t{4});
  axis.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t both =
      builder.add("CONCATENATION", "ConcatenationOptions", axis, {odd, even}, {1, 3, 5, 4, 2}, kPlain);
  const ir::Model model = builder.finish({ops.reshape(both, {1, 3, 5, 8})});
  expect_same_and_fitting(model);
}

}  // namespace
}  // namespace reef::passes
