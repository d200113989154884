// SPDX-License-Identifier: Apache-2.0
// REDUCE_ALL: whether all elements along the given axes are true.
#include "ops/checks.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"bool"};

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kBool}));
  REEF_RETURN_IF_ERROR(check_reduce(ctx));
  return make_reduce_kernel<std::uint8_t, AllFunction>();
}

}  // namespace

extern const OpDef reduce_all_op;
constinit const OpDef reduce_all_op = define({.name = "REDUCE_ALL",
                                              .summary = "Whether all elements along axes are true.",
                                              .inputs = {2, 2},
                                              .attributes = kReduceAttributes,
                                              .types = kTypes,
                                              .infer = infer_reduce,
                                              .prepare = prepare});

}  // namespace reef::ops
