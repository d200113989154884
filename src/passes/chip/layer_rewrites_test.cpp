// SPDX-License-Identifier: Apache-2.0
// Resizing, pooling, means, products and softmax: compared with the original.
#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

constexpr Affine8 kPlain = {DataType::kInt8, 0.05f, -3};

bool is_type(const ir::Model& model, std::int32_t op, std::string_view type) {
  return model.subgraphs[0].operators[at(op)].type == type;
}
std::int64_t output_elements(const ir::Model& model, std::int32_t op) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const std::int32_t output = graph.operators[at(op)].outputs[0];
  return graph.tensors[at(output)].shape.elements();
}

ir::Model resize_model(const char* type, ir::Shape in, ir::Shape out, bool align, bool half) {
  ModelBuilder builder;
  const std::int32_t x = builder.input(in, kPlain);
  const std::int64_t sizes[] = {out[1], out[2]};
  const std::int32_t size = builder.ops().int_vector(sizes);
  ir::Attributes attributes;
  attributes.set("align_corners", align);
  attributes.set("half_pixel_centers", half);
  const bool nearest = std::string(type) == "RESIZE_NEAREST_NEIGHBOR";
  const std::int32_t y = builder.add(type, nearest ? "ResizeNearestNeighborOptions" : "ResizeBilinearOptions",
                                     attributes, {x, size}, out, kPlain);
  return builder.finish({builder.ops().unary("RELU", y, kPlain)});
}

RewriteOptions without(bool (*fits)(const ir::Model&, std::int32_t)) {
  RewriteOptions options = standard_options();
  options.fits = for_each_op(fits);
  return options;
}
bool no_resize(const ir::Model& model, std::int32_t op) {
  return !is_type(model, op, "RESIZE_BILINEAR") && !is_type(model, op, "RESIZE_NEAREST_NEIGHBOR") &&
         fits_the_chip(model, op);
}

