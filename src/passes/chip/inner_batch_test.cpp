// SPDX-License-Identifier: Apache-2.0
// Layers on windows that the network has cut itself, in forms that exporters write.
#include <random>

#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

constexpr Affine8 kPlain = {DataType::kInt8, 0.05f, -3}, kResult = {DataType::kInt8, 0.2f, 7};

struct Layer {
  std::string type;
  std::int32_t kernel = 1;
  std::int64_t stride = 1;
  const char* padding = "SAME";
  bool is_flat = false;  // the kernel and the stride are of rows alone
};

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::mt19937 random(5);
  std::vector<std::uint8_t> values(count);
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random() % 255 - 127);
  return values;
}

// [1, count * 6, 7, 8] as `count` images, a layer, and back.
ir::Model model_of(const Layer& layer, std::int32_t count) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t images = ops.reshape(builder.input({1, count * 6, 7, 8}, kPlain), {count, 6, 7, 8});
  std::int32_t y = -1;
  if (layer.type == "PAD") {
    const std::int32_t above = layer.is_flat ? 0 : 1, below = layer.is_flat ? 0 : 2, rows = 6 + above + below;
    const std::int64_t amounts[] = {0, 0, above, below, 0, 3, 0, 0};
    y = builder.add("PAD", "PadOptions", {}, {images, ops.int_matrix(amounts, 2)}, {count, rows, 10, 8}, kPlain);
    return builder.finish({ops.reshape(y, {1, count * rows, 10, 8})});
  }
  const bool is_same = std::string_view(layer.padding) == "SAME";
  const auto size = [&](std::int32_t n) {
    return static_cast<std::int32_t>(((is_same ? n : n - layer.kernel + 1) + layer.stride - 1) / layer.stride);
  };
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{layer.padding});
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  attributes.set("stride_w", layer.stride);
  attributes.set("stride_h", layer.is_flat ? 1 : layer.stride);
  const std::int32_t k = layer.kernel, k_rows = layer.is_flat ? 1 : k;
  const ir::Shape shape = {count, layer.is_flat ? 6 : size(6), size(7), 8};
  if (layer.type == "CONV_2D" || layer.type == "DEPTHWISE_CONV_2D") {
    const bool is_dense = layer.type == "CONV_2D";
    if (!is_dense) attributes.set("depth_multiplier", std::int64_t{1});
    const std::int32_t weights =
        ops.weights({is_dense ? 8 : 1, k_rows, k, 8}, DataType::kInt8,
                    random_bytes(static_cast<std::size_t>(k_rows * k * (is_dense ? 64 : 8))), {0.01f}, 0, 0);
    y = builder.add(layer.type, is_dense ? "Conv2DOptions" : "DepthwiseConv2DOptions", attributes, {images, weights},
                    shape, kResult);
  } else {
    attributes.set("filter_width", std::int64_t{k});
    attributes.set("filter_height", std::int64_t{k_rows});
    y = builder.add(layer.type, "Pool2DOptions", attributes, {images}, shape, kPlain);
  }
  return builder.finish({ops.reshape(y, {1, count * shape[1], shape[2], 8})});
}

TEST(InnerBatch, LayersAreWrittenOutOrStacked) {
  const std::vector<Layer> layers = {{"CONV_2D"},
                                     {"DEPTHWISE_CONV_2D"},
                                     {"CONV_2D", 3},
                                     {"CONV_2D", 1, 2},
                                     {"DEPTHWISE_CONV_2D", 3, 2},
                                     {"DEPTHWISE_CONV_2D", 5, 1, "VALID"},
                                     {"AVERAGE_POOL_2D", 2, 2, "VALID"},
                                     {"MAX_POOL_2D", 3, 2},
                                     {"PAD"},
                                     {"CONV_2D", 5, 1, "SAME", true},
                                     {"CONV_2D", 3, 2, "VALID", true},
                                     {"DEPTHWISE_CONV_2D", 3, 2, "SAME", true},
                                     {"AVERAGE_POOL_2D", 2, 2, "VALID", true},
                                     {"MAX_POOL_2D", 3, 1, "SAME", true},
                                     {"PAD", 1, 1, "SAME", true}};
  for (const Layer& layer : layers) {
    for (const std::int32_t count : {2, 4, 7}) {
      const std::string what = layer.type + " " + std::to_string(layer.kernel) + " of " + std::to_string(count);
      const ir::Model model = model_of(layer, count);
      const Rewritten result = rewritten(model, standard_options());
      for (std::int32_t op = 0; op < std::ssize(result.model.subgraphs[0].operators); ++op) {
        EXPECT_TRUE(fits_the_chip(result.model, op)) << what << ": op " << op;
      }
      const bool is_stacked = layer.is_flat || (layer.kernel == 1 && layer.stride == 1 && layer.type != "PAD");
      EXPECT_EQ(count_ops(result.model, layer.type), is_stacked ? 1u : static_cast<std::size_t>(count)) << what;
      for (const unsigned seed : {1u, 2u}) EXPECT_EQ(difference(model, result.model, seed), 0) << what;
    }
  }
}

