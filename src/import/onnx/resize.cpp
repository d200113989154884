// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample: every coordinate mode, nearest, linear and cubic.
//
// Where sizes are known (for others see open_resize.cpp), along each axis the result is a constant matrix times the
// input. Where that matrix is the one that RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR applies, these are used; else
// rows are picked (GATHER) or mixed (FULLY_CONNECTED with the matrix).
#include <algorithm>
#include <cmath>

#include "import/onnx/resize.h"
#include "ir/op.h"

namespace reef::import {
namespace {

// Weights of the input's elements for each of the result's: out x in, row-major.
struct AxisMatrix {
  std::int64_t in = 1, out = 1;
  std::vector<double> weights;
  double& at(std::int64_t row, std::int64_t column) { return weights[reef::at(row * in + column)]; }
  double at(std::int64_t row, std::int64_t column) const { return weights[reef::at(row * in + column)]; }
  bool is_identity() const {
    if (in != out) return false;
    for (std::int64_t i = 0; i < out; ++i) {
      if (std::fabs(at(i, i) - 1) > 1e-9) return false;
    }
    return true;
  }
};

struct AxisResize {
  std::int64_t in = 1, out = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
};

double source_of(const ResizeMode& m, const AxisResize& a, double x) {
  const double in = static_cast<double>(a.in);
  const double out = in * a.scale;  // ONNX does not round it down here
  // In single precision where the result is rounded to a place, as ONNX Runtime does: 7 / 0.7 is 10, not a bit above.
  const auto scaled = [&](double at) {
    return m.mode == "nearest" ? static_cast<float>(at) / static_cast<float>(a.scale) : at / a.scale;
  };
  if (m.coordinates == "asymmetric") return scaled(x);
  if (m.coordinates == "align_corners") {
    // Nor here, in ONNX's tests. PyTorch does, and writes its scales for that; ONNX Runtime follows it.
    return a.out == 1 ? 0 : x * (in - 1) / ((m.rounds_sizes ? static_cast<double>(a.out) : out) - 1);
  }
  if (m.coordinates == "pytorch_half_pixel") return a.out > 1 ? scaled(x + 0.5) - 0.5 : 0;
  if (m.coordinates == "tf_half_pixel_for_nn") return scaled(x + 0.5);
  if (m.coordinates == "tf_crop_and_resize") {
    const double last = static_cast<double>(a.out - 1);
    return a.out > 1 ? a.roi_begin * (in - 1) + x * (a.roi_end - a.roi_begin) * (in - 1) / last
                     : 0.5 * (a.roi_begin + a.roi_end) * (in - 1);
  }
  if (m.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(a.out) / out;
    const double center = in / 2;
    return center * (1 - adjustment) + scaled(x + 0.5) - 0.5;
  }
  return scaled(x + 0.5) - 0.5;  // half_pixel
}

double nearest_of(const ResizeMode& m, const AxisResize& a, double x) {
  if (m.nearest == kNearestOfOpset10) return a.scale < 1 ? std::ceil(x) : std::floor(x);
  if (m.nearest == "floor") return std::floor(x);
  if (m.nearest == "ceil") return std::ceil(x);
  if (m.nearest == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);  // round_prefer_floor
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// nullopt: the element lies outside of the input and gets the extrapolation value.
AxisMatrix matrix_of(const ResizeMode& m, const AxisResize& a, std::vector<bool>& is_outside) {
  AxisMatrix matrix;
  matrix.in = a.in;
  matrix.out = a.out;
  matrix.weights.assign(static_cast<std::size_t>(a.in * a.out), 0.0);
  is_outside.assign(static_cast<std::size_t>(a.out), false);
  const auto inside = [&](double at) {
    return static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(a.in - 1)));
  };
  for (std::int64_t i = 0; i < a.out; ++i) {
    const double x = source_of(m, a, static_cast<double>(i));
    if (m.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1))) {
      is_outside[reef::at(i)] = true;
      continue;
    }
    if (m.mode == "nearest") {
      matrix.at(i, inside(nearest_of(m, a, x))) = 1;
      continue;
    }
    const double stretch = m.antialias && a.scale < 1 ? a.scale : 1;  // below 1: the kernel is widened
    const double support = (m.mode == "linear" ? 1.0 : 2.0) / stretch;
    const auto first = static_cast<std::int64_t>(std::floor(x - support)),
               last = first + static_cast<std::int64_t>(2 * support) + 2;
    double total = 0;
    for (std::int64_t k = first; k <= last; ++k) {
      const double distance = (static_cast<double>(k) - x) * stretch;
      const double weight =
          m.mode == "linear" ? std::max(0.0, 1 - std::fabs(distance)) : cubic_weight(distance, m.cubic);
      if (m.exclude_outside && (k < 0 || k >= a.in)) continue;
      matrix.at(i, inside(static_cast<double>(k))) += weight;
      total += weight;
    }
    if (total == 0) continue;
    for (std::int64_t k = 0; k < a.in; ++k) matrix.at(i, k) /= total;
  }
  return matrix;
}

