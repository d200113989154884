// SPDX-License-Identifier: Apache-2.0
// PADV2 with the lowest number in front of MAX_POOL_2D, as importers write a padded max pool. The lowest number is in
// the way of integers: it makes a range of 10^38, and the Edge TPU has no PADV2. Four exact forms do without:
//
//   1. the pool's own padding, VALID or SAME, which leaves padding out, where that gives the same windows;
//   2. PAD with zeros where the input is never negative: a window holds at least one number that is as large;
//   3. where the window is symmetric about its pixel (3x3 padded by 1): a pool of stride 1 with SAME padding, then a
//      pool of single pixels that leaves out those between;
//   4. MIRROR_PAD, which repeats the rows at the edge: a window that reaches q rows beyond the edge holds the q rows
//      that are repeated if it has 2q rows or more; else rows are repeated one by one, all equal to the outermost.
//
// Every window must hold an element of the input, or the lowest number would be the result.
#include <algorithm>

#include "ops/padded_max_pool.h"
#include "passes/float/never_negative.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

using ops::PaddedAxes;
using ops::PaddedAxis;

constexpr float kLowestValue = -1e9f;  // no network computes with numbers below; exporters pad with this or less

bool fills_with_lowest(const Graph& graph, TensorId filling) {
  if (const auto value = graph.uniform(filling)) return *value <= kLowestValue;
  const ir::Tensor& tensor = graph.tensor(filling);
  if (!graph.is_constant(filling)) return false;
  const Bytes& data = ir::constant_data(graph.model(), tensor);
  if (data.size() != 1) return false;
  if (tensor.type == ir::DataType::kInt8) return static_cast<std::int8_t>(data.data()[0]) == -128;
  return tensor.type == ir::DataType::kUInt8 && data.data()[0] == 0;
}

// x with `before` and `after` more rows and columns, by an operator that pads.
TensorId add_padding(Graph& graph, OpId near, OpName type, TensorId x, const PaddedAxes& amounts) {
  ir::Shape shape = graph.shape(x);
  std::vector<std::int32_t> table = {0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    table.push_back(static_cast<std::int32_t>(amounts[i].before));
    table.push_back(static_cast<std::int32_t>(amounts[i].after));
    shape[static_cast<int>(i) + 1] += static_cast<std::int32_t>(amounts[i].before + amounts[i].after);
  }
  table.insert(table.end(), {0, 0});
  const TensorId sizes = graph.add_ints(std::move(table), ir::Shape{4, 2});
  const TensorId y = graph.add_like(x, std::move(shape));
  ir::Attributes attributes;
  if (type == Op::MIRROR_PAD) attributes.set("mode", ir::EnumName{"SYMMETRIC"});
  graph.add_op(near, type, type == Op::PAD ? "PadOptions" : "MirrorPadOptions", std::move(attributes), {x, sizes}, {y});
  return y;
}

// The rows at the edges repeated, so that windows find there what they hold anyway.
TensorId repeat_edges(Graph& graph, OpId near, TensorId x, PaddedAxes left) {
  for (;;) {
    PaddedAxes now;
    bool is_done = true;
    for (std::size_t i = 0; i < 2; ++i) {
      // All at once where a window that reaches out so far holds as many rows inside.
      const std::int64_t most = std::max(left[i].before, left[i].after);
      const bool at_once = 2 * most <= left[i].kernel && most <= left[i].input;
      now[i].before = at_once ? left[i].before : std::min<std::int64_t>(left[i].before, 1);
      now[i].after = at_once ? left[i].after : std::min<std::int64_t>(left[i].after, 1);
      left[i].before -= now[i].before;
      left[i].after -= now[i].after;
      // The remaining padding must go on row by row.
      if (!at_once) left[i].kernel = 1;
      is_done = is_done && left[i].is_valid();
    }
    x = add_padding(graph, near, Op::MIRROR_PAD, x, now);
    if (is_done) return x;
  }
}

bool max_pool_padding_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::MAX_POOL_2D) || graph.op(id).attributes.get_enum("padding") != "VALID") return false;
  const OpId pad = made_by(graph, graph.op(id).inputs[0], Op::PADV2);
  if (pad == kNone || graph.op(pad).inputs.size() != 3 || !fills_with_lowest(graph, graph.op(pad).inputs[2])) {
    return false;
  }
  const TensorId x = graph.op(pad).inputs[0];
  const auto amounts = graph.ints(graph.op(pad).inputs[1]);
  if (!amounts || !same_numbers(graph, x, graph.op(id).inputs[0])) return false;
  const ir::Attributes attributes = graph.op(id).attributes;
  const auto axes = ops::padded_max_pool(attributes, graph.shape(x), graph.shape(graph.op(id).outputs[0]), *amounts);
  if (!axes) return false;
  const auto all = [&](bool (PaddedAxis::*is)() const) { return ((*axes)[0].*is)() && ((*axes)[1].*is)(); };
  if (all(&PaddedAxis::is_valid) || all(&PaddedAxis::is_same)) {
    graph.set_attribute(id, "padding", ir::EnumName{all(&PaddedAxis::is_valid) ? "VALID" : "SAME"});
    graph.set_input(id, 0, x);
    return true;
  }
  if (is_never_negative(graph, x)) {
    graph.set_input(id, 0, add_padding(graph, id, Op::PAD, x, *axes));
    return true;
  }
  if (all(&PaddedAxis::is_centred) && has_no_activation(graph, id)) {
    const TensorId dense = graph.add_like(x, graph.shape(x));
    graph.add_op(id, Op::MAX_POOL_2D, "Pool2DOptions", ops::pool_attributes(attributes, *axes, true, false, "SAME"),
                 {x}, {dense});
    graph.become(id, Op::MAX_POOL_2D, "Pool2DOptions", ops::pool_attributes(attributes, *axes, false, true, "VALID"),
                 {dense});
    return true;
  }
  graph.set_input(id, 0, repeat_edges(graph, id, x, *axes));
  return true;
}

}  // namespace

constinit const Pass max_pool_padding_float_pass = {
    .name = "max-pool-padding",
    .summary =
        "PADV2 with the lowest number in front of MAX_POOL_2D, which importers write for a padded max pool, becomes "
        "the pool's own SAME padding where that is equal; PAD with zeros behind a ReLU (anything proved never "
        "negative); a pool of stride 1 and one of single pixels where the window is centred on its pixel; else rows "
        "repeated at the edge (MIRROR_PAD).",
    .at = max_pool_padding_at};

}  // namespace reef::passes
