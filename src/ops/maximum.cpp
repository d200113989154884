// SPDX-License-Identifier: Apache-2.0
// MAXIMUM: The larger of two elements, with broadcasting.
//
// Stored numbers are compared: quantized operands and output must be quantized alike, which TFLite takes for granted
// and so do we. Of two floats that do not compare (a NaN is among them) the second is taken.
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef maximum_op =
    define({.name = name_of(Op::MAXIMUM),
            .summary = "The larger of two elements, with broadcasting.",
            .types = "float32; int8; uint8; int16; int32; int64",
            .form = Form::kBinary,
            .traits = trait_set({Trait::kBroadcasts, Trait::kCopiesOperands}),
            .prepare =
                [](PrepareContext& ctx) {
                  return prepare_uniform<float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(
                      ctx, []<typename T>(T a, T b) { return a > b ? a : b; });
                },
            .chip = {.first_runtime = 10}});

}  // namespace reef::ops
