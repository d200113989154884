// SPDX-License-Identifier: Apache-2.0
// ConvTranspose: TRANSPOSE_CONV over the whole result, then cut (pads) or widened (output_padding).
//
// Groups become one dense kernel with zeros between groups, where weights are known; else parts that are joined.
// Dilated kernels get zeros between their elements. Where TFLite's SAME padding cuts the same elements, it does it.
#include <algorithm>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

struct TransposeAxis {
  std::int64_t input = 1, kernel = 1, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0;  // elements cut from the whole result
  std::int64_t extra = 0;              // output_padding
  std::int64_t reach() const { return (kernel - 1) * dilation + 1; }
  std::int64_t whole() const { return (input - 1) * stride + reach(); }
  std::int64_t output() const { return whole() + extra - before - after; }
};

Result<std::vector<TransposeAxis>> read_axes(const NodeContext& ctx, const Dims& input, const Dims& kernel) {
  const std::size_t count = input.size();
  const auto list = [&](std::string_view name, std::size_t size, std::int64_t fallback) -> Result<Dims> {
    Dims values = ctx.ints_attribute(name);
    if (values.empty()) values.assign(size, fallback);
    REEF_REQUIRE(values.size() == size, "attribute {} has {} numbers; {} are needed", name, values.size(), size);
    for (const std::int64_t value : values) {
      REEF_REQUIRE(value >= fallback && value < (1 << 20), "attribute {} has the value {}", name, value);
    }
    return values;
  };
  REEF_ASSIGN_OR_RETURN(const Dims strides, list("strides", count, 1));
  REEF_ASSIGN_OR_RETURN(const Dims dilations, list("dilations", count, 1));
  REEF_ASSIGN_OR_RETURN(const Dims pads, list("pads", 2 * count, 0));
  REEF_ASSIGN_OR_RETURN(const Dims extras, list("output_padding", count, 0));
  const Dims output_shape = ctx.ints_attribute("output_shape");
  const std::string mode = ctx.string_attribute("auto_pad", "NOTSET");
  std::vector<TransposeAxis> axes(count);
  for (std::size_t i = 0; i < count; ++i) {
    TransposeAxis& axis = axes[i];
    axis = {input[i], kernel[i], strides[i], dilations[i], 0, 0, extras[i]};
    const bool is_same = mode.starts_with("SAME");
    if (!output_shape.empty() || is_same) {
      REEF_REQUIRE(output_shape.empty() || output_shape.size() >= count, "attribute output_shape has {} numbers",
                   output_shape.size());
      const std::int64_t wanted =
          output_shape.empty() ? axis.input * axis.stride : output_shape[output_shape.size() - count + i];
      REEF_REQUIRE(wanted >= 1 && wanted < (1 << 28), "attribute output_shape asks for the size {}", wanted);
      const std::int64_t total = axis.whole() + axis.extra - wanted;
      // A kernel shorter than its stride leaves nothing to cut: ONNX's shape inference and ONNX Runtime then give the
      // whole result, not the input's size times the stride.
      if (total < 0) {
        if (!output_shape.empty()) axis.extra -= total;
      } else {
        axis.before = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
        axis.after = total - axis.before;
      }
    } else if (mode != "VALID") {
      axis.before = pads[i];
      axis.after = pads[i + count];
    }
    REEF_REQUIRE(axis.output() >= 1, "the padding cuts away the whole result");
  }
  return axes;
}

// Weights [c, o, kh, kw] with zeros between their elements.
Id dilated_weights(GraphBuilder& b, Id weights, const std::vector<TransposeAxis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t gap = axes[i].dilation;
    if (gap == 1) continue;
    const Dims dims = dims_of(b.shape(weights));
    Dims outer(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(i + 3));
    Dims inner(dims.begin() + static_cast<std::ptrdiff_t>(i + 3), dims.end());
    Dims spread = outer;
    spread.push_back(1);
    spread.insert(spread.end(), inner.begin(), inner.end());
    Dims after(spread.size(), 0);
    after[i + 3] = gap - 1;
    const Id padded = pad_constant(b, reshape(b, weights, spread), Dims(spread.size(), 0), after, 0);
    Dims whole = dims;
    whole[i + 2] = dims[i + 2] * gap;
    weights = slice_axis(b, reshape(b, padded, whole), static_cast<int>(i) + 2, 0, axes[i].reach());
  }
  return weights;
}