// The matrix that TFLite's kernels apply along an axis.
AxisMatrix tflite_matrix(bool is_nearest, std::int64_t in, std::int64_t out, bool align_corners, bool half_pixel) {
  AxisMatrix matrix;
  matrix.in = in;
  matrix.out = out;
  matrix.weights.assign(static_cast<std::size_t>(in * out), 0.0);
  const double scale = align_corners && out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1)
                                                : static_cast<double>(in) / static_cast<double>(out);
  for (std::int64_t i = 0; i < out; ++i) {
    if (is_nearest) {
      const double x = (static_cast<double>(i) + (half_pixel ? 0.5 : 0)) * scale;
      const double at = align_corners ? std::round(x) : std::floor(x);
      matrix.at(i, std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, in - 1)) = 1;
      continue;
    }
    const double x = half_pixel ? (static_cast<double>(i) + 0.5) * scale - 0.5 : static_cast<double>(i) * scale;
    const double low = std::max(0.0, std::floor(x));
    const std::int64_t a = std::min(static_cast<std::int64_t>(low), in - 1);
    const std::int64_t c = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(x)), 0, in - 1);
    const double part = std::clamp(x - low, 0.0, 1.0);
    matrix.at(i, a) += 1 - part;
    matrix.at(i, c) += part;
  }
  return matrix;
}

bool are_alike(const AxisMatrix& a, const AxisMatrix& b) {
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    if (std::fabs(a.weights[i] - b.weights[i]) > 1e-6) return false;
  }
  return true;
}

// Rows and columns of an image [n, c, h, w] by one operator of TFLite. kAbsent: none does it.
Id by_operator(GraphBuilder& b, Id x, const AxisMatrix& rows, const AxisMatrix& columns, const std::string& mode) {
  if (mode == "cubic") return kAbsent;
  const bool is_nearest = mode == "nearest";
  for (int variant = 0; variant < 3; ++variant) {
    const bool align = variant == 1, half = variant == 2;
    if (!are_alike(rows, tflite_matrix(is_nearest, rows.in, rows.out, align, half))) continue;
    if (!are_alike(columns, tflite_matrix(is_nearest, columns.in, columns.out, align, half))) continue;
    ir::Attributes attributes;
    attributes.set("align_corners", align);
    attributes.set("half_pixel_centers", half);
    const Id y = b.emit(is_nearest ? Op::RESIZE_NEAREST_NEIGHBOR : Op::RESIZE_BILINEAR,
                        {channels_last(b, x), b.ints(Dims{rows.out, columns.out})}, b.type(x), std::move(attributes));
    return channels_first(b, y);
  }
  return kAbsent;
}

Id along_axis(GraphBuilder& b, Id x, int axis, const AxisMatrix& matrix, bool is_nearest) {
  if (is_nearest) {
    Dims rows;
    for (std::int64_t i = 0; i < matrix.out; ++i) {
      std::int64_t at = 0;
      while (at + 1 < matrix.in && matrix.at(i, at) == 0) ++at;
      rows.push_back(at);
    }
    return gather(b, x, b.ints(rows), axis);
  }
  const int rank = b.rank(x);
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i == axis ? rank - 1 : i == rank - 1 ? axis : i);
  const std::vector<float> weights(matrix.weights.begin(), matrix.weights.end());
  const Id filter = b.floats(weights, shape_from({matrix.out, matrix.in}));
  return transpose(b, fully_connected(b, transpose(b, x, order), filter, kAbsent), order);
}

