// SPDX-License-Identifier: Apache-2.0
// Normalizations. BatchNormalization with its recorded statistics is a product and a sum with constants, which fold
// into the convolution before it; the others are written out in one form: mean, squared difference, mean, 1/root,
// product.
#include <algorithm>
#include <limits>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

// x minus its mean over `axes`, by its deviation.
struct Normalized {
  Id y = kAbsent, mean = kAbsent, inverse_deviation = kAbsent;
};

Normalized normalize(GraphBuilder& b, Id x, const Dims& axes, double epsilon) {
  Normalized n;
  n.mean = reduce(b, Op::MEAN, x, axes, true);
  const Id variance = reduce(b, Op::MEAN, binary(b, Op::SQUARED_DIFFERENCE, x, n.mean), axes, true);
  n.inverse_deviation = unary(b, Op::RSQRT, add(b, variance, epsilon));
  n.y = mul(b, sub(b, x, n.mean), n.inverse_deviation);
  return n;
}

// A vector of the channels' values with axes behind it, so that it broadcasts over [n, c, spatial...].
Id per_channel(GraphBuilder& b, Id values, int rank) {
  Dims dims(static_cast<std::size_t>(std::max(rank - 1, 1)), 1);
  dims[0] = b.elements(values);
  return reshape(b, values, dims);
}

Status require_channels(NodeContext& ctx, std::initializer_list<int> inputs) {
  for (const int i : inputs) {
    REEF_REQUIRE(ctx.b.elements(ctx.in(i)) == ctx.b.dim(ctx.in(0), 1),
                 "input {} has {} elements; there are {} channels", i, ctx.b.elements(ctx.in(i)),
                 ctx.b.dim(ctx.in(0), 1));
  }
  return ok_status();
}

// With the batch's own statistics; outputs 1 and 2 are the moving ones.
Status batch_normalization_training(NodeContext& ctx, double epsilon) {
  GraphBuilder& b = ctx.b;
  const Id x = ctx.in(0);
  const int rank = b.rank(x);
  Dims axes = {0};
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  const Normalized n = normalize(b, x, axes, epsilon);
  ctx.out(0, add(b, mul(b, n.y, per_channel(b, ctx.in(1), rank)), per_channel(b, ctx.in(2), rank)));
  const double momentum = ctx.float_attribute("momentum", 0.9f);
  const Id mean = reshape(b, n.mean, {b.dim(x, 1)});
  const Id variance = reduce(b, Op::MEAN, binary(b, Op::SQUARED_DIFFERENCE, x, n.mean), axes, false);
  ctx.out(1, add(b, mul(b, ctx.in(3), momentum), mul(b, mean, 1 - momentum)));
  ctx.out(2, add(b, mul(b, ctx.in(4), momentum), mul(b, variance, 1 - momentum)));
  return ok_status();
}

}  // namespace

Status convert_batch_normalization(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const int rank = b.rank(x);
  REEF_REQUIRE(rank >= 2, "the input has {} dimensions", rank);
  REEF_RETURN_IF_ERROR(require_channels(ctx, {1, 2, 3, 4}));
  const double epsilon = ctx.float_attribute("epsilon", 1e-5f);
  if (ctx.opset() >= 14 && ctx.int_attribute("training_mode", 0) != 0)
    return batch_normalization_training(ctx, epsilon);
  // y = (x - mean) * scale / sqrt(var + epsilon) + bias
  const Id factor = mul(b, ctx.in(1), unary(b, Op::RSQRT, add(b, ctx.in(4), epsilon)));
  const Id offset = sub(b, ctx.in(2), mul(b, ctx.in(3), factor));
  return ctx.give(add(b, mul(b, x, per_channel(b, factor, rank)), per_channel(b, offset, rank)));
}

namespace {

// Normalizes groups of channels, channels last: [n, pixels, groups, channels of a group]. The mean over a whole group
// does not ask for the order of its elements.
Id group_normalized(GraphBuilder& b, Id x, std::int64_t groups, float epsilon) {
  const Id last = channels_last(b, x);
  const Dims dims = dims_of(b.shape(last));
  const std::int64_t pixels = b.shape(last).product(1, b.rank(last) - 1);
  const Id grouped = reshape(b, last, {dims[0], pixels, groups, dims.back() / std::max<std::int64_t>(1, groups)});
  return channels_first(b, reshape(b, normalize(b, grouped, {1, 3}, epsilon).y, dims));
}

// What exporters normalize as a group: an image [n, c, ...] that was reshaped to [n, groups, rest]. kAbsent: x is none.
Id image_in_groups(const GraphBuilder& b, Id x) {
  const std::int32_t producer = b.producer(x);
  if (b.rank(x) != 3 || producer < 0 || b.op(producer).type != Op::RESHAPE) return kAbsent;
  const Id source{b.op(producer).inputs[0]};
  const bool fits = b.is_shape_known(source) && b.rank(source) >= 4 && b.dim(source, 0) == b.dim(x, 0) &&
                    b.dim(x, 1) >= 1 && b.dim(source, 1) % b.dim(x, 1) == 0;
  return fits ? source : kAbsent;
}

}  // namespace