// Weights [c, o / groups, ...] -> [c, o, ...], with zeros between groups. kAbsent: they are not known, or would become
// too large.
Id dense_weights(GraphBuilder& b, Id weights, std::int64_t groups) {
  const ir::Shape from = b.shape(weights);
  const std::int64_t channels = from[0], per_group = from[1], outputs = per_group * groups;
  const std::int64_t window = from.product(2, from.rank()), size = channels * outputs * window;
  const auto known = size <= (std::int64_t{1} << 26) ? b.float_values(weights) : std::nullopt;
  if (!known) return kAbsent;
  std::vector<float> dense(static_cast<std::size_t>(size), 0.0f);
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::int64_t group = c / (channels / groups);
    const auto source = known->begin() + static_cast<std::ptrdiff_t>(c * per_group * window);
    const std::int64_t target = (c * outputs + group * per_group) * window;
    std::copy(source, source + static_cast<std::ptrdiff_t>(per_group * window),
              dense.begin() + static_cast<std::ptrdiff_t>(target));
  }
  Dims shape = dims_of(from);
  shape[1] = outputs;
  return b.floats(dense, shape_from(shape));
}

bool is_same_padding(const std::vector<TransposeAxis>& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const TransposeAxis& axis) {
    const std::int64_t total = axis.whole() - axis.output();
    return axis.output() == axis.input * axis.stride && total >= 0 && axis.before == total / 2;
  });
}

// x [n, h, w, c], weights [c, o, kh, kw] dense.
Id transpose_conv_2d(GraphBuilder& b, Id x, Id weights, Id bias, const std::vector<TransposeAxis>& axes) {
  const bool is_same = is_same_padding(axes);
  const std::int64_t batch = b.dim(x, 0), outputs = b.dim(weights, 1);
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{is_same ? "SAME" : "VALID"});
  attributes.set("stride_w", axes[1].stride);
  attributes.set("stride_h", axes[0].stride);
  const auto size = [&](const TransposeAxis& axis) { return is_same ? axis.output() : axis.whole(); };
  const Id shape = b.ints(Dims{batch, size(axes[0]), size(axes[1]), outputs});
  std::vector<Id> inputs = {shape, transpose(b, weights, {1, 2, 3, 0}), x};
  const bool grows =
      axes[0].before + axes[0].output() > axes[0].whole() || axes[1].before + axes[1].output() > axes[1].whole();
  if (bias != kAbsent && !grows) inputs.push_back(bias);
  Id y = b.emit(Op::TRANSPOSE_CONV, inputs, b.type(x), std::move(attributes));
  if (!is_same) {
    Dims after = {0, 0, 0, 0};
    for (std::size_t i = 0; i < 2; ++i) {
      after[i + 1] = std::max<std::int64_t>(0, axes[i].before + axes[i].output() - axes[i].whole());
    }
    y = pad_constant(b, y, {0, 0, 0, 0}, after, 0);
    y = slice(b, y, {0, axes[0].before, axes[1].before, 0}, {batch, axes[0].output(), axes[1].output(), outputs});
  }
  return bias != kAbsent && grows ? add(b, y, bias) : y;
}

// Three spatial axes: every slice of the kernel along the first spreads the input's planes over the result's. Only that
// axis may be dilated.
Id transpose_conv_3d(GraphBuilder& b, Id x, Id weights, Id bias, const std::vector<TransposeAxis>& axes) {
  const TransposeAxis depth = axes[0];
  const std::vector<TransposeAxis> plane = {axes[1], axes[2]};
  const ir::Shape xs = b.shape(x), ws = b.shape(weights);  // [n, c, d, h, w], [c, o, kd, kh, kw]
  const Id images = reshape(b, channels_last(b, x), {xs[0] * xs[2], xs[3], xs[4], xs[1]});
  const std::int64_t rows = plane[0].output(), columns = plane[1].output();
  const std::int64_t total = std::max(depth.whole(), depth.before + depth.output());
  Id sum = kAbsent;
  for (std::int64_t k = 0; k < depth.kernel; ++k) {
    const Id filter = reshape(b, slice_axis(b, weights, 2, k, 1), {ws[0], ws[1], ws[3], ws[4]});
    const Id part = transpose_conv_2d(b, images, filter, kAbsent, plane);
    // Planes k, k + stride, ... of the result: zeros between them, then around them.
    const std::int64_t row = rows * columns * ws[1];
    Id spread = reshape(b, part, {xs[0], xs[2], 1, row});
    spread = pad_constant(b, spread, {0, 0, 0, 0}, {0, 0, depth.stride - 1, 0}, 0);
    spread = reshape(b, spread, {xs[0], xs[2] * depth.stride, row});
    spread = slice_axis(b, spread, 1, 0, (depth.input - 1) * depth.stride + 1);
    const std::int64_t before = k * depth.dilation;
    const std::int64_t after = total - before - ((depth.input - 1) * depth.stride + 1);
    spread = pad_constant(b, spread, {0, before, 0}, {0, after, 0}, 0);
    sum = sum == kAbsent ? spread : add(b, sum, spread);
  }
  Id y = slice_axis(b, sum, 1, depth.before, depth.output());
  y = reshape(b, y, {xs[0], depth.output(), rows, columns, ws[1]});
  return channels_first(b, bias == kAbsent ? y : add(b, y, bias));
}