// Rows and columns of an image [n, c, h, w] by constant matrices from the left, channels last: nothing is transposed.
Id by_matrices(GraphBuilder& b, Id x, const AxisMatrix& rows, const AxisMatrix& columns) {
  const auto constant = [&](const AxisMatrix& matrix) {
    const std::vector<float> weights(matrix.weights.begin(), matrix.weights.end());
    return b.floats(weights, shape_from({matrix.out, matrix.in}));
  };
  Id y = channels_last(b, x);
  const std::int64_t images = b.dim(y, 0), channels = b.dim(y, 3);
  if (!rows.is_identity()) {
    y = matmul(b, constant(rows), reshape(b, y, {images, rows.in, columns.in * channels}));
  }
  if (!columns.is_identity()) {
    y = matmul(b, constant(columns), reshape(b, y, {images * rows.out, columns.in, channels}));
  }
  return channels_first(b, reshape(b, y, {images, rows.out, columns.out, channels}));
}

Result<std::vector<AxisResize>> read_axes(NodeContext& ctx, const ResizeMode& m) {
  GraphBuilder& b = ctx.b;
  const ir::Shape shape = b.shape(ctx.in(0));
  const int rank = shape.rank();
  const bool is_upsample = ctx.op() == "Upsample", is_old = ctx.opset() < 11;
  const int scales_input = is_upsample || is_old ? 1 : 2;
  std::vector<float> scales = ctx.floats_attribute("scales");
  Dims sizes;
  if (ctx.has(scales_input) && b.elements(ctx.in(scales_input)) > 0) {
    REEF_ASSIGN_OR_RETURN(scales, ctx.floats(scales_input));
  }
  if (!is_upsample && !is_old && ctx.has(3)) {
    REEF_ASSIGN_OR_RETURN(sizes, ctx.ints(3));
  }
  Dims given = ctx.ints_attribute("axes");
  if (given.empty()) {
    for (int i = 0; i < rank; ++i) given.push_back(i);
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, ctx.axes(given, rank));
  REEF_REQUIRE((sizes.empty() ? scales.size() : sizes.size()) == axes.size(),
               "there are {} scales and {} sizes for {} axes", scales.size(), sizes.size(), axes.size());
  std::vector<float> roi;
  if (m.coordinates == "tf_crop_and_resize" && ctx.has(1)) {
    REEF_ASSIGN_OR_RETURN(roi, ctx.floats(1));
    REEF_REQUIRE(roi.size() == 2 * axes.size(), "roi has {} numbers; {} are needed", roi.size(), 2 * axes.size());
  }
  std::vector<AxisResize> result(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) result[reef::at(i)] = {shape[i], shape[i], 1, 0, 1};
  const std::string policy = ctx.string_attribute("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (std::size_t k = 0; k < sizes.size() && policy != "stretch"; ++k) {
    const double scale = static_cast<double>(sizes[k]) / shape[axes[k]];
    common = k == 0 ? scale : policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  for (std::size_t k = 0; k < axes.size(); ++k) {
    AxisResize& a = result[reef::at(axes[k])];
    REEF_REQUIRE(a.in >= 1, "axis {} is empty", axes[k]);
    if (common > 0) {
      a.scale = common;
      a.out = static_cast<std::int64_t>(std::floor(static_cast<double>(a.in) * common + 0.5));
    } else if (!sizes.empty()) {
      a.out = sizes[k];
      a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
    } else {
      a.scale = scales[k];
      REEF_REQUIRE(a.scale > 0 && a.scale < 1e6, "a scale is {}", a.scale);
      const double span = roi.empty() ? 1 : roi[k + axes.size()] - roi[k];
      // In single precision, as ONNX Runtime does: 10 * 0.7 is 7, not the 6.9999998 of the nearest float.
      a.out = static_cast<std::int64_t>(std::floor(static_cast<float>(a.in) * static_cast<float>(span) * scales[k]));
    }
    if (!roi.empty()) a.roi_begin = roi[k], a.roi_end = roi[k + axes.size()];
    REEF_REQUIRE(a.out >= 1 && a.out < (1 << 20) && a.in * a.out < (1 << 24), "axis {} of size {} would become {}",
                 axes[k], a.in, a.out);
  }
  return result;
}

Result<ResizeMode> read_mode(NodeContext& ctx) {
  ResizeMode m;
  const bool is_old = ctx.opset() < 11 || ctx.op() == "Upsample";
  m.mode = ctx.string_attribute("mode", "nearest");
  if (m.mode == "bilinear" || m.mode == "trilinear") m.mode = "linear";
  REEF_REQUIRE(m.mode == "nearest" || m.mode == "linear" || m.mode == "cubic", "attribute mode is '{}'", m.mode);
  m.coordinates = ctx.string_attribute("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel");
  m.nearest = ctx.string_attribute("nearest_mode", is_old ? kNearestOfOpset10 : "round_prefer_floor");
  m.cubic = ctx.float_attribute("cubic_coeff_a", -0.75f);
  m.rounds_sizes = ctx.producer().starts_with("pytorch");
  m.outside = ctx.float_attribute("extrapolation_value", 0);
  m.exclude_outside = ctx.int_attribute("exclude_outside", 0) != 0;
  m.antialias = ctx.int_attribute("antialias", 0) != 0;
  return m;
}

}  // namespace

