// SPDX-License-Identifier: Apache-2.0
// Nodes whose results follow from sizes: ranges, masks, windows of signal processing.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "import/onnx/converter.h"
#include "import/onnx/open_sizes.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 26;

}  // namespace

Status convert_range(NodeContext& ctx, GraphBuilder& b) {
  for (int i = 0; i < 3; ++i) {
    if (ctx.is_open(i)) return open_range(ctx);
  }
  const ir::DataType type = b.type(ctx.in(0));
  double start = 0, limit = 0, delta = 0;
  double* const targets[] = {&start, &limit, &delta};
  for (int i = 0; i < 3; ++i) {
    REEF_ASSIGN_OR_RETURN(const std::vector<float> value, ctx.floats(i));
    REEF_REQUIRE(value.size() == 1, "input {} has {} elements", i, value.size());
    *targets[i] = value[0];
    if (is_float(type)) continue;
    REEF_ASSIGN_OR_RETURN(const Dims exact, ctx.ints(i));
    *targets[i] = static_cast<double>(exact[0]);
  }
  REEF_REQUIRE(delta != 0 && std::isfinite(start) && std::isfinite(limit), "the range is from {} to {} by {}", start,
               limit, delta);
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  REEF_REQUIRE(count < static_cast<double>(kMost), "the range has {} elements", count);
  std::vector<float> reals;
  Dims whole;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    const double value = start + static_cast<double>(i) * delta;
    if (is_float(type)) {
      reals.push_back(static_cast<float>(value));
    } else {
      whole.push_back(static_cast<std::int64_t>(std::clamp(value, -9.2e18, 9.2e18)));
    }
  }
  const ir::Shape shape = {static_cast<std::int32_t>(count)};
  return ctx.give(is_float(type) ? b.floats(reals, shape) : cast(b, b.ints(whole, shape, ir::DataType::kInt64), type));
}

Status convert_eye_like(NodeContext& ctx, GraphBuilder& b) {
  const ir::Shape shape = b.shape(ctx.in(0));
  REEF_REQUIRE(shape.rank() == 2 && shape.elements() < kMost, "the input {} is no matrix", shape.to_string());
  Value value;
  value.type =
      ctx.has_attribute("dtype") ? static_cast<onnx::ElementType>(ctx.int_attribute("dtype", 1)) : ctx.value(0).type;
  const auto type = stored_type(value.type);
  if (!type) return unsupported("attribute dtype: {} is not converted", onnx::element_type_name(value.type));
  const std::int64_t k = std::clamp<std::int64_t>(ctx.int_attribute("k", 0), -kMost, kMost);
  std::vector<float> elements(static_cast<std::size_t>(shape.elements()), 0.0f);
  for (std::int64_t y = 0; y < shape[0]; ++y) {
    if (y + k >= 0 && y + k < shape[1]) elements[at(y * shape[1] + y + k)] = 1;
  }
  value.id = cast(b, b.floats(elements, shape), *type);
  return ctx.give(value);
}

// Keeps the upper or lower triangle of matrices.
Status convert_trilu(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const int rank = b.rank(x);
  REEF_REQUIRE(rank >= 2, "the input has {} dimensions", rank);
  REEF_REQUIRE(!ctx.has(1) || b.elements(ctx.in(1)) == 1, "input k has {} elements", b.elements(ctx.in(1)));
  const bool is_upper = ctx.int_attribute("upper", 1) != 0;
  const std::int64_t rows = b.dim(x, rank - 2), columns = b.dim(x, rank - 1);
  REEF_REQUIRE(rows * columns < kMost, "matrices of {} elements are too large", rows * columns);
  Dims diagonals;
  for (std::int64_t i = 0; i < rows * columns; ++i) diagonals.push_back(i % columns - i / columns);
  const Id k =
      ctx.has(1) ? cast(b, reshape(b, ctx.in(1), {}), ir::DataType::kInt32) : b.scalar(ir::DataType::kInt32, 0);
  const Id diagonal = b.ints(diagonals, shape_from({rows, columns}));
  const Id keeps = compare(b, is_upper ? Op::GREATER_EQUAL : Op::LESS_EQUAL, diagonal, k);
  const Id wide = widened(b, x);
  return ctx.give(cast(b, select(b, keeps, wide, b.scalar(b.type(wide), 0)), b.type(x)));
}