TEST(LayerRewrites, ResizeToTheSameSizeIsDropped) {
  for (const char* type : {"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}) {
    for (const bool align : {false, true}) {
      const ir::Model model = resize_model(type, {1, 9, 7, 3}, {1, 9, 7, 3}, align, !align);
      const Rewritten result = rewritten(model, without(no_resize));
      EXPECT_EQ(op_types(result.model), std::vector<std::string>{"RELU"});
      EXPECT_EQ(difference(model, result.model, 1), 0);
    }
  }
}

TEST(LayerRewrites, ResizeFromOnePixelIsCopies) {
  for (const char* type : {"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}) {
    const ir::Model model = resize_model(type, {1, 1, 1, 5}, {1, 33, 20, 5}, true, false);
    const Rewritten joined = rewritten(model, without(no_resize));
    EXPECT_EQ(count_ops(joined.model, "CONCATENATION"), 2u);
    EXPECT_EQ(difference(model, joined.model, 1), 0);
    const Rewritten tiled = rewritten(
        model, without([](const ir::Model& m, std::int32_t op) { return is_type(m, op, "TILE") || no_resize(m, op); }));
    EXPECT_EQ(op_types(tiled.model), (std::vector<std::string>{"TILE", "RELU"}));
    EXPECT_EQ(difference(model, tiled.model, 1), 0);
  }
}

TEST(LayerRewrites, NearestByWholeFactors) {
  for (const bool half : {false, true}) {
    for (const std::int32_t down : {1, 2, 3, 5, 8}) {
      for (const std::int32_t across : {1, 2, 7}) {
        if (down * across == 1) continue;
        const ir::Model model =
            resize_model("RESIZE_NEAREST_NEIGHBOR", {1, 6, 5, 3}, {1, 6 * down, 5 * across, 3}, false, half);
        const Rewritten result = rewritten(model, without(no_resize));
        EXPECT_EQ(count_ops(result.model, "RESIZE_NEAREST_NEIGHBOR"), 0u);
        EXPECT_EQ(difference(model, result.model, 1), 0) << down << " " << across;
      }
    }
  }
}

TEST(LayerRewrites, BilinearByAnyFactorIsAProductForEachAxis) {
  const ir::Shape sizes[][2] = {{{1, 6, 11, 3}, {1, 48, 90, 3}},
                                {{1, 38, 38, 2}, {1, 75, 75, 2}},
                                {{1, 30, 17, 4}, {1, 7, 23, 4}},
                                {{1, 2, 1, 24}, {1, 3, 2, 24}}};
  for (const auto& [from, to] : sizes) {
    for (const int mode : {0, 1, 2}) {
      const ir::Model model = resize_model("RESIZE_BILINEAR", from, to, mode == 1, mode == 2);
      const Rewritten result = rewritten(model, without(no_resize));
      EXPECT_EQ(count_ops(result.model, "RESIZE_BILINEAR"), 0u) << to.to_string();
      EXPECT_LE(difference(model, result.model, 1, 3), 3) << to.to_string() << " " << mode;
    }
  }
}

TEST(LayerRewrites, BilinearInTwoSteps) {
  const auto enlarges_a_little = [](const ir::Model& model, std::int32_t op) {
    if (!is_type(model, op, "RESIZE_BILINEAR")) return fits_the_chip(model, op);
    const ir::Subgraph& graph = model.subgraphs[0];
    const ir::Operator& it = graph.operators[at(op)];
    const ir::Shape& in = graph.tensors[at(it.inputs[0])].shape;
    const ir::Shape& out = graph.tensors[at(it.outputs[0])].shape;
    return out[1] <= 4 * in[1];
  };
  for (const bool align : {false, true}) {
    const ir::Shape out = align ? ir::Shape({1, 129, 65, 2}) : ir::Shape({1, 144, 80, 2});
    const ir::Model model = resize_model("RESIZE_BILINEAR", {1, 9, 5, 2}, out, align, false);
    const Rewritten result = rewritten(model, without(enlarges_a_little));
    EXPECT_EQ(count_ops(result.model, "RESIZE_BILINEAR"), 2u);
    for (const unsigned seed : {1u, 2u, 3u, 4u}) EXPECT_LE(difference(model, result.model, seed, 1), 1);
  }
  const ir::Model centres = resize_model("RESIZE_BILINEAR", {1, 9, 5, 2}, {1, 144, 80, 2}, false, true);
  EXPECT_EQ(count_ops(rewritten(centres, without(enlarges_a_little)).model, "RESIZE_BILINEAR"), 0u)
      << "pixel centres do not nest: products take the place of steps";
}

// Rates beyond the image's size, on one axis or both, leave 1x3, 3x1 or 1x1; 5x5 at rate 4 on 7 rows leaves 3x3.
TEST(LayerRewrites, TapsThatAreNeverReadAreLeftOut) {
  struct Case {
    std::int32_t height, width, kernel, stride;
    std::int64_t dilation;
    ir::Shape kept;  // rows and columns of the weights; empty: nothing is changed
  };
  const std::vector<Case> cases = {{8, 8, 3, 1, 12, {1, 1}}, {8, 20, 3, 1, 12, {1, 3}}, {20, 8, 3, 1, 9, {3, 1}},
                                   {7, 7, 5, 1, 4, {3, 3}},  {9, 9, 3, 1, 4, {}},       {7, 9, 3, 2, 8, {1, 3}},
                                   {12, 12, 3, 1, 11, {}}};
  for (const Case& one : cases) {
    for (const char* type : {"CONV_2D", "DEPTHWISE_CONV_2D"}) {
      const bool is_dense = std::string_view(type) == "CONV_2D";
      ModelBuilder builder;
      const std::int32_t x = builder.input({1, one.height, one.width, 4}, kPlain);
      std::vector<std::uint8_t> values(static_cast<std::size_t>(one.kernel * one.kernel * (is_dense ? 12 : 4)));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 37 % 255 - 127);
      const std::int32_t weights =
          builder.ops().weights({is_dense ? 3 : 1, one.kernel, one.kernel, 4}, DataType::kInt8, values, {0.01f}, 0, 0);
      ir::Attributes attributes;
      attributes.set("padding", ir::EnumName{"SAME"});
      attributes.set("fused_activation_function", ir::EnumName{"NONE"});
      for (const char* name : {"stride_w", "stride_h"}) attributes.set(name, std::int64_t{one.stride});
      for (const char* name : {"dilation_w_factor", "dilation_h_factor"}) attributes.set(name, one.dilation);
      if (!is_dense) attributes.set("depth_multiplier", std::int64_t{1});
      const auto size = [&](std::int32_t n) { return (n + one.stride - 1) / one.stride; };
      const ir::Model model = builder.finish(
          {builder.add(type, is_dense ? "Conv2DOptions" : "DepthwiseConv2DOptions", attributes, {x, weights},
                       {1, size(one.height), size(one.width), is_dense ? 3 : 4}, {DataType::kInt8, 0.1f, 5})});
      const Rewritten result = rewritten(model, standard_options());
      const ir::Subgraph& graph = result.model.subgraphs[0];
      const ir::Shape& left = graph.tensors[at(graph.operators.back().inputs[1])].shape;
      EXPECT_EQ(left[1], one.kept.rank() == 0 ? one.kernel : one.kept[0]) << one.height << " " << one.dilation;
      EXPECT_EQ(left[2], one.kept.rank() == 0 ? one.kernel : one.kept[1]) << one.width << " " << one.dilation;
      EXPECT_EQ(difference(model, result.model, 1), 0);
    }
  }
}

// Weights of both axes together may be too fine, of each axis they are not: pixel centres by 8 have multiples of 1/256.
TEST(LayerRewrites, BilinearAxisByAxis) {
  const auto along_one_axis = [](const ir::Model& model, std::int32_t op) {
    if (!is_type(model, op, "RESIZE_BILINEAR")) return fits_the_chip(model, op);
    const ir::Subgraph& graph = model.subgraphs[0];
    const ir::Operator& it = graph.operators[at(op)];
    const ir::Shape& in = graph.tensors[at(it.inputs[0])].shape;
    const ir::Shape& out = graph.tensors[at(it.outputs[0])].shape;
    return out[1] == in[1] || out[2] == in[2];
  };
  for (const bool align : {false, true}) {
    for (const ir::Shape& out : {ir::Shape{1, 72, 40, 2}, ir::Shape{1, 13, 11, 2}, ir::Shape{1, 4, 15, 2}}) {
      const ir::Model model = resize_model("RESIZE_BILINEAR", {1, 9, 5, 2}, out, align, !align);
      const Rewritten result = rewritten(model, without(along_one_axis));
      EXPECT_EQ(count_ops(result.model, "RESIZE_BILINEAR"), 2u);
      for (const unsigned seed : {1u, 2u, 3u, 4u}) EXPECT_LE(difference(model, result.model, seed, 1), 1);
    }
  }
}

TEST(LayerRewrites, LargeMapsByPartsOfTheirChannels) {
  for (const char* type : {"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}) {
    const ir::Model model = resize_model(type, {1, 128, 128, 24}, {1, 256, 256, 24}, false, true);
    const Rewritten result =
        rewritten(model, without([](const ir::Model& m, std::int32_t op) {
                    const bool resizes = is_type(m, op, "RESIZE_BILINEAR") || is_type(m, op, "RESIZE_NEAREST_NEIGHBOR");
                    return resizes ? output_elements(m, op) <= 600000 : fits_the_chip(m, op);
                  }));
    EXPECT_EQ(count_ops(result.model, type), 3u);
    EXPECT_EQ(difference(model, result.model, 1), 0);
  }
}

TEST(LayerRewrites, FusedActivations) {
  for (const char* type : {"AVERAGE_POOL_2D", "MAX_POOL_2D"}) {
    for (const char* activation : {"RELU", "RELU6", "RELU_N1_TO_1"}) {
      ModelBuilder builder;
      const std::int32_t x = builder.input({1, 12, 12, 3}, kPlain);
      ir::Attributes attributes;
      attributes.set("padding", ir::EnumName{"SAME"});
      for (const char* name : {"stride_w", "stride_h", "filter_width", "filter_height"}) {
        attributes.set(name, std::int64_t{2});
      }
      attributes.set("fused_activation_function", ir::EnumName{activation});
      const ir::Model model =
          builder.finish({builder.add(type, "Pool2DOptions", attributes, {x}, {1, 6, 6, 3}, kPlain)});
      const Rewritten result =
          rewritten(model, without([](const ir::Model& m, std::int32_t op) {
                      const ir::Attributes& its = m.subgraphs[0].operators[at(op)].attributes;
                      return its.get_enum("fused_activation_function", "NONE") == "NONE" && fits_the_chip(m, op);
                    }));
      EXPECT_EQ(op_types(result.model), (std::vector<std::string>{type, activation}));
      EXPECT_EQ(difference(model, result.model, 1), 0);
    }
  }
}

TEST(LayerRewrites, SqueezeAndExpandDims) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 5, 1, 10}, kPlain);
  ir::Attributes attributes;
  attributes.set("squeeze_dims", std::vector<std::int64_t>{2});
  const std::int32_t flat = builder.add("SQUEEZE", "SqueezeOptions", attributes, {x}, {1, 5, 10}, kPlain);
  const std::int32_t axis = builder.ops().int_scalar(1);
  const ir::Model model =
      builder.finish({builder.add("EXPAND_DIMS", "ExpandDimsOptions", {}, {flat, axis}, {1, 1, 5, 10}, kPlain)});
  const Rewritten result =
      rewritten(model, without([](const ir::Model& m, std::int32_t op) {
                  return !is_type(m, op, "SQUEEZE") && !is_type(m, op, "EXPAND_DIMS") && fits_the_chip(m, op);
                }));
  EXPECT_EQ(count_ops(result.model, "RESHAPE"), result.model.subgraphs[0].operators.size());
  EXPECT_EQ(difference(model, result.model, 1), 0);
}

