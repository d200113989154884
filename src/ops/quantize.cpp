// SPDX-License-Identifier: Apache-2.0
// QUANTIZE: float32 to quantized numbers, or quantized numbers at another scale or of another type.
//
// From float: round(x / scale), halves away from zero, plus the zero point, saturated. Quotients beyond 32 bits and NaN
// come out as the machine's conversion leaves them (INT32_MIN before the zero point is added), as in TFLite on x86.
// Between integers: one fixed-point multiplication, as in TFLite.
#include <fmt/format.h>
#include <cmath>
#include <cstdint>

#include "kernels/elementwise/quantize.h"
#include "numeric/fixed_point.h"
#include "numeric/packed.h"
#include "ops/channel_quantization.h"
#include "ops/chip_rules.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

std::int32_t quantized(float x, QuantParams q) {
  return numeric::wrapping_add(numeric::truncate_to_int32(std::round(x / q.scale)), q.zero_point);
}

template <typename T>
Result<Kernel> from_float(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const ChannelQuantization q, channel_quantization(ctx.output(0), "output"));
  return Kernel([q](RunContext& run) {
    const float* in = run.input(0).values<float>().data();
    T* out = run.output(0).mutable_values<T>().data();
    run.parallel_for(run.input(0).elements(), kUnaryGrain, [&](std::int64_t from, std::int64_t to) {
      for_each_channel_run(q, from, to, [&](QuantParams params, std::int64_t begin, std::int64_t end) {
        kernels::quantize_to(in + begin, end - begin, params.scale, params.zero_point, out + begin);
      });
    });
    return ok_status();
  });
}

Result<Kernel> from_float_to_int4(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const QuantParams q, per_tensor_quantization(ctx.output(0), "output"));
  return Kernel([q](RunContext& run) {
    const float* in = run.input(0).values<float>().data();
    const auto out = run.output(0).mutable_values<std::uint8_t>();
    std::fill(out.begin(), out.end(), std::uint8_t{0});
    for (std::int64_t i = 0; i < run.input(0).elements(); ++i) {  // two elements share a byte: not for threads
      numeric::set_packed_element(out.data(), i, {}, numeric::clamp(quantized(in[i], q), -8, 7));
    }
    return ok_status();
  });
}

template <typename In, typename Out>
Result<Kernel> quantize_requantize(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  if constexpr (sizeof(In) == 2 && sizeof(Out) == 2) REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  const numeric::Multiplier factor =
      numeric::make_multiplier(static_cast<double>(q.input.scale) / static_cast<double>(q.output.scale));
  return map_kernel<In, Out>([=](In x) {
    const std::int32_t centred = numeric::wrapping_sub(x, q.input.zero_point);
    return numeric::saturate<Out>(numeric::wrapping_add(numeric::multiply(centred, factor), q.output.zero_point));
  });
}

// A kernel from `In` if the output's type is among `Outs`.
template <typename In, typename... Outs>
Result<Kernel> requantize_to(const OpContext& ctx) {
  Result<Kernel> result = unsupported_types(ctx);
  ((ctx.output(0).type == ir::data_type_of<Outs> ? void(result = quantize_requantize<In, Outs>(ctx)) : void()), ...);
  return result;
}

Result<Kernel> quantize_prepare(PrepareContext& ctx) {
  switch (ctx.input(0).type) {
    case DataType::kInt8:
      return requantize_to<std::int8_t, std::int8_t, std::uint8_t, std::int16_t>(ctx);
    case DataType::kUInt8:
      return requantize_to<std::uint8_t, std::int8_t, std::uint8_t, std::int16_t>(ctx);
    case DataType::kInt16:
      return requantize_to<std::int16_t, std::int8_t, std::int16_t, std::int32_t>(ctx);
    case DataType::kInt32:
      return requantize_to<std::int32_t, std::int8_t, std::int16_t>(ctx);
    case DataType::kFloat32:
      break;
    default:
      return unsupported_types(ctx);
  }
  switch (ctx.output(0).type) {
    case DataType::kInt8:
      return from_float<std::int8_t>(ctx);
    case DataType::kUInt8:
      return from_float<std::uint8_t>(ctx);
    case DataType::kInt16:
      return from_float<std::int16_t>(ctx);
    case DataType::kInt4:
      return from_float_to_int4(ctx);
    default:
      return unsupported_types(ctx);
  }
}

std::string reads_float(const OpContext& ctx) {
  const DataType type = ctx.input(0).type;
  if (type != DataType::kFloat32 && type != DataType::kFloat16 && type != DataType::kBFloat16) return "";
  return fmt::format("input 0 ('{}') is {}", ctx.input(0).name, ir::type_name(type));
}

constexpr ChipRule kQuantizeChipRules[] = {{
    .id = "quantize-float",
    .says = "It converts between 8-bit types; floats are quantized by the CPU.",
    .suggestion =
        "At the beginning of a model, give it 8-bit inputs (inference_input_type). In the middle, replace what "
        "stands before it: the converter left that in floating point.",
    .broken = reads_float,
    .source = RuleSource::kMeasured,
    .evidence = "Left at the beginning of models with float inputs, as Coral's model requirements say; the status is "
                "that of users' logs.",
    .rewrite = "io",
}};

}  // namespace

constinit const OpDef quantize_op =
    define({.name = name_of(Op::QUANTIZE),
            .summary = "Quantizes float32, or requantizes integers.",
            .types = "float32 to int8, uint8, int16 (per tensor or per channel); float32 to int4; int8, uint8 to int8, "
                     "uint8, int16; int16 to int8, int16, int32; int32 to int8, int16",
            .form = Form::kUnary,
            .prepare = quantize_prepare,
            .chip = {.first_runtime = 12, .rules = kQuantizeChipRules, .evidence = chip::kStamped12}});

}  // namespace reef::ops
