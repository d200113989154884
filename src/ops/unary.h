// SPDX-License-Identifier: Apache-2.0
// Shared by ops that map one tensor to another of the same shape, element by element.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/status.h"
#include "kernels/elementwise/byte_table.h"
#include "kernels/simd/loops.h"
#include "numeric/half.h"
#include "numeric/lookup_table.h"
#include "ops/checks.h"
#include "ops/op_context.h"

namespace reef::ops {

// Elements a thread takes at a time: a table lookup an element gives tens of microseconds, an exponential hundreds.
inline constexpr std::int64_t kUnaryGrain = 1 << 14;

template <typename T>
inline constexpr bool is_byte = std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t>;

// out[i] = table[in[i]], as bytes.
Kernel byte_table_kernel(const kernels::ByteTable& table);

// out[i] = function(in[i]); by table where both have 8 bits.
template <typename In, typename Out, typename Function>
Kernel map_kernel(Function function) {
  if constexpr (is_byte<In> && is_byte<Out>) {
    kernels::ByteTable table;
    for (int i = 0; i < 256; ++i) {
      const auto value = static_cast<Out>(function(static_cast<In>(i)));
      table[at(i)] = static_cast<std::uint8_t>(value);
    }
    return byte_table_kernel(table);
  }
  return [function](RunContext& ctx) {
    const In* in = ctx.input(0).values<In>().data();
    Out* out = ctx.output(0).mutable_values<Out>().data();
    ctx.parallel_for(ctx.input(0).elements(), kUnaryGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels::in_vectors([&] {
        REEF_INDEPENDENT
        for (std::int64_t i = begin; i < end; ++i) out[i] = function(in[i]);
      });
    });
    return ok_status();
  };
}

// out = map(in) for floats, as kernels/elementwise/float_functions.h has them.
Kernel float_function_kernel(void (*map)(const float*, std::int64_t, float*));

// float16 in and out, computed in float32 and rounded once.
template <typename Function>
Kernel half_kernel(Function function) {
  return map_kernel<std::uint16_t, std::uint16_t>(
      [function](std::uint16_t x) { return numeric::float_to_half(function(numeric::half_to_float(x))); });
}

// For ops of float32 (and float16 where `halves`) only: checks the types.
template <typename Function>
Result<Kernel> prepare_float_map(PrepareContext& ctx, bool halves, Function function) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  if (ctx.input(0).type == DataType::kFloat32) return map_kernel<float, float>(function);
  if (halves && ctx.input(0).type == DataType::kFloat16) return half_kernel(function);
  return unsupported_types(ctx);
}

// Quantization of the input and the output, both per tensor.
struct UnaryQuantization {
  QuantParams input, output;
};
Result<UnaryQuantization> unary_quantization(const OpContext& ctx);

inline numeric::Affine affine(QuantParams q) { return {q.scale, q.zero_point}; }

// int16 is symmetric in TFLite's kernels.
Status require_zero_zero_points(const UnaryQuantization& q);

// A quantized function by table; `T` is int8_t or uint8_t and the type of input and output.
template <typename T, typename Function>
Result<Kernel> table8_kernel(const OpContext& ctx, Function function) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  const auto table = numeric::make_table8<T>(affine(q.input), affine(q.output), function);
  return map_kernel<T, T>([table](T x) { return table[static_cast<std::uint8_t>(x)]; });
}

// The same for int16, by interpolation.
template <typename Function>
Result<Kernel> table16_kernel(const OpContext& ctx, Function function) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  const auto table =
      numeric::make_table16<float>(q.input.scale, q.input.zero_point, q.output.scale, q.output.zero_point, function);
  return map_kernel<std::int16_t, std::int16_t>([table](std::int16_t x) { return numeric::look_up(x, table); });
}

// RELU and its kin: clamps to real limits (`high` may be infinite) while requantizing. float32, int8, uint8 and, where
// `int16_too`, int16.
struct ReluRange {
  float low = 0;
  float high = 0;
  bool int16_too = false;
};
Result<Kernel> prepare_relu(PrepareContext& ctx, ReluRange range);

}  // namespace reef::ops