// Many images are too many copies of a layer; one tall image is not.
TEST(InnerBatch, ManyImages) {
  const ir::Model wide = model_of({"DEPTHWISE_CONV_2D", 3}, 17), tall = model_of({"CONV_2D"}, 17);
  EXPECT_EQ(count_ops(rewritten(wide, standard_options()).model, "DEPTHWISE_CONV_2D"), 1u);
  const Rewritten result = rewritten(tall, standard_options());
  EXPECT_EQ(count_ops(result.model, "CONV_2D"), 1u);
  for (std::int32_t op = 0; op < std::ssize(result.model.subgraphs[0].operators); ++op) {
    EXPECT_TRUE(fits_the_chip(result.model, op)) << op;
  }
  EXPECT_EQ(difference(tall, result.model, 1), 0);
}

// [windows, rows, columns, channels]: channels of windows joined, and results stacked along a new dimension.
TEST(InnerBatch, JoinedWindows) {
  for (const int axis : {1, 2, 3}) {
    ModelBuilder builder;
    OpList& ops = builder.ops();
    const std::int32_t x = builder.input({1, 20, 3, 8}, kPlain);
    const std::int32_t images = ops.reshape(x, {4, 5, 3, 8});
    const std::int32_t gate = ops.unary("TANH", images, tanh_affine(DataType::kInt8));
    const std::int32_t same = ops.unary("RELU", images, kPlain);
    const std::int32_t parts[] = {images, same};
    const std::int32_t joined = ops.concatenation(parts, axis);
    const ir::Model model = builder.finish({ops.reshape(joined, {1, 20, 6, 8}), ops.reshape(gate, {1, 20, 3, 8})});
    const Rewritten result = rewritten(model, standard_options());
    for (std::int32_t op = 0; op < std::ssize(result.model.subgraphs[0].operators); ++op) {
      EXPECT_TRUE(fits_the_chip(result.model, op)) << axis << ": op " << op;
    }
    EXPECT_EQ(difference(model, result.model, 1), 0) << axis;
  }
}

// A layer of MaxViT: tokens of windows in four dimensions, of Twins in six.
TEST(InnerBatch, DenseLayersOfWindows) {
  for (const ir::Shape& shape : {ir::Shape{4, 5, 3, 8}, ir::Shape{1, 2, 2, 5, 3, 8}}) {
    ModelBuilder builder;
    OpList& ops = builder.ops();
    const std::int32_t x = ops.reshape(builder.input({1, 20, 3, 8}, kPlain), shape);
    const std::int32_t weights = ops.weights({16, 8}, DataType::kInt8, random_bytes(128), {0.01f}, 0, 0);
    ir::Attributes attributes;
    attributes.set("fused_activation_function", ir::EnumName{"NONE"});
    attributes.set("weights_format", ir::EnumName{"DEFAULT"});
    attributes.set("keep_num_dims", true);
    ir::Shape result = shape;
    result[shape.rank() - 1] = 16;
    const std::int32_t y =
        builder.add("FULLY_CONNECTED", "FullyConnectedOptions", attributes, {x, weights}, result, kResult);
    const ir::Model model = builder.finish({ops.reshape(y, {1, 20, 3, 16})});
    const Rewritten changed = rewritten(model, standard_options());
    EXPECT_EQ(count_ops(changed.model, "CONV_2D"), 1u);
    for (std::int32_t op = 0; op < std::ssize(changed.model.subgraphs[0].operators); ++op) {
      EXPECT_TRUE(fits_the_chip(changed.model, op)) << op;
    }
    EXPECT_LE(difference(model, changed.model, 1), 1);
  }
}

}  // namespace
}  // namespace reef::passes
