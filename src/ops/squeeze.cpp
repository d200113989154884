// SPDX-License-Identifier: Apache-2.0
// SQUEEZE: drops dimensions of size 1: those listed, or all of them if none is.
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kAttributes[] = {
    {"squeeze_dims", "dimensions to drop, negative ones counted from the end; empty: all of size 1"}};
constexpr std::string_view kTypes[] = {"any type with a fixed element size"};

Status infer(InferContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  const std::vector<std::int64_t> listed = ctx.attributes().get_ints("squeeze_dims");
  std::vector<bool> drops(static_cast<std::size_t>(input.rank()));
  for (const std::int64_t value : listed) {
    REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(value, input.rank()));
    REEF_REQUIRE(input[axis] == 1, "dimension {} of {} is not of size 1 and cannot be dropped", axis,
                 input.to_string());
    drops[static_cast<std::size_t>(axis)] = true;
  }
  Shape result;
  for (int d = 0; d < input.rank(); ++d) {
    const bool is_dropped = listed.empty() ? input[d] == 1 : drops[static_cast<std::size_t>(d)];
    if (!is_dropped) result.push_back(input[d]);
  }
  ctx.set_output_shape(0, std::move(result));
  return ok_status();
}

}  // namespace

extern const OpDef squeeze_op;
constinit const OpDef squeeze_op = define({.name = "SQUEEZE",
                                           .summary = "Drops dimensions of size 1.",
                                           .attributes = kAttributes,
                                           .types = kTypes,
                                           .infer = infer,
                                           .prepare = prepare_same_bytes});

}  // namespace reef::ops
