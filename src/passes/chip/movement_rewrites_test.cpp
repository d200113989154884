// SPDX-License-Identifier: Apache-2.0
// Rewrites that only move elements: the same bytes before and after.
#include <cmath>

#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

constexpr Affine8 kPlain = {DataType::kInt8, 0.05f, -3};

ir::Attributes attribute(std::string_view name, ir::AttributeValue value) {
  ir::Attributes attributes;
  attributes.set(name, std::move(value));
  return attributes;
}

// The rewritten model gives the same bytes, has no operator left that does not fit, and was changed by `rewrite`.
Rewritten expect_exact(const ir::Model& model, std::string_view rewrite, const RewriteOptions& options) {
  Rewritten result = rewritten(model, options);
  EXPECT_FALSE(result.applications.empty()) << rewrite;
  for (const Application& each : result.applications) {
    EXPECT_TRUE(each.made) << each.what;
    EXPECT_EQ(each.largest_difference, 0) << each.what;
  }
  if (!result.applications.empty()) {
    EXPECT_EQ(result.applications[0].rewrite, rewrite);
  }
  for (std::size_t i = 0; i < result.model.subgraphs[0].operators.size(); ++i) {
    EXPECT_TRUE(fits_the_chip(result.model, static_cast<std::int32_t>(i)))
        << rewrite << ": op " << i << " " << result.model.subgraphs[0].operators[i].type << " does not fit";
  }
  for (const unsigned seed : {1u, 2u}) EXPECT_EQ(difference(model, result.model, seed), 0) << rewrite;
  EXPECT_EQ(rewritten(model, options).model, result.model) << "not deterministic";
  return result;
}
Rewritten expect_exact(const ir::Model& model, std::string_view rewrite) {
  return expect_exact(model, rewrite, standard_options());
}

ir::Model split_v_model(const std::vector<std::int64_t>& sizes, int axis, const Affine8& affine) {
  ModelBuilder builder;
  ir::Shape shape = {1, 5, 7, 6};
  const std::int32_t x = builder.input(shape, affine);
  std::vector<std::int32_t> outputs;
  for (const std::int64_t size : sizes) {
    ir::Shape piece = shape;
    piece[axis] = static_cast<std::int32_t>(size);
    outputs.push_back(builder.ops().tensor(piece, affine));
  }
  const std::int32_t size_tensor = builder.ops().int_vector(sizes), axis_tensor = builder.ops().int_scalar(axis - 4);
  builder.ops().add("SPLIT_V", "SplitVOptions", attribute("num_splits", static_cast<std::int64_t>(sizes.size())),
                    {x, size_tensor, axis_tensor}, outputs, affine.type);
  return builder.finish(outputs);
}

TEST(MovementRewrites, SplitV) {
  const Rewritten slices = expect_exact(split_v_model({1, 3, 2}, 3, kPlain), "split-v");
  EXPECT_EQ(count_ops(slices.model, "STRIDED_SLICE"), 3u);
  const Rewritten equal = expect_exact(split_v_model({2, 2, 2}, 3, {DataType::kUInt8, 0.1f, 9}), "split-v");
  EXPECT_EQ(op_types(equal.model), std::vector<std::string>{"SPLIT"});
  expect_exact(split_v_model({4, 1}, 1, kPlain), "split-v");
}

TEST(MovementRewrites, UnpackAndPack) {
  for (const int axis : {1, 2, 3}) {
    ModelBuilder builder;
    const ir::Shape shape = {1, 3, 4, 5};
    const std::int32_t x = builder.input(shape, kPlain);
    std::vector<std::int32_t> dims = shape.dims();
    dims.erase(dims.begin() + axis);
    std::vector<std::int32_t> pieces;
    for (std::int32_t i = 0; i < shape[axis]; ++i) pieces.push_back(builder.ops().tensor(ir::Shape(dims), kPlain));
    ir::Attributes attributes = attribute("num", std::int64_t{shape[axis]});
    attributes.set("axis", std::int64_t{axis});
    builder.ops().add("UNPACK", "UnpackOptions", attributes, {x}, pieces, DataType::kInt8);
    expect_exact(builder.finish(pieces), "unpack");

    ModelBuilder packing;
    std::vector<std::int32_t> parts;
    for (std::int32_t i = 0; i < shape[axis]; ++i) parts.push_back(packing.input(ir::Shape(dims), kPlain));
    ir::Attributes pack = attribute("values_count", std::int64_t{shape[axis]});
    pack.set("axis", std::int64_t{axis});
    const std::int32_t y = packing.add("PACK", "PackOptions", pack, parts, shape, kPlain);
    RewriteOptions options = standard_options();
    options.fits = for_each_op([](const ir::Model& model, std::int32_t op) {
      return model.subgraphs[0].operators[at(op)].type != "PACK" && fits_the_chip(model, op);
    });
    expect_exact(packing.finish({y}), "unpack", options);
  }
}

