// SPDX-License-Identifier: Apache-2.0
// LOGICAL_AND: Logical conjunction, with broadcasting.
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {

constinit const OpDef logical_and_op =
    define({.name = name_of(Op::LOGICAL_AND),
            .summary = "Logical conjunction, with broadcasting.",
            .types = "bool",
            .form = Form::kBinary,
            .prepare =
                [](PrepareContext& ctx) {
                  return prepare_logical(ctx, [](std::uint8_t a, std::uint8_t b) { return (a != 0) & (b != 0); });
                },
            .chip = {.instead = "Keep logic out of the network."}});

}  // namespace reef::ops