Status convert_resize(NodeContext& ctx, GraphBuilder& b) {
  const ir::DataType type = b.type(ctx.in(0));
  REEF_ASSIGN_OR_RETURN(const ResizeMode m, read_mode(ctx));
  const int scales_input = ctx.op() == "Upsample" || ctx.opset() < 11 ? 1 : 2;
  const bool has_scales = ctx.has(scales_input) && b.elements(ctx.in(scales_input)) > 0;
  const bool may_be_open = can_resize_open(ctx, m);
  if (may_be_open && has_scales && ctx.is_open(scales_input)) return open_resize(ctx, m, scales_input, false);
  if (may_be_open && scales_input == 2 && ctx.is_open(3)) return open_resize(ctx, m, 3, true);
  REEF_ASSIGN_OR_RETURN(const std::vector<AxisResize> axes, read_axes(ctx, m));
  const bool is_nearest = m.mode == "nearest";
  Id x = is_nearest ? ctx.in(0) : cast(b, ctx.in(0), ir::DataType::kFloat32);
  const int rank = b.rank(x);
  std::vector<AxisMatrix> matrices;
  Id inside = kAbsent;  // 1 where the result is not extrapolated
  for (int i = 0; i < rank; ++i) {
    std::vector<bool> is_outside;
    matrices.push_back(matrix_of(m, axes[reef::at(i)], is_outside));
    if (std::find(is_outside.begin(), is_outside.end(), true) == is_outside.end()) continue;
    Dims dims(static_cast<std::size_t>(rank), 1);
    dims[reef::at(i)] = axes[reef::at(i)].out;
    std::vector<float> mask;
    for (const bool out : is_outside) mask.push_back(out ? 0.0f : 1.0f);
    const Id part = b.floats(mask, shape_from(dims));
    inside = inside == kAbsent ? part : mul(b, inside, part);
  }
  Id y = kAbsent;
  if (rank == 4 && matrices[0].is_identity() && matrices[1].is_identity() && (is_float(type) || is_nearest)) {
    y = by_operator(b, x, matrices[2], matrices[3], m.mode);
    if (y == kAbsent && !is_nearest) y = by_matrices(b, x, matrices[2], matrices[3]);
  }
  if (y == kAbsent) {
    y = x;
    for (int i = 0; i < rank; ++i) {
      const AxisMatrix& matrix = matrices[reef::at(i)];
      if (!matrix.is_identity()) y = along_axis(b, y, i, matrix, is_nearest);
    }
  }
  if (inside != kAbsent) {
    const Id is_inside = compare(b, Op::GREATER, inside, b.scalar(ir::DataType::kFloat32, 0));
    const Id whole = broadcast_to(b, is_inside, dims_of(b.shape(y)));
    y = select(b, whole, y, b.filled(b.type(y), b.shape(y), m.outside));
  }
  return ctx.give(cast(b, y, type));
}

}  // namespace reef::import