ir::Model pad_v2_model(std::int32_t filling) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 4, 5, 2}, kPlain);
  const std::vector<std::int64_t> paddings = {0, 0, 1, 2, 0, 3, 0, 0};
  const std::int32_t amounts = builder.ops().int_matrix(paddings, 2);
  const std::int32_t value = builder.ops().filled({}, kPlain, filling);
  const std::int32_t y = builder.add("PADV2", "PadV2Options", {}, {x, amounts, value}, {1, 7, 8, 2}, kPlain);
  return builder.finish({y});
}

TEST(MovementRewrites, PadV2WithZeroIsPad) {
  const Rewritten result = expect_exact(pad_v2_model(kPlain.zero_point), "pad-v2");
  EXPECT_EQ(op_types(result.model), std::vector<std::string>{"PAD"});
}

TEST(MovementRewrites, PadV2WithAnotherNumberIsJoined) {
  const Rewritten result = expect_exact(pad_v2_model(-128), "pad-v2");
  EXPECT_EQ(op_types(result.model), (std::vector<std::string>{"CONCATENATION", "CONCATENATION"}));
}

// Kernel, stride, padding before and behind, height and width alike.
ir::Model padded_pool_model(std::int32_t size, int kernel, int stride, int before, int after) {
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, size, size, 2}, kPlain);
  const std::vector<std::int64_t> paddings = {0, 0, before, after, before, after, 0, 0};
  const std::int32_t amounts = builder.ops().int_matrix(paddings, 2);
  const std::int32_t value = builder.ops().filled({}, kPlain, -128);
  const std::int32_t padded = size + before + after, output = (padded - kernel) / stride + 1;
  const std::int32_t wide =
      builder.add("PADV2", "PadV2Options", {}, {x, amounts, value}, {1, padded, padded, 2}, kPlain);
  ir::Attributes pool;
  pool.set("padding", ir::EnumName{"VALID"});
  pool.set("stride_w", std::int64_t{stride});
  pool.set("stride_h", std::int64_t{stride});
  pool.set("filter_width", std::int64_t{kernel});
  pool.set("filter_height", std::int64_t{kernel});
  pool.set("fused_activation_function", ir::EnumName{"NONE"});
  return builder.finish({builder.add("MAX_POOL_2D", "Pool2DOptions", pool, {wide}, {1, output, output, 2}, kPlain)});
}

TEST(MovementRewrites, PaddedMaxPoolsLoseTheirPadV2) {
  for (int kernel = 2; kernel <= 4; ++kernel) {
    for (int stride = 1; stride <= 2; ++stride) {
      for (int before = 0; before < kernel; ++before) {
        for (int after = 0; after < kernel; ++after) {
          for (const std::int32_t size : {7, 8}) {
            const ir::Model model = padded_pool_model(size, kernel, stride, before, after);
            const Rewritten result = expect_exact(model, "max-pool-padding");
            const std::vector<std::string> types = op_types(result.model);
            EXPECT_EQ(std::count(types.begin(), types.end(), "PADV2"), 0);
          }
        }
      }
    }
  }
}

TEST(MovementRewrites, MirrorPad) {
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    ModelBuilder builder;
    const std::int32_t x = builder.input({1, 4, 5, 3}, kPlain);
    const std::vector<std::int64_t> paddings = {0, 0, 1, 2, 3, 0, 0, 0};
    const std::int32_t amounts = builder.ops().int_matrix(paddings, 2);
    const std::int32_t y = builder.add("MIRROR_PAD", "MirrorPadOptions", attribute("mode", ir::EnumName{mode}),
                                       {x, amounts}, {1, 7, 8, 3}, kPlain);
    expect_exact(builder.finish({y}), "mirror-pad");
  }
}

