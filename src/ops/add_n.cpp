// SPDX-License-Identifier: Apache-2.0
// ADD_N: element-wise sum of two or more tensors of one shape, added from the first to the last.
//
// Every partial sum of floats is limited to the finite range, as in TFLite; int32 wraps.
#include <algorithm>
#include <limits>

#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr Range<float> kFinite = {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};

Status add_n_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, ctx.input_count()));
  for (int i = 1; i < ctx.input_count(); ++i) {
    REEF_REQUIRE(ctx.input(i).shape == ctx.input(0).shape,
                 "input {} has shape {}, but input 0 has {}; they must be equal", i, ctx.input(i).shape.to_string(),
                 ctx.input(0).shape.to_string());
  }
  return give_shape(ctx, ctx.input(0).shape);
}

template <typename T>
Status add_n_run(RunContext& ctx) {
  T* out = ctx.output(0).mutable_values<T>().data();
  ctx.parallel_for(ctx.output(0).elements(), kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    const T* first = ctx.input(0).values<T>().data();
    std::copy(first + begin, first + end, out + begin);
    for (int k = 1; k < ctx.input_count(); ++k) {
      const T* in = ctx.input(k).values<T>().data();
      for (std::int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_floating_point_v<T>) {
          out[i] = limit_to(kFinite, out[i] + in[i]);
        } else {
          out[i] = numeric::wrapping_sum(out[i], in[i]);
        }
      }
    }
  });
  return ok_status();
}

Result<Kernel> add_n_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, ctx.input_count()));
  for (int i = 1; i < ctx.input_count(); ++i) REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(i)));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return for_element_type<float, std::int32_t>(ctx, ctx.input(0).type,
                                               []<typename T>() { return Kernel(add_n_run<T>); });
}

}  // namespace

constinit const OpDef add_n_op = define({.name = name_of(Op::ADD_N),
                                         .summary = "Element-wise sum of two or more tensors of one shape.",
                                         .inputs = {2, kAnyNumber},
                                         .types = "float32; int32",
                                         .form = Form::kElementwise,
                                         .traits = trait_set({Trait::kKeepsNonNegative}),
                                         .infer = add_n_infer,
                                         .prepare = add_n_prepare,
                                         .chip = {.instead = "Add pairs with ADD.", .rewrite = "float-arithmetic"}});

}  // namespace reef::ops
