// SPDX-License-Identifier: Apache-2.0
// REDUCE_ANY: whether any element along the given axes is true.
#include "ops/checks.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"bool"};

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kBool}));
  REEF_RETURN_IF_ERROR(check_reduce(ctx));
  return make_reduce_kernel<std::uint8_t, AnyFunction>();
}

}  // namespace

extern const OpDef reduce_any_op;
constinit const OpDef reduce_any_op = define({.name = "REDUCE_ANY",
                                              .summary = "Whether any element along axes is true.",
                                              .inputs = {2, 2},
                                              .attributes = kReduceAttributes,
                                              .types = kTypes,
                                              .infer = infer_reduce,
                                              .prepare = prepare});

}  // namespace reef::ops
