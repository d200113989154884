// SPDX-License-Identifier: Apache-2.0
// CUMSUM: running sums along an axis. Integers wrap around.
#include <algorithm>

#include "ir/op.h"
#include "ops/checks.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kCumsumAttributes[] = {{"exclusive", "an element is not part of its own sum"},
                                              {"reverse", "sum from the end towards the beginning"}};

// One slice of [along, inner]: each row of the output is the one before it plus a row of the input.
template <typename T>
void run_slice(const T* input, T* output, std::int64_t along, std::int64_t inner, bool exclusive, bool reverse) {
  const std::int64_t step = reverse ? -inner : inner;
  const std::int64_t start = reverse ? (along - 1) * inner : 0;
  for (std::int64_t i = 0; i < along; ++i) {
    const std::int64_t at = start + i * step;
    const std::int64_t addend = exclusive ? at - step : at;
    for (std::int64_t j = 0; j < inner; ++j) {
      if (i == 0) {
        output[at + j] = exclusive ? T{0} : numeric::wrapping_sum(T{0}, input[at + j]);
      } else {
        output[at + j] = numeric::wrapping_sum(output[at - step + j], input[addend + j]);
      }
    }
  }
}

template <typename T>
Status cumsum_run(RunContext& ctx, bool exclusive, bool reverse) {
  const Shape& shape = ctx.input(0).shape;
  REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(ctx.input(1).values<std::int32_t>()[0], shape.rank()));
  if (shape.elements() == 0) return ok_status();
  const std::int64_t outer = shape.product(0, axis), along = shape[axis], inner = shape.product(axis + 1, shape.rank());
  const T* input = ctx.input(0).values<T>().data();
  T* output = ctx.output(0).mutable_values<T>().data();
  const std::int64_t slice = along * inner;
  ctx.parallel_for(outer, std::max<std::int64_t>(1, (1 << 15) / slice), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      run_slice(input + i * slice, output + i * slice, along, inner, exclusive, reverse);
    }
  });
  return ok_status();
}

template <typename T>
Kernel cumsum_make_kernel(const ir::Attributes& attributes) {
  return [exclusive = attributes.get_bool("exclusive"), reverse = attributes.get_bool("reverse")](RunContext& ctx) {
    return cumsum_run<T>(ctx, exclusive, reverse);
  };
}

Result<Kernel> cumsum_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "axis", {DataType::kInt32}));
  REEF_REQUIRE(ctx.input(1).elements() == 1, "axis ('{}') must have one element", ctx.input(1).name);
  REEF_REQUIRE(ctx.input(0).shape.rank() >= 1, "input ('{}') is a scalar; it has no axis", ctx.input(0).name);
  return for_element_type<float, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, [&]<typename T>() { return cumsum_make_kernel<T>(ctx.attributes()); });
}

}  // namespace

constinit const OpDef cumsum_op =
    define({.name = name_of(Op::CUMSUM),
            .summary = "Takes running sums along an axis.",
            .inputs = {2, 2},
            .attributes = kCumsumAttributes,
            .types = "float32; int32; int64",
            .infer = infer_same_shape,
            .prepare = cumsum_prepare,
            .chip = {.instead = "Use a FULLY_CONNECTED or CONV_2D with a triangular matrix of ones."}});

}  // namespace reef::ops
