// SPDX-License-Identifier: Apache-2.0
// CAST: numbers as numbers of another type; quantization does not take part.
//
// Between integers the low bits are kept. From floating point to integers values are truncated and saturate, and NaN
// becomes the largest integer: TFLite does so since 2.20; before, it left those cases to the machine. float16 and
// bfloat16 go through float32. Packed 2- and 4-bit integers are cast from and to float32 only. Of a complex number the
// real part counts. String and uint64 tensors are not supported.
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "numeric/half.h"
#include "numeric/packed.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kCastAttributes[] = {{"in_data_type", "ignored: the input tensor's type counts"},
                                            {"out_data_type", "ignored: the output tensor's type counts"}};

// Element types whose bit pattern differs from their C++ arithmetic type.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t bits;
};

template <typename T>
auto number(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    return numeric::half_to_float(x.bits);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return numeric::bfloat16_to_float(x.bits);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return static_cast<std::uint8_t>(x.bits != 0);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return x.real();
  } else {
    return x;
  }
}

template <typename To, typename From>
To saturating_truncation(From x) {
  if (std::isnan(x)) return std::numeric_limits<To>::max();
  // 2^digits is the first number above the range and exact in any floating-point type; so is the lowest number.
  const From above = std::ldexp(From{1}, std::numeric_limits<To>::digits);
  if (x >= above) return std::numeric_limits<To>::max();
  if (x < static_cast<From>(std::numeric_limits<To>::lowest())) return std::numeric_limits<To>::lowest();
  return static_cast<To>(x);
}

template <typename To, typename From>
To converted(From from) {
  if constexpr (std::is_same_v<To, From> && std::is_same_v<To, std::complex<float>>) return from;
  const auto x = number(from);
  if constexpr (std::is_same_v<To, Half>) {
    return {numeric::float_to_half(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return {numeric::float_to_bfloat16(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<std::uint8_t>(x != 0)};
  } else if constexpr (std::is_same_v<To, std::complex<float>>) {
    return {static_cast<float>(x), 0.0f};
  } else if constexpr (std::is_floating_point_v<decltype(x)> && std::is_integral_v<To>) {
    return saturating_truncation<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// Calls visitor(T{}) with the C++ type of `type`; false if it has none here.
template <typename Visitor>
bool visit_type(DataType type, Visitor visitor) {
  switch (type) {
    case DataType::kBool:
      visitor(Bool{});
      return true;
    case DataType::kInt8:
      visitor(std::int8_t{});
      return true;
    case DataType::kUInt8:
      visitor(std::uint8_t{});
      return true;
    case DataType::kInt16:
      visitor(std::int16_t{});
      return true;
    case DataType::kUInt16:
      visitor(std::uint16_t{});
      return true;
    case DataType::kInt32:
      visitor(std::int32_t{});
      return true;
    case DataType::kUInt32:
      visitor(std::uint32_t{});
      return true;
    case DataType::kInt64:
      visitor(std::int64_t{});
      return true;
    case DataType::kFloat16:
      visitor(Half{});
      return true;
    case DataType::kBFloat16:
      visitor(BFloat16{});
      return true;
    case DataType::kFloat32:
      visitor(float{});
      return true;
    case DataType::kFloat64:
      visitor(double{});
      return true;
    case DataType::kComplex64:
      visitor(std::complex<float>{});
      return true;
    default:
      return false;
  }
}

Status unpack_to_float(RunContext& ctx, numeric::PackedFormat format) {
  const auto* in = reinterpret_cast<const std::uint8_t*>(ctx.input(0).data);
  float* out = ctx.output(0).mutable_values<float>().data();
  ctx.parallel_for(ctx.input(0).elements(), kUnaryGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = static_cast<float>(numeric::packed_element(in, i, format));
  });
  return ok_status();
}

// Truncated and saturated; NaN becomes the largest. Elements share bytes, so this is not split among threads.
Status pack_from_float(RunContext& ctx, numeric::PackedFormat format, IntRange range) {
  const float* in = ctx.input(0).values<float>().data();
  const std::int64_t count = ctx.input(0).elements();
  std::span<std::uint8_t> out = ctx.output(0).mutable_values<std::uint8_t>();
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  for (std::int64_t i = 0; i < count; ++i) {
    const float low = static_cast<float>(range.min), high = static_cast<float>(range.max);
    const float limited = in[i] < high ? (in[i] > low ? in[i] : low) : high;
    numeric::set_packed_element(out.data(), i, format, static_cast<std::int32_t>(limited));
  }
  return ok_status();
}

// Types that networks convert between all the time: their loops are compiled for several CPUs.
template <typename T>
inline constexpr bool is_common = std::is_same_v<T, float> || std::is_same_v<T, std::uint8_t> ||
                                  std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::int32_t>;

template <typename From, typename To>
Kernel cast_kernel() {
  if constexpr (is_common<From> && is_common<To>) {
    return map_kernel<From, To>([](From x) { return converted<To>(x); });
  }
  return [](RunContext& ctx) {
    const From* in = ctx.input(0).values<From>().data();
    To* out = ctx.output(0).mutable_values<To>().data();
    ctx.parallel_for(ctx.input(0).elements(), kUnaryGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = converted<To>(in[i]);
    });
    return ok_status();
  };
}

Result<Kernel> cast_prepare(PrepareContext& ctx) {
  const DataType from = ctx.input(0).type, to = ctx.output(0).type;
  if (ir::is_packed(from) && to == DataType::kFloat32) {
    const numeric::PackedFormat format = {ir::bits_per_element(from), from != DataType::kUInt4};
    return Kernel([format](RunContext& run) { return unpack_to_float(run, format); });
  }
  if (ir::is_packed(to) && from == DataType::kFloat32) {
    const numeric::PackedFormat format = {ir::bits_per_element(to), to != DataType::kUInt4};
    return Kernel([format, range = type_range(to)](RunContext& run) { return pack_from_float(run, format, range); });
  }
  Kernel kernel;
  visit_type(from,
             [&]<typename From>(From) { visit_type(to, [&]<typename To>(To) { kernel = cast_kernel<From, To>(); }); });
  if (!kernel) return unsupported_types(ctx);
  return kernel;
}

}  // namespace

constinit const OpDef cast_op =
    define({.name = name_of(Op::CAST),
            .summary = "Converts numbers to another type.",
            .attributes = kCastAttributes,
            .types = "any of bool, int8 to int64, uint8 to uint32, float16, bfloat16, float32, float64, complex64; "
                     "int4, uint4, int2 from and to float32",
            .form = Form::kUnary,
            .prepare = cast_prepare,
            .chip = {.instead = "Give the model 8-bit inputs and outputs, so that nothing is left to convert.",
                     .rewrite = "io"}});

}  // namespace reef::ops
