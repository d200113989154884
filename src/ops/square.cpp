// SPDX-License-Identifier: Apache-2.0
// SQUARE: x * x.
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32"};

Result<Kernel> prepare(PrepareContext& ctx) {
  return prepare_float_map(ctx, false, [](float x) { return x * x; });
}

}  // namespace

constinit const OpDef square_op = define({.name = name_of(Op::SQUARE),
                                          .summary = "Square.",
                                          .types = kTypes,
                                          .elementwise = input_set({0}),
                                          .form = Form::kUnary,
                                          .traits = trait_set({Trait::kNeverNegative}),
                                          .infer = infer_same_shape,
                                          .prepare = prepare,
                                          .chip = {.instead = "Use MUL of the input with itself."}});

}  // namespace reef::ops
