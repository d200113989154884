// SPDX-License-Identifier: Apache-2.0
// Operators that together are a function of one 8-bit tensor (softplus, Mish, a quick GELU, sin, 1 / (1 + |x|)) in one
// pass of the chip, by an activation table that is fitted for the function.
//
// Exporters write such functions as chains of operators; quantizers leave those without an 8-bit kernel in float32. The
// chain becomes one ReefFunction (ops/reef_function.cpp). Its table is fitted to what the chain computes in real
// numbers and compared with what the model's own operators give at all 256 values. Where it is a step off somewhere and
// operators of Google's compilers would not be, the chain is left to the rewrites behind this one.
#include <algorithm>

#include "ops/table_functions.h"
#include "passes/chip/cone_values.h"
#include "passes/chip/unary_cone.h"
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::size_t kMostCones = 8;  // that end at one operator, the largest first

// Single operators that have a table, or a rewrite, of their own.
bool has_its_own(const ChipGraph& edit, const Cone& cone) {
  const ir::Operator& only = edit.op(cone.ops[0]);
  return cone.ops.size() == 1 && (only.type == Op::ReefFunction || ops::unary_function(only) != nullptr);
}

// A SiLU between 8-bit tensors is marked by `one-pass` and stays what any TFLite runs.
bool is_silu(const ChipGraph& edit, const Cone& cone) {
  return cone.ops.size() == 2 && edit.op(cone.ops[0]).type == Op::LOGISTIC && edit.op(cone.ops[1]).type == Op::MUL &&
         edit.op(cone.ops[0]).inputs[0] == cone.x;
}

// Whether the chip takes the shape: at most four dimensions, the first of four being 1.
bool is_plain(const ir::Shape& shape) { return shape.rank() < 4 || (shape.rank() == 4 && shape[0] == 1); }

// `function` between x and y; on [1, 1, n, channels], with RESHAPEs around it, where they have more dimensions than the
// chip takes.
std::vector<ir::Operator> between(ChipGraph& edit, ir::Operator function, std::int32_t x, std::int32_t y) {
  const ir::Shape shape = edit.shape(x);
  OpList list(edit, edit.tensor(y).name);
  const ir::Shape flat = {1, 1, static_cast<std::int32_t>(shape.elements() / shape.last()), shape.last()};
  function.inputs = {is_plain(shape) ? x : list.reshape(x, flat)};
  function.outputs = {is_plain(shape) ? y : list.tensor_like(y, flat)};
  const std::int32_t result = function.outputs[0];
  std::vector<ir::Operator> ops = list.take();
  ops.push_back(std::move(function));
  if (result == y) return ops;
  OpList behind(edit, edit.tensor(y).name);
  behind.reshape(result, shape, y);
  for (ir::Operator& last : behind.take()) ops.push_back(std::move(last));
  return ops;
}

bool replace(ChipGraph& edit, const Cone& cone, const Table& wanted) {
  const auto in = edit.affine(cone.x), out = edit.affine(cone.y);
  const auto values = real_values(edit, cone);
  if (!values || edit.shape(cone.x).rank() == 0 || edit.shape(cone.x).elements() == 0) return false;
  ir::Operator function;
  function.type = name_of(Op::ReefFunction);
  function.builtin_code = ir::kCustomBuiltinCode;
  function.attributes.set(ops::kCodes, std::vector<std::int64_t>(wanted.begin(), wanted.end()));
  function.attributes.set(ops::kValues, *values);
  const numeric::TableFit fit = ops::table_fit(function, chip_affine(*in), chip_affine(*out));
  const int difference = table_difference(fit, *in, *out, wanted);
  if (fit.error > ops::kLargestTableError || difference > kLargestDifference) return false;
  if (others_are_closer(edit, *in, *out, wanted, difference)) return false;
  const OpName except = edit.is_batch_of_inputs(cone.x) ? OpName() : Op::RESHAPE;  // own-movement sees to those
  const char* into = cone.ops.size() == 1 ? "one pass by a table" : "one pass by a table, with what leads to it";
  return edit.commit(cone.ops.back(), between(edit, std::move(function), cone.x, cone.y), into, difference, except);
}

bool function_table_at(ChipGraph& edit, std::int32_t index) {
  std::vector<Cone> cones = cones_ending_at(edit, index, {.may_fit = true});
  if (cones.size() > kMostCones) cones.resize(kMostCones);
  for (const Cone& cone : cones) {
    if (!rest_fits(edit, cones.front(), cone)) continue;  // rewrites of single operators know those better
    const auto in = edit.affine(cone.x), out = edit.affine(cone.y);
    if (!in || !out || in->type != out->type || has_its_own(edit, cone) || is_silu(edit, cone)) continue;
    const auto table = tabulate(edit, cone.ops, cone.x, cone.y);
    if (!table) continue;
    if (const auto whole = continuation(edit, cone)) {
      if (function_table_at(edit, whole->ops.back())) return true;
      if (!is_tame(edit, cone, *whole, *table)) continue;
    }
    if (replace(edit, cone, *table)) return true;
  }
  return false;
}

}  // namespace

constinit const Pass function_table_chip_pass = {
    .name = "function-table",
    .summary =
        "Operators that together compute a function of one 8-bit tensor (softplus, Mish, a quick GELU, sin ...) are "
        "computed in one pass of the chip by a table of their own.",
    .safety = Safety::kRounding,
    .at_on_chip = function_table_at};

}  // namespace reef::passes
