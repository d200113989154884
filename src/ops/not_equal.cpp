// SPDX-License-Identifier: Apache-2.0
// NOT_EQUAL: Whether elements differ, with broadcasting. The arithmetic is in comparison.h.

#include "ops/comparison.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "int8", "uint8", "int16", "int32", "int64", "bool", "string"};

Status infer(InferContext& ctx) { return infer_broadcast(ctx); }

Result<Kernel> prepare(PrepareContext& ctx) { return prepare_equality<std::not_equal_to<>>(ctx); }

}  // namespace

constinit const OpDef not_equal_op = define({.name = name_of(Op::NOT_EQUAL),
                                             .summary = "Whether elements differ, with broadcasting.",
                                             .inputs = {2, 2},
                                             .types = kTypes,
                                             .form = Form::kBinary,
                                             .infer = infer,
                                             .prepare = prepare,
                                             .chip = {.instead = "Compare on the CPU behind the model."}});

}  // namespace reef::ops