TEST(LayerRewrites, MeanInBands) {
  std::mt19937 random(2);
  for (int i = 0; i < 10; ++i) {
    ModelBuilder builder;
    const Affine8 in = random_affine(random);
    const std::int32_t x = builder.input({1, 24, 10, 6}, in);
    const std::int64_t axes[] = {1, 2};
    const std::int32_t dimensions = builder.ops().int_vector(axes);
    ir::Attributes attributes;
    attributes.set("keep_dims", i % 2 == 0);
    const ir::Shape out = i % 2 == 0 ? ir::Shape({1, 1, 1, 6}) : ir::Shape({1, 6});
    const Affine8 result_affine = {DataType::kInt8, in.scale * 0.7f, in.zero_point};
    const ir::Model model =
        builder.finish({builder.add("MEAN", "ReducerOptions", attributes, {x, dimensions}, out, result_affine)});
    const Rewritten result = rewritten(model, without([](const ir::Model& m, std::int32_t op) {
                                         const ir::Subgraph& graph = m.subgraphs[0];
                                         const std::int32_t input = graph.operators[at(op)].inputs[0];
                                         const bool is_large = graph.tensors[at(input)].shape.elements() > 500;
                                         return !(is_type(m, op, "MEAN") && is_large) && fits_the_chip(m, op);
                                       }));
    EXPECT_EQ(count_ops(result.model, "MEAN"), 4u);
    for (const unsigned seed : {1u, 2u}) EXPECT_LE(difference(model, result.model, seed, 1), 1);
  }
}