Id grouped_3d(GraphBuilder& b, Id x, Id weights, Id bias, std::vector<TransposeAxis> axes, std::int64_t groups) {
  const TransposeAxis depth = axes[0];
  axes[0].dilation = 1;
  weights = dilated_weights(b, weights, axes);
  for (TransposeAxis& axis : axes) {
    axis.kernel = axis.reach();
    axis.dilation = 1;
  }
  axes[0] = depth;
  const Id dense = groups == 1 ? weights : dense_weights(b, weights, groups);
  if (dense != kAbsent) return transpose_conv_3d(b, x, dense, bias, axes);
  std::vector<Id> parts;
  const std::int64_t each = b.dim(x, 1) / groups;
  for (std::int64_t i = 0; i < groups; ++i) {
    parts.push_back(transpose_conv_3d(b, slice_axis(b, x, 1, i * each, each), slice_axis(b, weights, 0, i * each, each),
                                      kAbsent, axes));
  }
  const Id y = concat(b, parts, 1);
  return bias == kAbsent ? y : add(b, y, reshape(b, bias, {1, b.dim(bias, 0), 1, 1, 1}));
}

}  // namespace

Status convert_conv_transpose(NodeContext& ctx, GraphBuilder& b) {
  Id x = ctx.in(0), weights = ctx.in(1);
  const int spatial = b.rank(x) - 2;
  if (spatial < 1 || spatial > 3) {
    return unsupported("the input has {} dimensions; convolutions over 1 to 3 spatial axes are converted", b.rank(x));
  }
  const std::int64_t groups = ctx.int_attribute("group", 1);
  REEF_REQUIRE(b.rank(weights) == b.rank(x) && groups >= 1 && groups < (1 << 24) && b.dim(weights, 0) == b.dim(x, 1) &&
                   b.dim(x, 1) % groups == 0,
               "weights {} in {} groups do not fit an input of {} channels", b.shape(weights).to_string(), groups,
               b.dim(x, 1));
  Dims input = dims_of(b.shape(x)), kernel = dims_of(b.shape(weights));
  input.erase(input.begin(), input.begin() + 2);
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  REEF_ASSIGN_OR_RETURN(std::vector<TransposeAxis> axes, read_axes(ctx, input, kernel));
  if (spatial == 3) {
    const Id y = grouped_3d(b, x, weights, ctx.in(2), std::move(axes), groups);
    REEF_RETURN_IF_ERROR(b.status());
    return ctx.give(y);
  }
  if (spatial == 1) {
    axes.insert(axes.begin(), TransposeAxis());
    const ir::Shape w = b.shape(weights);
    weights = reshape(b, weights, {w[0], w[1], 1, w[2]});
  }
  weights = dilated_weights(b, weights, axes);
  for (TransposeAxis& axis : axes) {
    axis.kernel = axis.reach();
    axis.dilation = 1;
  }
  Id image = channels_last(b, x);
  if (spatial == 1) image = reshape(b, image, {b.dim(image, 0), 1, b.dim(image, 1), b.dim(image, 2)});
  const Id dense = groups == 1 ? weights : dense_weights(b, weights, groups);
  REEF_RETURN_IF_ERROR(b.status());
  Id y = kAbsent;
  if (dense != kAbsent) {
    y = transpose_conv_2d(b, image, dense, ctx.in(2), axes);
  } else {
    std::vector<Id> parts;
    const std::int64_t each = b.dim(x, 1) / groups;
    for (std::int64_t i = 0; i < groups; ++i) {
      parts.push_back(transpose_conv_2d(b, slice_axis(b, image, 3, i * each, each),
                                        slice_axis(b, weights, 0, i * each, each), kAbsent, axes));
    }
    y = concat(b, parts, 3);
    if (ctx.has(2)) y = add(b, y, ctx.in(2));
  }
  if (spatial == 1) y = reshape(b, y, {b.dim(y, 0), b.dim(y, 2), b.dim(y, 3)});
  return ctx.give(channels_first(b, y));
}

}  // namespace reef::import
