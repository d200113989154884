// SPDX-License-Identifier: Apache-2.0
// SOFTMAX: exp(beta * x) divided by its sum, along the last dimension.
//
// 8-bit tensors in fixed point, 16-bit ones by tables (see kernels/activation/softmax.h). Results cover the output's
// type from one end to the other, which fixes the output's quantization: scale 1/256 and the lowest number as zero
// point for 8 bits, 1/32768 and 0 for int16. For uint8 and for 8 bits to int16, TFLite takes that on trust, and so do
// we.
#include <fmt/format.h>
#include <cmath>
#include <cstdint>
#include <memory>

#include "kernels/activation/softmax.h"
#include "kernels/activation/softmax_bytes.h"
#include "ops/chip_rules.h"
#include "ops/op_def.h"
#include "ops/softmax_rows.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSoftmaxAttributes[] = {{"beta", "factor of the exponent; positive for quantized tensors"}};

Status require_output(const Tensor& output, float scale, std::int32_t zero_point) {
  REEF_ASSIGN_OR_RETURN(const QuantParams q, per_tensor_quantization(output, "output"));
  REEF_REQUIRE(std::abs(q.scale - scale) <= 0.001f * scale && q.zero_point == zero_point,
               "output '{}' has scale {} and zero point {}; SOFTMAX needs {} and {}", output.name, q.scale,
               q.zero_point, scale, zero_point);
  return ok_status();
}

template <typename In, typename Out>
Result<Kernel> softmax_8bit(const OpContext& ctx, float beta) {
  REEF_ASSIGN_OR_RETURN(const QuantParams input, per_tensor_quantization(ctx.input(0), "input"));
  if (ctx.output(0).type == DataType::kInt8) REEF_RETURN_IF_ERROR(require_output(ctx.output(0), 1.0f / 256, -128));
  const auto scaling = kernels::difference_scaling(beta, input.scale);
  REEF_REQUIRE(scaling.has_value(), "beta {} times the input's scale {} is too small or not a number", beta,
               input.scale);
  const auto table = std::make_shared<const kernels::SoftmaxByteTable>(*scaling);
  return softmax_kernel<In, Out>(
      [table](const In* in, kernels::Rows rows, Out* out) { return kernels::softmax_bytes(in, rows, *table, out); });
}

Result<Kernel> softmax_16bit(const OpContext& ctx, float beta) {
  REEF_RETURN_IF_ERROR(require_output(ctx.output(0), 1.0f / 32768, 0));
  REEF_ASSIGN_OR_RETURN(const QuantParams input, per_tensor_quantization(ctx.input(0), "input"));
  REEF_REQUIRE(input.zero_point == 0, "the input's zero point is {}; int16 needs 0", input.zero_point);
  REEF_REQUIRE(std::isfinite(beta) && beta >= 0, "beta is {}; it must be positive", beta);
  return softmax_kernel<std::int16_t, std::int16_t>([tables = kernels::softmax16_tables(input.scale, beta)](
                                                        const std::int16_t* in, kernels::Rows rows, std::int16_t* out) {
    return kernels::softmax_16bit(in, rows, tables, out);
  });
}

Result<Kernel> softmax_prepare(PrepareContext& ctx) {
  REEF_REQUIRE(ctx.input(0).shape.rank() >= 1, "the input is a scalar; SOFTMAX needs at least one dimension");
  const auto beta = static_cast<float>(ctx.attributes().get_float("beta"));
  const DataType from = ctx.input(0).type, to = ctx.output(0).type;
  if (from == to) {
    switch (from) {
      case DataType::kFloat32:
        return softmax_kernel<float, float>([beta](const float* in, kernels::Rows rows, float* out) {
          kernels::softmax(in, rows, beta, out);
          return true;
        });
      case DataType::kFloat16:
        return softmax_kernel<std::uint16_t, std::uint16_t>(
            [beta](const std::uint16_t* in, kernels::Rows rows, std::uint16_t* out) {
              kernels::softmax_half(in, rows, beta, out);
              return true;
            });
      case DataType::kInt8:
        return softmax_8bit<std::int8_t, std::int8_t>(ctx, beta);
      case DataType::kUInt8:
        return softmax_8bit<std::uint8_t, std::uint8_t>(ctx, beta);
      case DataType::kInt16:
        return softmax_16bit(ctx, beta);
      default:
        return unsupported_types(ctx);
    }
  }
  if (from == DataType::kInt8 && to == DataType::kInt16) return softmax_8bit<std::int8_t, std::int16_t>(ctx, beta);
  if (from == DataType::kUInt8 && to == DataType::kInt16) return softmax_8bit<std::uint8_t, std::int16_t>(ctx, beta);
  return unsupported_types(ctx);
}

constexpr std::int64_t kSoftmaxDeepestOnChip = 16384;

std::string has_rows(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  if (input.rank() == 0) return "";
  const std::int64_t rows = input.product(0, input.rank() - 1);
  return rows <= 1 ? "" : fmt::format("input is {}: {} rows", chip::shape_text(input), chip::number_text(rows));
}

std::string softmax_is_too_deep(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  if (input.rank() == 0 || input.last() <= kSoftmaxDeepestOnChip) return "";
  return fmt::format("input is {}: {} elements in a row", chip::shape_text(input), chip::number_text(input.last()));
}

constexpr ChipRule kSoftmaxChipRules[] = {
    {
        .id = "softmax-rows",
        .says = "The input is one row: only its innermost dimension is above 1.",
        .suggestion = "Compile for runtime 14, or leave the softmax to the CPU behind the model.",
        .broken = has_rows,
        .evidence = "Table 1, and edgetpu#27. Runtime 14 takes rows: 1x4x756x16 maps (YOLOv8 at 192 pixels).",
        .runtimes = {kOldestRuntime, 13},
        .rewrite = "split-rows",
    },
    {
        .id = "softmax-depth",
        .says = "At most 16,384 elements in a row.",
        .suggestion = "Leave the softmax to the CPU: end the model with the logits, whose order is the same.",
        .broken = softmax_is_too_deep,
        .source = RuleSource::kMeasured,
        .evidence = "Table 1 says 16,000; 1x16384 is seen mapped. Larger ones are not reported.",
    },
};

}  // namespace

constinit const OpDef softmax_op =
    define({.name = name_of(Op::SOFTMAX),
            .summary = "Exponentials normalized to a sum of 1 along the last dimension.",
            .attributes = kSoftmaxAttributes,
            .types = "float32; float16; int8 to int8 or int16; uint8 to uint8 or int16; int16",
            .traits = trait_set({Trait::kPerImage, Trait::kNeverNegative}),
            .infer = infer_same_shape,
            .prepare = softmax_prepare,
            .chip = {.first_runtime = 10, .rules = kSoftmaxChipRules}});

}  // namespace reef::ops