namespace {

// sum of coefficients[k] * cos(2 pi k n / size)
Status convert_window(NodeContext& ctx, const std::vector<double>& coefficients) {
  GraphBuilder& b = ctx.b;
  if (ctx.is_open(0)) return open_window(ctx, coefficients);
  REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(0));
  REEF_REQUIRE(given.size() == 1 && given[0] >= 0 && given[0] < kMost, "the size is not one number in range");
  const auto type = static_cast<onnx::ElementType>(ctx.int_attribute("output_datatype", 1));
  const auto stored = stored_type(type);
  if (!stored) return unsupported("attribute output_datatype: {} is not converted", onnx::element_type_name(type));
  const double length = static_cast<double>(ctx.int_attribute("periodic", 1) != 0 ? given[0] : given[0] - 1);
  std::vector<float> values;
  for (std::int64_t n = 0; n < given[0]; ++n) {
    double value = 0;
    for (std::size_t k = 0; k < coefficients.size(); ++k) {
      const double angle =
          length == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(k) * static_cast<double>(n) / length;
      value += coefficients[k] * std::cos(angle);
    }
    values.push_back(static_cast<float>(value));
  }
  const Id window = b.floats(values, {static_cast<std::int32_t>(values.size())});
  return ctx.give({cast(b, window, *stored), type, {}});
}

}  // namespace

Status convert_hann_window(NodeContext& ctx, GraphBuilder&) { return convert_window(ctx, {0.5, -0.5}); }
Status convert_hamming_window(NodeContext& ctx, GraphBuilder&) { return convert_window(ctx, {25.0 / 46, -21.0 / 46}); }
Status convert_blackman_window(NodeContext& ctx, GraphBuilder&) { return convert_window(ctx, {0.42, -0.5, 0.08}); }

Status convert_one_hot(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(b.elements(ctx.in(1)) == 1, "depth has {} elements", b.elements(ctx.in(1)));
  if (!ctx.is_open(1)) {
    REEF_ASSIGN_OR_RETURN(const std::vector<float> depths, ctx.floats(1));
    REEF_REQUIRE(depths[0] >= 1 && depths[0] < static_cast<float>(kMost), "depth is {}", depths[0]);
  }
  const Id depth = cast(b, reshape(b, ctx.in(1), {}), ir::DataType::kInt32);
  const Id indices = cast(b, ctx.in(0), ir::DataType::kInt32);
  const int rank = b.rank(indices) + 1;
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", -1), rank));
  REEF_REQUIRE(b.elements(ctx.in(2)) == 2, "values has {} elements; off and on are needed", b.elements(ctx.in(2)));
  // Numbers from -depth on count from the end; others beyond the range stay off.
  const Id is_negative = compare(b, Op::LESS, indices, b.scalar(ir::DataType::kInt32, 0));
  const Id from_start = select(b, is_negative, add(b, indices, depth), indices);
  const Id values = widened(b, ctx.in(2));
  const Id off = reshape(b, slice_axis(b, values, 0, 0, 1), {}), on = reshape(b, slice_axis(b, values, 0, 1, 1), {});
  ir::Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(axis == rank - 1 ? -1 : axis));
  const Id result = b.emit(Op::ONE_HOT, {from_start, depth, on, off}, b.type(values), std::move(attributes));
  return ctx.give({cast(b, result, b.type(ctx.in(2))), ctx.value(2).type, {}});
}

}  // namespace reef::import
