// SPDX-License-Identifier: Apache-2.0
#include "ops/checks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "numeric/fixed_point.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr std::string_view kActivationAttribute = "fused_activation_function";
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Status unsupported_activation(std::string_view name) {
  return unsupported(
      "fused activation {} is not supported here; use NONE, RELU, RELU6 or RELU_N1_TO_1, or a separate op", name);
}

// Real limits of a fused activation.
Result<FloatRange> activation_limits(std::string_view name) {
  if (name == "NONE") return FloatRange{-kInfinity, kInfinity};
  if (name == "RELU") return FloatRange{0, kInfinity};
  if (name == "RELU6") return FloatRange{0, 6};
  if (name == "RELU_N1_TO_1") return FloatRange{-1, 1};
  return unsupported_activation(name);
}

}  // namespace

Status require_type(const Tensor& tensor, std::string_view role, std::initializer_list<DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), tensor.type) != allowed.end()) return ok_status();
  std::string names;
  std::size_t i = 0;
  for (const DataType type : allowed) {
    if (i > 0) names += i + 1 == allowed.size() ? " or " : ", ";
    names += ir::type_name(type);
    ++i;
  }
  return unsupported("{} ('{}') is {}; {} is needed", role, tensor.name, ir::type_name(tensor.type), names);
}

Status require_same_type(const Tensor& a, const Tensor& b) {
  if (a.type == b.type) return ok_status();
  return invalid_input("'{}' is {} but '{}' is {}; they must have the same type", a.name, ir::type_name(a.type), b.name,
                       ir::type_name(b.type));
}

Status require_rank(const Tensor& tensor, std::string_view role, int min_rank, int max_rank) {
  if (tensor.shape.rank() >= min_rank && tensor.shape.rank() <= max_rank) return ok_status();
  if (min_rank == max_rank) {
    return invalid_input("{} ('{}') has shape {}; {} dimensions are needed", role, tensor.name,
                         tensor.shape.to_string(), min_rank);
  }
  return invalid_input("{} ('{}') has shape {}; {} to {} dimensions are needed", role, tensor.name,
                       tensor.shape.to_string(), min_rank, max_rank);
}

Status unsupported_types(const OpContext& ctx) {
  std::string names;
  for (int i = 0; i < ctx.input_count(); ++i) {
    names += fmt::format("{}{}", i ? ", " : "", ctx.has_input(i) ? ir::type_name(ctx.input(i).type) : "none");
  }
  names += " ->";
  for (int i = 0; i < ctx.output_count(); ++i) {
    names += fmt::format("{} {}", i ? "," : "", ir::type_name(ctx.output(i).type));
  }
  return unsupported("no kernel for types ({})", names);
}

IntRange type_range(DataType type) {
  switch (type) {
    case DataType::kInt4:
      return {-8, 7};
    case DataType::kInt2:
      return {-2, 1};
    case DataType::kUInt4:
      return {0, 15};
    case DataType::kInt8:
      return {-128, 127};
    case DataType::kUInt8:
      return {0, 255};
    case DataType::kInt16:
      return {-32768, 32767};
    case DataType::kUInt16:
      return {0, 65535};
    default:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  }
}

Result<QuantParams> per_tensor_quantization(const Tensor& tensor, std::string_view role) {
  const ir::Quantization& q = *tensor.quantization;
  REEF_REQUIRE(q.scale.size() == 1 && q.zero_point.size() <= 1,
               "{} ('{}') needs per-tensor quantization, but has {} scales and {} zero points", role, tensor.name,
               q.scale.size(), q.zero_point.size());
  REEF_REQUIRE(std::isfinite(q.scale[0]) && q.scale[0] > 0, "{} ('{}') has scale {}; it must be positive and finite",
               role, tensor.name, q.scale[0]);
  const std::int64_t zero_point = q.zero_point.empty() ? 0 : q.zero_point[0];
  const IntRange range = type_range(tensor.type);
  REEF_REQUIRE(zero_point >= range.min && zero_point <= range.max, "{} ('{}') has zero point {}, outside of {}'s range",
               role, tensor.name, zero_point, ir::type_name(tensor.type));
  return QuantParams{q.scale[0], static_cast<std::int32_t>(zero_point)};
}

