// SPDX-License-Identifier: Apache-2.0
// CONCATENATION: joins tensors along one dimension.
//
// Elements are moved as they are, with one exception: a uint8 input whose quantization differs from the output's is
// requantized, in float as TFLite's reference kernel does it. int8 and int16 must be quantized alike.
#include <fmt/format.h>
#include <array>
#include <cmath>
#include <limits>

#include "numeric/fixed_point.h"
#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/quantization_match.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kConcatenationAttributes[] = {{"axis", "dimension to join along; negative counts from the end"},
                                                     {"fused_activation_function", "NONE only"}};

// Scalars are joined like vectors of one element.
Shape at_least_1d(const Shape& shape) { return shape.rank() == 0 ? Shape{1} : shape; }

Result<int> concatenation_axis_of(const OpContext& ctx) {
  return normalize_axis(ctx.attributes().get_int("axis"), at_least_1d(ctx.input(0).shape).rank());
}

Status concatenation_infer(InferContext& ctx) {
  const Shape first = at_least_1d(ctx.input(0).shape);
  REEF_ASSIGN_OR_RETURN(const int axis, concatenation_axis_of(ctx));
  std::int64_t joined = first[axis];
  for (int i = 1; i < ctx.input_count(); ++i) {
    REEF_REQUIRE(ctx.has_input(i), "input {} is left out", i);
    Shape shape = at_least_1d(ctx.input(i).shape);
    const bool fits = ctx.input(i).shape.rank() == ctx.input(0).shape.rank();
    if (fits) {
      joined += shape[axis];
      shape[axis] = first[axis];
    }
    REEF_REQUIRE(fits && shape == first, "shapes {} and {} cannot be joined along dimension {}",
                 ctx.input(0).shape.to_string(), ctx.input(i).shape.to_string(), axis);
  }
  REEF_REQUIRE(joined <= std::numeric_limits<std::int32_t>::max(), "the result would have size {} along dimension {}",
               joined, axis);
  Shape result = first;
  result[axis] = static_cast<std::int32_t>(joined);
  return give_shape(ctx, std::move(result));
}

using Table = std::array<std::uint8_t, 256>;

// Every value of a uint8 input in the output's quantization.
Result<Table> requantization_table(const Tensor& input, const Tensor& output) {
  REEF_ASSIGN_OR_RETURN(const QuantParams from, per_tensor_quantization(input, "input"));
  REEF_ASSIGN_OR_RETURN(const QuantParams to, per_tensor_quantization(output, "output"));
  const float inverse_output_scale = 1.0f / to.scale;
  const float scale = from.scale * inverse_output_scale;
  const float bias = static_cast<float>(-from.zero_point) * scale;
  Table table;
  for (std::size_t q = 0; q < table.size(); ++q) {
    const std::int64_t value = numeric::round_to_int32(std::round(static_cast<float>(q) * scale + bias));
    table[q] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value + to.zero_point, 0, 255));
  }
  return table;
}

void concatenation_requantize(RunContext& ctx, const Table& table, std::int64_t rows, std::int64_t row_bytes,
                              std::int64_t to_stride, const std::uint8_t* from, std::uint8_t* to) {
  ctx.parallel_for(rows, std::max<std::int64_t>(1, 65536 / row_bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t i = 0; i < row_bytes; ++i) to[row * to_stride + i] = table[from[row * row_bytes + i]];
    }
  });
}

Status concatenation_run(RunContext& ctx, int axis, const std::vector<Table>& tables) {
  Tensor& output = ctx.output(0);
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(output, "output"));
  if (output.elements() == 0) return ok_status();
  const std::int64_t rows = output.shape.product(0, axis);
  const std::int64_t inner_bytes = output.shape.product(axis + 1, output.shape.rank()) * bytes;
  const std::int64_t to_stride = output.shape[axis] * inner_bytes;
  std::byte* to = output.data;
  for (int i = 0; i < ctx.input_count(); ++i) {
    const Tensor& input = ctx.input(i);
    const std::int64_t row_bytes = at_least_1d(input.shape)[axis] * inner_bytes;
    if (row_bytes == 0) continue;
    if (tables.empty() || has_same_quantization(input, output)) {
      copy(ctx, {.loops = {{rows, row_bytes, to_stride}}, .run_bytes = row_bytes}, input.data, to);
    } else {
      concatenation_requantize(ctx, tables[at(i)], rows, row_bytes, to_stride,
                               reinterpret_cast<const std::uint8_t*>(input.data), reinterpret_cast<std::uint8_t*>(to));
    }
    to += row_bytes;
  }
  return ok_status();
}