// Group statistics: long rows, and everything at once with a number of channels that does not map.
TEST(LayerRewrites, MeansOfLongRowsAndOfEverything) {
  struct Case {
    ir::Shape shape;
    std::vector<std::int64_t> axes;
    ir::Shape out;
  };
  const Case cases[] = {{{1, 1, 18432, 2}, {2}, {1, 1, 1, 2}},   {{1, 1, 24300, 3}, {1, 2}, {1, 3}},
                        {{1, 3, 17000, 4}, {2}, {1, 3, 1, 4}},   {{1, 5, 7, 9}, {1, 2, 3}, {1, 1, 1, 1}},
                        {{1, 2025, 1, 9}, {1, 3}, {1, 1, 1, 1}}, {{1, 6, 7, 3}, {-1, 1, 2}, {1}}};
  std::mt19937 random(3);
  for (const Case& each : cases) {
    ModelBuilder builder;
    const Affine8 in = random_affine(random);
    const std::int32_t x = builder.input(each.shape, in);
    const std::int32_t dimensions = builder.ops().int_vector(each.axes);
    ir::Attributes attributes;
    attributes.set("keep_dims", each.out.rank() == each.shape.rank());
    const Affine8 out = {DataType::kInt8, in.scale * 0.6f, in.zero_point};
    const ir::Model model =
        builder.finish({builder.add("MEAN", "ReducerOptions", attributes, {x, dimensions}, each.out, out)});
    const Rewritten result = rewritten(model, without(fits_the_chip));
    for (std::size_t op = 0; op < result.model.subgraphs[0].operators.size(); ++op) {
      EXPECT_TRUE(fits_the_chip(result.model, static_cast<std::int32_t>(op))) << each.shape.to_string();
    }
    for (const unsigned seed : {1u, 2u})
      EXPECT_LE(difference(model, result.model, seed, 1), 1) << each.shape.to_string();
  }
}