// Height, width, channels of the result and block; order: PyTorch's (channel outside) or TensorFlow's.
ir::Model shuffle_model(int block, bool pytorch, bool with_convolution) {
  ModelBuilder builder;
  const std::int32_t h = 3, w = 5, c = 4, b = block;
  std::int32_t x = builder.input({1, h, w, with_convolution ? 2 : c * b * b}, kPlain);
  if (with_convolution) {
    std::mt19937 random(3);
    const std::int32_t channels = c * b * b;
    std::vector<std::uint8_t> weights(static_cast<std::size_t>(channels) * 2);
    for (std::uint8_t& each : weights) each = static_cast<std::uint8_t>(random());
    std::vector<float> scales, bias_scales;
    std::vector<std::int32_t> biases;
    for (std::int32_t i = 0; i < channels; ++i) {
      scales.push_back(0.01f + 0.001f * static_cast<float>(i % 7));
      bias_scales.push_back(scales.back() * kPlain.scale);
      biases.push_back(static_cast<std::int32_t>(random() % 2000) - 1000);
    }
    const std::int32_t filter = builder.ops().weights({channels, 1, 1, 2}, DataType::kInt8, weights, scales, 0, 0);
    const std::int32_t bias = builder.ops().bias(biases, bias_scales);
    const std::int32_t y = builder.ops().tensor({1, h, w, channels}, kPlain);
    x = builder.ops().pointwise(x, filter, bias, "NONE", y);
  }
  const std::vector<int> order = pytorch ? std::vector<int>{0, 1, 4, 2, 5, 3} : std::vector<int>{0, 1, 3, 2, 4, 5};
  const ir::Shape six = pytorch ? ir::Shape({1, h, w, c, b, b}) : ir::Shape({1, h, w, b, b, c});
  const std::int32_t y =
      builder.ops().reshape(builder.ops().transpose(builder.ops().reshape(x, six), order), {1, h * b, w * b, c});
  return builder.finish({y});
}

TEST(MovementRewrites, PixelShuffleInEitherOrder) {
  for (const int block : {2, 3}) {
    const Rewritten plain = expect_exact(shuffle_model(block, false, false), "pixel-shuffle");
    EXPECT_EQ(count_ops(plain.model, "TRANSPOSE"), 0u);
    EXPECT_EQ(count_ops(plain.model, "STRIDED_SLICE"), static_cast<std::size_t>(block));
    expect_exact(shuffle_model(block, true, false), "pixel-shuffle");
    const Rewritten absorbed = expect_exact(shuffle_model(block, true, true), "pixel-shuffle");
    EXPECT_EQ(count_ops(absorbed.model, "CONV_2D"), 1u) << "the order belongs into the weights";
    EXPECT_EQ(count_ops(absorbed.model, "TRANSPOSE"), 0u);
  }
}

TEST(MovementRewrites, DepthToSpaceAndChannelShuffle) {
  for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
    ModelBuilder builder;
    const Affine8 affine = {type, 0.1f, 7};
    const std::int32_t x = builder.input({1, 4, 3, 20}, affine);
    const std::int32_t y = builder.add("DEPTH_TO_SPACE", "DepthToSpaceOptions",
                                       attribute("block_size", std::int64_t{2}), {x}, {1, 8, 6, 5}, affine);
    expect_exact(builder.finish({y}), "pixel-shuffle");
  }
  ModelBuilder builder;
  const std::int32_t x = builder.input({1, 4, 3, 12}, kPlain);
  const std::vector<int> order = {0, 1, 2, 4, 3};
  const std::int32_t five = builder.ops().transpose(builder.ops().reshape(x, {1, 4, 3, 3, 4}), order);
  expect_exact(builder.finish({builder.ops().reshape(five, {1, 4, 3, 12})}), "pixel-shuffle");
}

}  // namespace
}  // namespace reef::passes