Result<std::vector<float>> channel_scales(const Tensor& weights, int axis) {
  const ir::Quantization& q = *weights.quantization;
  const auto channels = static_cast<std::size_t>(weights.shape[axis]);
  REEF_REQUIRE(q.scale.size() == 1 || q.scale.size() == channels,
               "weights ('{}') have {} scales for {} channels; one, or one per channel, is needed", weights.name,
               q.scale.size(), channels);
  REEF_REQUIRE(q.scale.size() == 1 || q.dimension == axis,
               "weights ('{}') are quantized along dimension {}; dimension {} is needed", weights.name, q.dimension,
               axis);
  for (const float scale : q.scale) {
    REEF_REQUIRE(std::isfinite(scale) && scale > 0, "weights ('{}') have scale {}; it must be positive and finite",
                 weights.name, scale);
  }
  return q.scale.size() == channels ? q.scale : std::vector<float>(channels, q.scale[0]);
}

Result<IntRange> quantized_activation_range(const ir::Attributes& attributes, const Tensor& output) {
  REEF_ASSIGN_OR_RETURN(const FloatRange limits, activation_limits(attributes.get_enum(kActivationAttribute, "NONE")));
  IntRange range = type_range(output.type);
  if (limits.min == -kInfinity && limits.max == kInfinity) return range;
  REEF_ASSIGN_OR_RETURN(const QuantParams q, per_tensor_quantization(output, "output"));
  const auto quantize = [&](float real) {
    return numeric::round_to_int32(static_cast<double>(q.zero_point) + std::round(real / q.scale));
  };
  if (limits.min != -kInfinity) range.min = std::max(range.min, quantize(limits.min));
  if (limits.max != kInfinity) range.max = std::min(range.max, quantize(limits.max));
  return range;
}

Result<FloatRange> float_activation_range(const ir::Attributes& attributes) {
  REEF_ASSIGN_OR_RETURN(FloatRange limits, activation_limits(attributes.get_enum(kActivationAttribute, "NONE")));
  // TFLite clamps to the finite range even without an activation, which turns infinities into the largest float.
  limits.min = std::max(limits.min, std::numeric_limits<float>::lowest());
  limits.max = std::min(limits.max, std::numeric_limits<float>::max());
  return limits;
}

Result<Range<std::int64_t>> integer_activation_range(const ir::Attributes& attributes, std::int64_t lowest,
                                                     std::int64_t highest) {
  REEF_ASSIGN_OR_RETURN(const FloatRange limits, activation_limits(attributes.get_enum(kActivationAttribute, "NONE")));
  return Range<std::int64_t>{limits.min == -kInfinity ? lowest : static_cast<std::int64_t>(limits.min),
                             limits.max == kInfinity ? highest : static_cast<std::int64_t>(limits.max)};
}

Result<int> normalize_axis(std::int64_t axis, int rank) {
  REEF_REQUIRE(axis >= -rank && axis < rank, "axis {} does not exist in a tensor of {} dimensions", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int32_t> dims(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const std::int32_t x = i < a.rank() ? a.last(i) : 1;
    const std::int32_t y = i < b.rank() ? b.last(i) : 1;
    REEF_REQUIRE(x == y || x == 1 || y == 1, "shapes {} and {} cannot be broadcast together", a.to_string(),
                 b.to_string());
    dims[at(rank - 1 - i)] = x == 1 ? y : x;
  }
  return Shape(std::move(dims));
}

Status infer_same_shape(InferContext& ctx) { return give_shape(ctx, ctx.input(0).shape); }

Status check_shape(const Shape& shape) {
  REEF_REQUIRE(shape.is_usable(), "shape {} is negative or has more than 2^31 - 1 elements", shape.to_string());
  return ok_status();
}

}  // namespace reef::ops
