// SPDX-License-Identifier: Apache-2.0
// Tokens that cannot be cut over the tiles: a few more are computed, results stay the same bytes.
#include <algorithm>
#include <array>

#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

constexpr Affine8 kPlain = {DataType::kInt8, 0.05f, -3};

RewriteOptions only_even_tokens() {
  RewriteOptions options = standard_options();
  options.none = true;
  options.enable = {"even-tokens"};
  options.fits = nullptr;
  return options;
}

int made(const Rewritten& result) {
  return static_cast<int>(
      std::ranges::count_if(result.applications, [](const Application& each) { return each.made; }));
}

class Block {
 public:
  ModelBuilder builder;
  OpList& ops() { return builder.ops(); }

  std::int32_t layer(std::int32_t x, std::int32_t outputs) {
    const ir::Shape in = ops().shape(x);
    std::vector<std::uint8_t> values(static_cast<std::size_t>(outputs * in.last()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 37 % 251);
    const std::int32_t weights =
        ops().weights({outputs, in.last()}, DataType::kInt8, std::move(values), {0.002f}, 0, 0);
    ir::Attributes attributes;
    attributes.set("fused_activation_function", ir::EnumName{"NONE"});
    attributes.set("weights_format", ir::EnumName{"DEFAULT"});
    attributes.set("keep_num_dims", true);
    ir::Shape out = in;
    out[out.rank() - 1] = outputs;
    return builder.add("FULLY_CONNECTED", "FullyConnectedOptions", attributes, {x, weights, -1}, out, kPlain);
  }
  std::int32_t product(std::int32_t a, std::int32_t b, bool adj_y, ir::Shape out) {
    ir::Attributes attributes;
    attributes.set("adj_x", false);
    attributes.set("adj_y", adj_y);
    attributes.set("asymmetric_quantize_inputs", false);
    return builder.add("BATCH_MATMUL", "BatchMatMulOptions", attributes, {a, b}, out, kPlain);
  }
  std::int32_t heads(std::int32_t x, std::int32_t tokens) {
    constexpr std::array<int, 4> kOrder = {0, 2, 1, 3};
    return ops().transpose(ops().reshape(x, {1, tokens, 2, 4}), kOrder);
  }
  // Attention, a residual sum and a mean over channels of tokens [1, n, 8].
  std::int32_t attention(std::int32_t x) {
    const std::int32_t tokens = ops().shape(x)[1];
    const std::int32_t q = heads(layer(x, 8), tokens), k = heads(layer(x, 8), tokens), v = heads(layer(x, 8), tokens);
    const std::int32_t scores = product(q, k, true, {1, 2, tokens, tokens});
    ir::Attributes beta;
    beta.set("beta", 1.0);
    const std::int32_t weights =
        builder.add("SOFTMAX", "SoftmaxOptions", beta, {scores}, {1, 2, tokens, tokens}, unit_affine(DataType::kInt8));
    const std::int32_t means = product(weights, v, false, {1, 2, tokens, 4});
    constexpr std::array<int, 4> kOrder = {0, 2, 1, 3};
    const std::int32_t joined = ops().reshape(ops().transpose(means, kOrder), {1, tokens, 8});
    return ops().binary("ADD", layer(joined, 8), x, kPlain);
  }
};

// How many operators of this kind have a tensor with so many tokens.
int with_tokens(const ir::Model& model, std::int32_t tokens) {
  int count = 0;
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    const ir::Shape& shape = model.subgraphs[0].tensors[at(op.outputs[0])].shape;
    count += std::find(shape.begin(), shape.end(), tokens) != shape.end() ? 1 : 0;
  }
  return count;
}

// A class token in front of 36 patches, with positions; the class token is what is read.
TEST(EvenTokens, ClassTokenOfPaddedPatches) {
  Block block;
  OpList& ops = block.ops();
  const std::int32_t x = block.builder.input({1, 36, 8}, kPlain);
  const std::array<std::int64_t, 6> amounts = {0, 0, 1, 0, 0, 0};
  std::int32_t y = block.builder.add("PAD", "PadOptions", {}, {x, ops.int_matrix(amounts, 2)}, {1, 37, 8}, kPlain);
  y = ops.binary("ADD", y, ops.filled({1, 37, 8}, kPlain, 11), kPlain);
  y = block.attention(block.attention(y));
  const std::array<std::int64_t, 3> begins = {0, 0, 0};
  const ir::Model model = block.builder.finish({ops.slice_box(y, begins, {1, 1, 8})});
  const Rewritten result = rewritten(model, only_even_tokens());
  ASSERT_EQ(made(result), 1);
  EXPECT_EQ(difference(model, result.model, 1), 0);
  EXPECT_GT(with_tokens(result.model, 44), 10);
  // Keys and values have the tokens that there were, and their PAD is the one that there was.
  EXPECT_EQ(static_cast<int>(std::ranges::count(op_types(result.model), "PAD")), 1);
  EXPECT_EQ(static_cast<int>(std::ranges::count(op_types(result.model), "STRIDED_SLICE")), 5);
}

// Tokens that come from outside, all of which are read.
TEST(EvenTokens, InputsAndOutputsKeepTheirShapes) {
  Block block;
  const std::int32_t x = block.builder.input({1, 37, 8}, kPlain);
  const ir::Model model = block.builder.finish({block.attention(block.attention(x))});
  const Rewritten result = rewritten(model, only_even_tokens());
  ASSERT_EQ(made(result), 1);
  EXPECT_EQ(difference(model, result.model, 1), 0);
  const ir::Subgraph& graph = result.model.subgraphs[0];
  EXPECT_EQ(graph.tensors[at(graph.outputs[0])].shape, (ir::Shape{1, 37, 8}));
}

TEST(EvenTokens, EvenNumbersAndFewLayersStay) {
  for (const std::int32_t tokens : {36, 16, 64}) {
    Block block;
    const std::int32_t x = block.builder.input({1, tokens, 8}, kPlain);
    const ir::Model model = block.builder.finish({block.attention(x)});
    EXPECT_EQ(rewritten(model, only_even_tokens()).model, model) << tokens;
  }
  Block block;
  const std::int32_t x = block.builder.input({1, 37, 8}, kPlain);
  const ir::Model model = block.builder.finish({block.layer(x, 4)});
  EXPECT_EQ(rewritten(model, only_even_tokens()).model, model);
}

}  // namespace
}  // namespace reef::passes
