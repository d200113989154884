// SPDX-License-Identifier: Apache-2.0
// BITWISE_XOR: exclusive or of the bits of two elements, with broadcasting.
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef bitwise_xor_op = define(
    {.name = name_of(Op::BITWISE_XOR),
     .summary = "Exclusive or of the bits of two elements, with broadcasting.",
     .types = "int8; uint8; int16; uint16; int32; uint32",
     .form = Form::kBinary,
     .prepare =
         [](PrepareContext& ctx) {
           return prepare_uniform<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t>(
               ctx, []<typename T>(T a, T b) { return static_cast<T>(a ^ b); });
         },
     .chip = {.instead = "Keep integer logic out of the network."}});

}  // namespace reef::ops