Status convert_instance_normalization(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const int rank = b.rank(x);
  REEF_REQUIRE(rank >= 3, "the input has {} dimensions", rank);
  REEF_RETURN_IF_ERROR(require_channels(ctx, {1, 2}));
  Dims axes;
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  const float epsilon = ctx.float_attribute("epsilon", 1e-5f);
  const Id image = image_in_groups(b, x);
  const Id y = image == kAbsent ? normalize(b, x, axes, epsilon).y
                                : reshape(b, group_normalized(b, image, b.dim(x, 1), epsilon), dims_of(b.shape(x)));
  return ctx.give(add(b, mul(b, y, per_channel(b, ctx.in(1), rank)), per_channel(b, ctx.in(2), rank)));
}

Status convert_layer_normalization(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(2));
  const Id x = ctx.in(0);
  const int rank = b.rank(x);
  REEF_ASSIGN_OR_RETURN(const int first, ctx.axis(ctx.int_attribute("axis", -1), rank));
  Dims axes;
  for (int i = first; i < rank; ++i) axes.push_back(i);
  const Normalized n = normalize(b, x, axes, ctx.float_attribute("epsilon", 1e-5f));
  Id y = mul(b, n.y, ctx.in(1));
  if (ctx.has(2)) y = add(b, y, ctx.in(2));
  ctx.out(0, y);
  ctx.out(1, n.mean);
  ctx.out(2, n.inverse_deviation);
  return ok_status();
}

Status convert_rms_normalization(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(2));
  const Id x = ctx.in(0);
  REEF_ASSIGN_OR_RETURN(const int first, ctx.axis(ctx.int_attribute("axis", -1), b.rank(x)));
  Dims axes;
  for (int i = first; i < b.rank(x); ++i) axes.push_back(i);
  const Id mean = reduce(b, Op::MEAN, unary(b, Op::SQUARE, x), axes, true);
  const Id inverse = unary(b, Op::RSQRT, add(b, mean, ctx.float_attribute("epsilon", 1e-5f)));
  return ctx.give(mul(b, mul(b, x, inverse), ctx.in(1)));
}

// Channels in groups, each normalized together with its pixels. Before opset 21 scale and bias are per group.
Status convert_group_normalization(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const ir::Shape dims = b.shape(x);
  const std::int64_t groups = ctx.int_attribute("num_groups", 0);
  REEF_REQUIRE(dims.rank() >= 3 && groups >= 1 && dims[1] % groups == 0, "attribute num_groups is {}, the input {}",
               groups, dims.to_string());
  const Id y = group_normalized(b, x, groups, ctx.float_attribute("epsilon", 1e-5f));
  Id scale = ctx.in(1), bias = ctx.in(2);
  if (b.elements(scale) == groups && groups != dims[1]) {  // opset 18: one number for each group
    const auto spread = [&](Id numbers) {
      const Id rows = broadcast_to(b, reshape(b, numbers, {groups, 1}), {groups, dims[1] / groups});
      return reshape(b, rows, {dims[1]});
    };
    scale = spread(scale);
    bias = spread(bias);
  } else {
    REEF_RETURN_IF_ERROR(require_channels(ctx, {1, 2}));
  }
  return ctx.give(add(b, mul(b, y, per_channel(b, scale, dims.rank())), per_channel(b, bias, dims.rank())));
}

Status convert_mean_variance_normalization(NodeContext& ctx, GraphBuilder& b) {
  Dims given = ctx.ints_attribute("axes");
  if (given.empty()) given = {0, 2, 3};
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, ctx.axes(given, b.rank(ctx.in(0))));
  return ctx.give(normalize(b, ctx.in(0), Dims(axes.begin(), axes.end()), 1e-9).y);
}

Status convert_lp_normalization(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", -1), b.rank(x)));
  const std::int64_t p = ctx.int_attribute("p", 2);
  REEF_REQUIRE(p == 1 || p == 2, "attribute p is {}", p);
  const Id norm = p == 1 ? reduce(b, Op::SUM, unary(b, Op::ABS, x), {axis}, true)
                         : unary(b, Op::SQRT, reduce(b, Op::SUM, unary(b, Op::SQUARE, x), {axis}, true));
  // Where all elements are 0, so is the result.
  return ctx.give(div(b, x, maximum(b, norm, b.scalar(b.type(norm), std::numeric_limits<float>::min()))));
}

// x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta
// TFLite's LOCAL_RESPONSE_NORMALIZATION is not used: its reference kernel leaves out the last channel of each window,
// its optimized one does not. A product with the power of -beta, not a quotient, because the Edge TPU does not divide.
Status convert_lrn(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const std::int64_t size = ctx.int_attribute("size", 1);
  REEF_REQUIRE(size >= 1 && size < 4096 && b.rank(x) == 4, "attribute size is {}, the input {}", size,
               b.shape(x).to_string());
  const double alpha = ctx.float_attribute("alpha", 1e-4f), beta = ctx.float_attribute("beta", 0.75f);
  const double bias = ctx.float_attribute("bias", 1);
  const std::int64_t before = (size - 1) / 2, after = size / 2;
  const Id squares = pad_constant(b, unary(b, Op::SQUARE, x), {0, before, 0, 0}, {0, after, 0, 0}, 0);
  Id sum = kAbsent;
  for (std::int64_t i = 0; i < size; ++i) {
    const Id part = slice_axis(b, squares, 1, i, b.dim(x, 1));
    sum = sum == kAbsent ? part : add(b, sum, part);
  }
  return ctx.give(mul(b, x, power(b, add(b, mul(b, sum, alpha / static_cast<double>(size)), bias), -beta)));
}

}  // namespace reef::import
