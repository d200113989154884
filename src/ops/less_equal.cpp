// SPDX-License-Identifier: Apache-2.0
// LESS_EQUAL: Whether elements of the first input are less or equal, with broadcasting. The arithmetic is in
// comparison.h.

#include "ops/comparison.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "int8", "uint8", "int16", "int32", "int64"};

Status infer(InferContext& ctx) { return infer_broadcast(ctx); }

Result<Kernel> prepare(PrepareContext& ctx) { return prepare_ordering<std::less_equal<>>(ctx); }

}  // namespace

constinit const OpDef less_equal_op =
    define({.name = name_of(Op::LESS_EQUAL),
            .summary = "Whether elements of the first input are less or equal, with broadcasting.",
            .inputs = {2, 2},
            .types = kTypes,
            .form = Form::kBinary,
            .infer = infer,
            .prepare = prepare,
            .chip = {.instead = "Compare on the CPU behind the model."}});

}  // namespace reef::ops
