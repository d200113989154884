// SPDX-License-Identifier: Apache-2.0
// ROUND: to the nearest integer, halves to the even one.
//
// Computed from the floor as TFLite does, so that what rounds to zero from below gives +0.
#include <cmath>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

float round_half_to_even(float x) {
  const float below = std::floor(x);
  const float distance = x - below;
  // A distance of exactly 1/2 means |x| < 2^23, so that the conversion is safe.
  if (distance < 0.5f || (distance == 0.5f && static_cast<int>(below) % 2 == 0)) return below;
  return below + 1.0f;
}

Result<Kernel> round_prepare(PrepareContext& ctx) { return prepare_float_map(ctx, true, round_half_to_even); }

}  // namespace

constinit const OpDef round_op = define(
    {.name = name_of(Op::ROUND),
     .summary = "Rounds to the nearest integer, halves to even.",
     .types = "float32; float16",
     .form = Form::kUnary,
     .traits = trait_set({Trait::kKeepsNonNegative}),
     .prepare = round_prepare,
     .chip = {.instead = "Quantized values have no use for it: leave it out, or do it on the CPU behind the model."}});

}  // namespace reef::ops
