// SPDX-License-Identifier: Apache-2.0
// DEQUANTIZE: the real numbers that quantized ones stand for, scale * (q - zero_point), or float16 as float32.
//
// 8 bits and fewer may be quantized per channel, int16 per tensor only.
#include <cstdint>

#include "numeric/half.h"
#include "numeric/packed.h"
#include "ops/channel_quantization.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

// element(data, i) reads the i-th integer.
template <typename Element>
Result<Kernel> dequantize_kernel(const OpContext& ctx, Element element) {
  REEF_ASSIGN_OR_RETURN(const ChannelQuantization q, channel_quantization(ctx.input(0), "input"));
  return Kernel([q, element](RunContext& run) {
    const std::byte* in = run.input(0).data;
    float* out = run.output(0).mutable_values<float>().data();
    run.parallel_for(run.input(0).elements(), kUnaryGrain, [&](std::int64_t from, std::int64_t to) {
      for_each_channel_run(q, from, to, [&](QuantParams params, std::int64_t begin, std::int64_t end) {
        const auto convert = [&] {
          for (std::int64_t i = begin; i < end; ++i) {
            out[i] = params.scale * static_cast<float>(element(in, i) - params.zero_point);
          }
        };
        constexpr std::int64_t kFew = 16;  // of channels that lie beside each other, one
        end - begin < kFew ? convert() : kernels::in_vectors(convert);
      });
    });
    return ok_status();
  });
}

template <typename T>
Result<Kernel> whole_bytes(const OpContext& ctx) {
  return dequantize_kernel(
      ctx, [](const std::byte* data, std::int64_t i) { return std::int32_t{reinterpret_cast<const T*>(data)[i]}; });
}

Result<Kernel> packed(const OpContext& ctx) {
  const DataType type = ctx.input(0).type;
  const numeric::PackedFormat format = {ir::bits_per_element(type), type != DataType::kUInt4};
  return dequantize_kernel(ctx, [format](const std::byte* data, std::int64_t i) {
    return numeric::packed_element(reinterpret_cast<const std::uint8_t*>(data), i, format);
  });
}

Result<Kernel> dequantize_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  switch (ctx.input(0).type) {
    case DataType::kInt8:
      return whole_bytes<std::int8_t>(ctx);
    case DataType::kUInt8:
      return whole_bytes<std::uint8_t>(ctx);
    case DataType::kInt16:
      REEF_REQUIRE(!ctx.input(0).quantization->is_per_axis(), "int16 cannot be dequantized per channel");
      return whole_bytes<std::int16_t>(ctx);
    case DataType::kInt4:
    case DataType::kUInt4:
    case DataType::kInt2:
      return packed(ctx);
    case DataType::kFloat16:
      return map_kernel<std::uint16_t, float>(numeric::half_to_float);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef dequantize_op = define(
    {.name = name_of(Op::DEQUANTIZE),
     .summary = "Quantized numbers (or float16) as float32.",
     .types =
         "int8, uint8, int4, uint4, int2 (per tensor or per channel) to float32; int16 to float32; float16 to float32",
     .form = Form::kUnary,
     .prepare = dequantize_prepare,
     .chip = {.instead =
                  "At the end of a model, give it 8-bit outputs (inference_output_type) and scale them where they are "
                  "used. In the middle, replace what stands behind it: the converter left that in floating point.",
              .rewrite = "io"}});

}  // namespace reef::ops