TEST(LayerRewrites, ProductsOfSeveralRows) {
  std::mt19937 random(6);
  for (const bool matmul : {false, true}) {
    for (const bool by_row : {false, true}) {
      if (!matmul && by_row) continue;
      ModelBuilder builder;
      const std::int32_t rows = 9, k = 20, m = 7;
      const std::int32_t x = builder.input({1, rows, k}, kPlain);
      std::vector<std::uint8_t> values(static_cast<std::size_t>(k * m));
      for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
      const Affine8 out = {DataType::kInt8, 0.3f, 4};
      std::int32_t y = -1;
      if (matmul) {
        const ir::Shape shape = by_row ? ir::Shape({m, k}) : ir::Shape({k, m});
        const std::int32_t weights = builder.ops().weights(shape, DataType::kInt8, values, {0.013f}, 0, 0);
        ir::Attributes attributes;
        attributes.set("adj_x", false);
        attributes.set("adj_y", by_row);
        y = builder.add("BATCH_MATMUL", "BatchMatMulOptions", attributes, {x, weights}, {1, rows, m}, out);
      } else {
        const std::int32_t weights = builder.ops().weights({m, k}, DataType::kInt8, values, {0.013f}, 0, 0);
        const std::int32_t bias = builder.ops().bias({1, -20, 300, 4, 5, 60, 7}, {0.013f * kPlain.scale});
        ir::Attributes attributes;
        attributes.set("fused_activation_function", ir::EnumName{"RELU"});
        attributes.set("weights_format", ir::EnumName{"DEFAULT"});
        attributes.set("keep_num_dims", true);
        y = builder.add("FULLY_CONNECTED", "FullyConnectedOptions", attributes, {x, weights, bias}, {1, rows, m}, out);
      }
      const ir::Model model = builder.finish({y});
      const Rewritten result = rewritten(model, without([](const ir::Model& each, std::int32_t op) {
                                           return !is_type(each, op, "FULLY_CONNECTED") && fits_the_chip(each, op);
                                         }));
      EXPECT_EQ(op_types(result.model), (std::vector<std::string>{"RESHAPE", "CONV_2D", "RESHAPE"}));
      for (const unsigned seed : {1u, 2u, 3u}) EXPECT_LE(difference(model, result.model, seed, 1), 1);
    }
  }
}

