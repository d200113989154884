// SPDX-License-Identifier: Apache-2.0
#include "ops/pad_family.h"

#include <cstring>
#include <limits>

#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/quantization_match.h"

namespace reef::ops {

Result<std::vector<std::int64_t>> paddings_of(const OpContext& ctx, int min_rank, bool small_too) {
  const Tensor& paddings = ctx.input(1);
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", min_rank, kMaxMovedRank));
  REEF_REQUIRE(paddings.shape == Shape({ctx.input(0).shape.rank(), 2}),
               "paddings ('{}') have shape {}; input '{}' of {} dimensions needs [{}, 2]", paddings.name,
               paddings.shape.to_string(), ctx.input(0).name, ctx.input(0).shape.rank(), ctx.input(0).shape.rank());
  REEF_ASSIGN_OR_RETURN(std::vector<std::int64_t> values, integers(paddings, "paddings", small_too));
  for (const std::int64_t value : values) {
    REEF_REQUIRE(value >= 0 && value <= std::numeric_limits<std::int32_t>::max(),
                 "paddings ('{}') contain {}; they must be 0 or more and fit 32 bits", paddings.name, value);
  }
  return values;
}

Result<Shape> padded_shape(const Shape& input, const std::vector<std::int64_t>& paddings) {
  std::vector<std::int64_t> dims(input.begin(), input.end());
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d] += paddings[2 * d] + paddings[2 * d + 1];
  return shape_from(dims);
}

namespace {

// PAD takes inputs without dimensions, and paddings of small types.
Result<std::vector<std::int64_t>> pad_paddings_of(const OpContext& ctx) {
  return paddings_of(ctx, 0, /*small_too=*/true);
}

Status pad_family_run(RunContext& ctx, PadElement element) {
  const Tensor& input = ctx.input(0);
  Tensor& output = ctx.output(0);
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> paddings, pad_paddings_of(ctx));
  REEF_ASSIGN_OR_RETURN(const Shape shape, padded_shape(input.shape, paddings));
  REEF_RETURN_IF_ERROR(require_output_shape(output, shape));
  if (output.elements() == 0) return ok_status();
  if (ctx.has_input(2)) std::memcpy(element.data(), ctx.input(2).data, static_cast<std::size_t>(bytes));
  if (input.elements() != output.elements()) {
    kernels::fill(ctx.environment()->threads(), output.data, output.elements(), element.data(),
                  static_cast<std::size_t>(bytes));
  }
  if (input.elements() == 0) return ok_status();
  const std::vector<std::int64_t> from = dense_strides(input.shape, bytes), to = dense_strides(shape, bytes);
  kernels::StridedCopy moves{.loops = {}, .run_bytes = bytes};
  for (std::size_t d = 0; d < from.size(); ++d) {
    moves.loops.push_back({input.shape[static_cast<int>(d)], from[d], to[d]});
    moves.to_offset += paddings[2 * d] * to[d];
  }
  copy(ctx, std::move(moves), input.data, output.data);
  return ok_status();
}

}  // namespace

Result<PadElement> zero_element(const Tensor& input, const Tensor& output) {
  PadElement element{};
  const bool is_quantized =
      output.type == DataType::kUInt8 ||
      ((output.type == DataType::kInt8 || output.type == DataType::kInt16) && input.quantization->is_quantized());
  if (!is_quantized) return element;
  const std::int64_t zero_point = effective_quantization(output).zero_point;
  const IntRange range = type_range(output.type);
  REEF_REQUIRE(zero_point >= range.min && zero_point <= range.max, "output '{}' has zero point {}, outside of its type",
               output.name, zero_point);
  // Little-endian two's complement, of which one or two bytes are used.
  element[0] = static_cast<std::byte>(zero_point & 0xFF);
  element[1] = static_cast<std::byte>((zero_point >> 8) & 0xFF);
  return element;
}

Status infer_pad(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> paddings, pad_paddings_of(ctx));
  REEF_ASSIGN_OR_RETURN(Shape shape, padded_shape(ctx.input(0).shape, paddings));
  return give_shape(ctx, std::move(shape));
}

Result<Kernel> prepare_pad(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  PadElement element{};
  if (ctx.has_input(2)) {
    const Tensor& value = ctx.input(2);
    REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), value));
    REEF_REQUIRE(value.elements() == 1, "the value to pad with ('{}') has shape {}; one element is needed", value.name,
                 value.shape.to_string());
    const bool is_8_bit = ir::is_integer_8(value.type);
    if ((is_8_bit || value.type == DataType::kInt16) && ctx.input(0).quantization->is_quantized()) {
      REEF_RETURN_IF_ERROR(require_same_quantization(value, ctx.output(0)));
    }
  } else {
    REEF_ASSIGN_OR_RETURN(element, zero_element(ctx.input(0), ctx.output(0)));
  }
  return Kernel([element](RunContext& run_ctx) { return pad_family_run(run_ctx, element); });
}

}  // namespace reef::ops
