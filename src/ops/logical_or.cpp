// SPDX-License-Identifier: Apache-2.0
// LOGICAL_OR: Logical disjunction, with broadcasting.
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input 0", {DataType::kBool}));
  // Read as bytes: a file may hold bools that are neither 0 nor 1.
  return binary_kernel<std::uint8_t, bool>(ctx, [](std::uint8_t a, std::uint8_t b) { return (a != 0) | (b != 0); });
}

}  // namespace

constinit const OpDef logical_or_op = define({.name = name_of(Op::LOGICAL_OR),
                                              .summary = "Logical disjunction, with broadcasting.",
                                              .types = "bool",
                                              .form = Form::kBinary,
                                              .prepare = prepare,
                                              .chip = {.instead = "Keep logic out of the network."}});

}  // namespace reef::ops
