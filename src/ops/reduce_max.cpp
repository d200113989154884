// SPDX-License-Identifier: Apache-2.0
// REDUCE_MAX: the largest elements along the given axes.
//
// Input and output must be quantized alike. NaN is never the result, except where everything is reduced to one element
// and the first input is NaN: TFLite's kernel starts from it then.
#include "ops/checks.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "int8", "uint8", "int16", "int32", "int64", "bool"};

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_reduce_without_rescaling(ctx));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return make_reduce_kernel<float, MaxFunction<float>>();
    case DataType::kInt8:
      return make_reduce_kernel<std::int8_t, MaxFunction<std::int8_t>>();
    case DataType::kUInt8:
      return make_reduce_kernel<std::uint8_t, MaxFunction<std::uint8_t>>();
    case DataType::kInt16:
      return make_reduce_kernel<std::int16_t, MaxFunction<std::int16_t>>();
    case DataType::kInt32:
      return make_reduce_kernel<std::int32_t, MaxFunction<std::int32_t>>();
    case DataType::kInt64:
      return make_reduce_kernel<std::int64_t, MaxFunction<std::int64_t>>();
    case DataType::kBool:
      return make_reduce_kernel<std::uint8_t, AnyFunction>();
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

extern const OpDef reduce_max_op;
constinit const OpDef reduce_max_op = define({.name = "REDUCE_MAX",
                                              .summary = "Takes the largest elements along axes.",
                                              .inputs = {2, 2},
                                              .attributes = kReduceAttributes,
                                              .types = kTypes,
                                              .infer = infer_reduce,
                                              .prepare = prepare});

}  // namespace reef::ops
