// SPDX-License-Identifier: Apache-2.0
// PADV2 with the lowest number and MAX_POOL_2D: a padded max pool in files that other tools made. The chip has no
// PADV2, but three exact forms without it, the cheapest first:
//
//   1. the pool's own padding, VALID or SAME, which leaves padding out, where that gives the same windows;
//   2. where the window is centred on its pixel (3x3 padded by 1), a pool of stride 1 with SAME padding, then a pool of
//      single pixels that leaves out those between;
//   3. the outermost rows and columns repeated: a window that reaches beyond the edge holds the outermost row anyway.
//
// Every window must hold an element of the input, or the lowest number would be the result.
#include <algorithm>

#include "ops/padded_max_pool.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

using ops::PaddedAxes;
using ops::PaddedAxis;

constexpr std::int64_t kMostRepeatedRows = 16;  // repeated on one side

bool fills_with_lowest(const ChipGraph& edit, std::int32_t filling) {
  if (!edit.is_constant(filling)) return false;
  const Bytes& value = ir::constant_data(edit.model(), edit.tensor(filling));
  if (value.size() != 1) return false;
  return edit.tensor(filling).type == ir::DataType::kInt8 ? static_cast<std::int8_t>(value.data()[0]) == -128
                                                          : value.data()[0] == 0;
}

std::int32_t repeat_edges(OpList& list, std::int32_t x, const PaddedAxes& axes) {
  for (int axis = 1; axis <= 2; ++axis) {
    const PaddedAxis& a = axes[static_cast<std::size_t>(axis) - 1];
    if (a.is_valid()) continue;
    std::vector<std::int32_t> parts;
    if (a.before > 0) parts.assign(static_cast<std::size_t>(a.before), list.slice(x, axis, 0, 1));
    parts.push_back(x);
    if (a.after > 0) {
      const std::int32_t last = list.slice(x, axis, list.shape(x)[axis] - 1, 1);
      parts.insert(parts.end(), static_cast<std::size_t>(a.after), last);
    }
    x = list.concatenation(parts, axis);
  }
  return x;
}

bool max_pool_padding_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator pool = edit.op(index);
  if (pool.type != Op::MAX_POOL_2D || !edit.is_sound(index) || pool.attributes.get_enum("padding") != "VALID")
    return false;
  const std::int32_t padder = edit.producer(pool.inputs[0]);
  if (padder < 0 || edit.op(padder).type != Op::PADV2 || !edit.is_sound(padder)) return false;
  const ir::Operator pad = edit.op(padder);
  const std::int32_t x = pad.inputs[0], y = pool.outputs[0];
  if (pad.inputs.size() != 3 || !edit.affine(x) || !edit.same_quantization(x, pool.inputs[0])) return false;
  if (!edit.same_quantization(x, y) || !fills_with_lowest(edit, pad.inputs[2])) return false;
  const auto amounts = edit.ints(pad.inputs[1]);
  if (!amounts) return false;
  const auto axes = ops::padded_max_pool(pool.attributes, edit.shape(x), edit.shape(y), *amounts);
  if (!axes ||
      std::max({(*axes)[0].before, (*axes)[0].after, (*axes)[1].before, (*axes)[1].after}) > kMostRepeatedRows) {
    return false;
  }
  const auto all = [&](bool (PaddedAxis::*is)() const) { return ((*axes)[0].*is)() && ((*axes)[1].*is)(); };
  const ir::DataType type = edit.tensor(x).type;
  const bool has_no_activation = pool.attributes.get_enum("fused_activation_function", "NONE") == "NONE";
  OpList list(edit, edit.tensor(y).name);
  if (all(&PaddedAxis::is_valid) || all(&PaddedAxis::is_same)) {
    const std::string_view padding = all(&PaddedAxis::is_valid) ? "VALID" : "SAME";
    list.add(Op::MAX_POOL_2D, pool.options_type, ops::pool_attributes(pool.attributes, *axes, true, true, padding), {x},
             {y}, type);
  } else if (all(&PaddedAxis::is_centred) && has_no_activation) {
    const std::int32_t dense = list.tensor_like(x, edit.shape(x));
    list.add(Op::MAX_POOL_2D, pool.options_type, ops::pool_attributes(pool.attributes, *axes, true, false, "SAME"), {x},
             {dense}, type);
    list.add(Op::MAX_POOL_2D, pool.options_type, ops::pool_attributes(pool.attributes, *axes, false, true, "VALID"),
             {dense}, {y}, type);
  } else {
    const std::int32_t repeated = repeat_edges(list, x, *axes);
    list.add(Op::MAX_POOL_2D, pool.options_type, pool.attributes, {repeated}, {y}, type);
  }
  return edit.commit(index, list.take(), "a pool without PADV2");
}

}  // namespace

constinit const Pass max_pool_padding_chip_pass = {
    .name = "max-pool-padding",
    .summary =
        "MAX_POOL_2D of what PADV2 has padded with the lowest number becomes a pool with padding of its "
        "own, two pools, or a pool of repeated edge rows.",
    .at_on_chip = max_pool_padding_at};

}  // namespace reef::passes