// Paddings and crops of both dimensions; the image is [1, 10, 9, 4].
ir::Model dilated_model(bool depthwise, std::int64_t block, std::vector<std::int64_t> paddings,
                        std::vector<std::int64_t> crops) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  std::mt19937 random(9);
  const std::int32_t x = builder.input({1, 10, 9, 4}, kPlain);
  const auto b = static_cast<std::int32_t>(block);
  const std::int32_t h = 10 + static_cast<std::int32_t>(paddings[0] + paddings[1]);
  const std::int32_t w = 9 + static_cast<std::int32_t>(paddings[2] + paddings[3]);
  const std::int64_t sizes[] = {block, block};
  const std::int32_t blocks = ops.int_vector(sizes), margins = ops.int_matrix(paddings, 2);
  const std::int32_t apart = builder.add("SPACE_TO_BATCH_ND", "SpaceToBatchNDOptions", {}, {x, blocks, margins},
                                         {b * b, h / b, w / b, 4}, kPlain);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(depthwise ? 9 * 4 : 9 * 4 * 4));
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
  const std::int32_t filter =
      depthwise ? ops.weights({1, 3, 3, 4}, DataType::kInt8, values, {0.01f, 0.02f, 0.03f, 0.015f}, 0, 3)
                : ops.weights({4, 3, 3, 4}, DataType::kInt8, values, {0.01f, 0.02f, 0.03f, 0.015f}, 0, 0);
  const std::int32_t bias = ops.bias(
      {1, -200, 3000, 40}, {0.01f * kPlain.scale, 0.02f * kPlain.scale, 0.03f * kPlain.scale, 0.015f * kPlain.scale});
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("stride_w", std::int64_t{1});
  attributes.set("stride_h", std::int64_t{1});
  if (depthwise) attributes.set("depth_multiplier", std::int64_t{1});
  attributes.set("fused_activation_function", ir::EnumName{"RELU"});
  const Affine8 out = {DataType::kInt8, 0.2f, -90};
  const std::int32_t sums =
      builder.add(depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", depthwise ? "DepthwiseConv2DOptions" : "Conv2DOptions",
                  attributes, {apart, filter, bias}, {b * b, h / b - 2, w / b - 2, 4}, out);
  const std::int32_t cropped_h = h - 2 * b - static_cast<std::int32_t>(crops[0] + crops[1]);
  const std::int32_t cropped_w = w - 2 * b - static_cast<std::int32_t>(crops[2] + crops[3]);
  const std::int32_t again = ops.int_vector(sizes), cuts = ops.int_matrix(crops, 2);
  return builder.finish({builder.add("BATCH_TO_SPACE_ND", "BatchToSpaceNDOptions", {}, {sums, again, cuts},
                                     {1, cropped_h, cropped_w, 4}, out)});
}

TEST(LayerRewrites, DilatedConvolutions) {
  for (const bool depthwise : {false, true}) {
    const std::string type = depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D";
    // Padding SAME, an image padded more on one side, no padding at all.
    const ir::Model same = dilated_model(depthwise, 2, {2, 2, 2, 3}, {0, 0, 0, 1});
    const ir::Model lopsided = dilated_model(depthwise, 2, {3, 1, 0, 1}, {0, 0, 0, 1});
    const ir::Model bare = dilated_model(depthwise, 3, {0, 2, 0, 0}, {0, 2, 0, 0});
    const Rewritten one = rewritten(same, standard_options()), two = rewritten(lopsided, standard_options());
    const Rewritten three = rewritten(bare, standard_options());
    EXPECT_EQ(op_types(one.model), std::vector<std::string>{type});
    EXPECT_EQ(op_types(two.model), (std::vector<std::string>{"PAD", type}));
    EXPECT_EQ(op_types(three.model), std::vector<std::string>{type});
    EXPECT_EQ(difference(same, one.model, 1), 0);
    EXPECT_EQ(difference(lopsided, two.model, 1), 0);
    EXPECT_EQ(difference(bare, three.model, 1), 0);
  }
}

