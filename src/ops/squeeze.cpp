// SPDX-License-Identifier: Apache-2.0
// SQUEEZE: drops dimensions of size 1: those listed, or all of them if none is.
#include <fmt/format.h>

#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSqueezeAttributes[] = {
    {"squeeze_dims", "dimensions to drop, negative ones counted from the end; empty: all of size 1"}};

Status squeeze_infer(InferContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  const std::vector<std::int64_t> listed = ctx.attributes().get_ints("squeeze_dims");
  std::vector<bool> drops(static_cast<std::size_t>(input.rank()));
  for (const std::int64_t value : listed) {
    REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(value, input.rank()));
    REEF_REQUIRE(input[axis] == 1, "dimension {} of {} is not of size 1 and cannot be dropped", axis,
                 input.to_string());
    drops[at(axis)] = true;
  }
  Shape result;
  for (int d = 0; d < input.rank(); ++d) {
    const bool is_dropped = listed.empty() ? input[d] == 1 : drops[at(d)];
    if (!is_dropped) result.push_back(input[d]);
  }
  return give_shape(ctx, std::move(result));
}

std::string drops_inner_dimension(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  std::vector<bool> drops(static_cast<std::size_t>(input.rank()));
  const std::vector<std::int64_t> named = ctx.attributes().get_ints("squeeze_dims");
  for (std::int64_t axis : named) {
    if (axis < 0) axis += input.rank();
    if (axis >= 0 && axis < input.rank()) drops[at(axis)] = true;
  }
  bool has_size = false;  // some dimension so far is above 1
  for (int i = 0; i < input.rank(); ++i) {
    const bool dropped = input[i] == 1 && (named.empty() || drops[at(i)]);
    if (dropped && has_size) return fmt::format("dimension {} of input {} is dropped", i, chip::shape_text(input));
    has_size = has_size || input[i] > 1;
  }
  return "";
}

constexpr ChipRule kSqueezeChipRules[] = {{
    .id = "squeeze-leading",
    .says = "Only leading dimensions are dropped, so that nothing moves.",
    .suggestion = "Compile for runtime 12 or later, or use RESHAPE.",
    .broken = drops_inner_dimension,
    .evidence = "Table 1 says so up to runtime 12.",
    .runtimes = kUpTo11,
    .rewrite = "squeeze",
}};

}  // namespace

constinit const OpDef squeeze_op = define({.name = name_of(Op::SQUEEZE),
                                           .summary = "Drops dimensions of size 1.",
                                           .attributes = kSqueezeAttributes,
                                           .types = "any type with a fixed element size",
                                           .same_bytes = true,
                                           .form = Form::kMove,
                                           .traits = trait_set({Trait::kRearranges, Trait::kScalesByChannel}),
                                           .infer = squeeze_infer,
                                           .prepare = prepare_same_bytes,
                                           .chip = {.first_runtime = 10, .rules = kSqueezeChipRules}});

}  // namespace reef::ops