Status concatenation_check_operand(const Tensor& input, const Tensor& output) {
  REEF_RETURN_IF_ERROR(check_moved(input, output));
  if (input.type == DataType::kInt8) return require_same_quantization(input, output);
  if (input.type == DataType::kInt16) {
    REEF_REQUIRE(effective_quantization(input).zero_point == 0 && effective_quantization(output).zero_point == 0,
                 "zero points of int16 tensors must be 0; that of '{}' or '{}' is not", input.name, output.name);
  }
  return ok_status();
}

Result<Kernel> concatenation_prepare(PrepareContext& ctx) {
  const Tensor& output = ctx.output(0);
  const std::string_view activation = ctx.attributes().get_enum("fused_activation_function", "NONE");
  if (activation != "NONE")
    return unsupported("fused activation {} is not supported here; use a separate op", activation);
  REEF_ASSIGN_OR_RETURN(const int axis, concatenation_axis_of(ctx));
  bool needs_tables = false;
  for (int i = 0; i < ctx.input_count(); ++i) {
    REEF_RETURN_IF_ERROR(concatenation_check_operand(ctx.input(i), output));
    needs_tables |= output.type == DataType::kUInt8 && !has_same_quantization(ctx.input(i), output);
  }
  std::vector<Table> tables(needs_tables ? static_cast<std::size_t>(ctx.input_count()) : 0);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const Tensor& input = ctx.input(static_cast<int>(i));
    if (has_same_quantization(input, output)) continue;
    REEF_ASSIGN_OR_RETURN(tables[i], requantization_table(input, output));
  }
  return Kernel(
      [axis, tables = std::move(tables)](RunContext& run_ctx) { return concatenation_run(run_ctx, axis, tables); });
}

// Widest result of joining along the innermost dimension: between 2,048 channels, which map, and 8,400, which do not.
constexpr std::int64_t kConcatenationWidestOnChip = 4096;

bool is_all_zero(const Tensor& tensor) {
  // A quantized zero is the zero point.
  const auto& zero_points = tensor.quantization->zero_point;
  const auto zero = static_cast<std::uint8_t>(zero_points.empty() ? 0 : zero_points.front());
  for (std::size_t i = 0; i < tensor.bytes; ++i) {
    if (static_cast<std::uint8_t>(tensor.data[i]) != zero) return false;
  }
  return true;
}

std::string joins_constant(const OpContext& ctx) {
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i) || !ctx.input(i).is_constant) continue;
    if (ctx.input_count() != 2) {
      return fmt::format("input {} ('{}') is a constant among {} inputs", i, ctx.input(i).name, ctx.input_count());
    }
    if (!is_all_zero(ctx.input(i))) {
      return fmt::format("input {} ('{}') is a constant that is not all zeros", i, ctx.input(i).name);
    }
  }
  return "";
}

std::string joins_too_wide(const OpContext& ctx) {
  const Shape& output = ctx.output(0).shape;
  const std::int64_t axis = ctx.attributes().get_int("axis");
  if (output.rank() == 0 || (axis != -1 && axis != output.rank() - 1) || output.last() <= kConcatenationWidestOnChip)
    return "";
  return fmt::format("output is {}: {} along the joined dimension", chip::shape_text(output),
                     chip::number_text(output.last()));
}

constexpr ChipRule kConcatenationChipRules[] = {
    chip::kNoFusedActivation,
    {
        .id = "concatenation-constant",
        .says = "A constant is joined only with one other tensor, and is all zeros.",
        .suggestion = "Replace constant zeros by PAD, and join other constants behind the part for the chip.",
        .broken = joins_constant,
        .evidence = "Table 1",
        .rewrite = "joined-constants",
    },
    {
        .id = "concatenation-width",
        .says = "Joining along the innermost dimension gives at most 4,096 elements along it.",
        .suggestion = "Keep the parts as separate outputs, or join along a dimension further out.",
        .broken = joins_too_wide,
        .source = RuleSource::kMeasured,
        .evidence = "2,048 channels map; 1x144x8400 (YOLOv8 at 640 pixels) and 1x14580 (edgetpu#663) do not. Where the "
                    "limit lies between them is not known.",
        .rewrite = "yolo-head",
    },
};

}  // namespace

constinit const OpDef concatenation_op = define({.name = name_of(Op::CONCATENATION),
                                                 .summary = "Joins tensors along one dimension.",
                                                 .inputs = {1, kAnyNumber},
                                                 .attributes = kConcatenationAttributes,
                                                 .types = kWholeByteTypes,
                                                 .form = Form::kMove,
                                                 .traits = trait_set({Trait::kCopiesOperands}),
                                                 .infer = concatenation_infer,
                                                 .prepare = concatenation_prepare,
                                                 .chip = {.first_runtime = 10, .rules = kConcatenationChipRules}});

}  // namespace reef::ops