// Conv1D of Keras with a dilation of 4, causal: the signal was padded before.
TEST(LayerRewrites, DilatedConvolutionsOfSignals) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  std::mt19937 random(9);
  const std::int32_t x = builder.input({1, 28, 4}, kPlain);
  const std::int64_t block[] = {4}, none[] = {0, 0};
  const std::int32_t apart = builder.add("SPACE_TO_BATCH_ND", "SpaceToBatchNDOptions", {},
                                         {x, ops.int_vector(block), ops.int_matrix(none, 2)}, {4, 7, 4}, kPlain);
  std::vector<std::uint8_t> values(3 * 4 * 4);
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
  const std::int32_t filter = ops.weights({4, 1, 3, 4}, DataType::kInt8, values, {0.01f, 0.02f, 0.03f, 0.015f}, 0, 0);
  const std::int32_t bias = ops.bias(
      {1, -200, 3000, 40}, {0.01f * kPlain.scale, 0.02f * kPlain.scale, 0.03f * kPlain.scale, 0.015f * kPlain.scale});
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("stride_w", std::int64_t{1});
  attributes.set("stride_h", std::int64_t{1});
  attributes.set("fused_activation_function", ir::EnumName{"RELU"});
  const Affine8 out = {DataType::kInt8, 0.2f, -90};
  const std::int32_t sums = builder.add("CONV_2D", "Conv2DOptions", attributes,
                                        {ops.reshape(apart, {4, 1, 7, 4}), filter, bias}, {4, 1, 5, 4}, out);
  const std::int32_t y =
      builder.add("BATCH_TO_SPACE_ND", "BatchToSpaceNDOptions", {},
                  {ops.reshape(sums, {4, 5, 4}), ops.int_vector(block), ops.int_matrix(none, 2)}, {1, 20, 4}, out);
  const ir::Model model = builder.finish({y});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(op_types(result.model), (std::vector<std::string>{"RESHAPE", "CONV_2D", "RESHAPE"}));
  EXPECT_EQ(difference(model, result.model, 1), 0);
}

TEST(LayerRewrites, RowsOfALargeSoftmax) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 4, 50, 16}, kPlain);
  ir::Attributes beta;
  beta.set("beta", 1.0);
  const ir::Model model = builder.finish(
      {builder.add("SOFTMAX", "SoftmaxOptions", beta, {x}, {1, 4, 50, 16}, unit_affine(DataType::kInt8))});
  const Rewritten result =
      rewritten(model, without([](const ir::Model& m, std::int32_t op) {
                  return !(is_type(m, op, "SOFTMAX") && output_elements(m, op) > 900) && fits_the_chip(m, op);
                }));
  EXPECT_EQ(count_ops(result.model, "SOFTMAX"), 4u);
  EXPECT_EQ(difference(model, result.model, 1), 0);
}

TEST(LayerRewrites, PiecesOfATransposition) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 100, 1000}, kPlain);
  const std::vector<int> order = {0, 2, 1};
  const std::int32_t y = builder.ops().transpose(x, order);
  const std::int32_t grid = builder.ops().tensor({1, 1000, 100}, kPlain);
  // Something that does not let it pass.
  builder.ops().add("L2_NORMALIZATION", "L2NormOptions", {}, {y}, {grid}, DataType::kInt8);
  builder.tensor(grid).quantization = quantization_of({DataType::kInt8, 1.0f / 128, 0});
  const ir::Model model = builder.finish({grid});
  const Rewritten result = rewritten(model, without([](const ir::Model& m, std::int32_t op) {
                                       return is_type(m, op, "L2_NORMALIZATION") || fits_the_chip(m, op);
                                     }));
  EXPECT_EQ(count_ops(result.model, "TRANSPOSE"), 2u);
  EXPECT_EQ(difference(model, result.model, 1), 0);
}

}  // namespace
}  // namespace reef::passes
