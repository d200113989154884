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
#include <array>
#include <cmath>
#include <optional>

#include "simplify/never_negative.h"
#include "simplify/pass.h"
#include "simplify/patterns.h"

namespace reef::simplify {
namespace {

constexpr float kLowest = -1e30f;  // no network computes with numbers below

struct Axis {
  std::int64_t input = 0, kernel = 0, stride = 0, output = 0;
  std::int64_t before = 0;
  std::int64_t after = 0;  // as far as windows reach; 0 where they end inside

  bool is_valid() const { return before == 0 && after == 0; }
  bool is_same() const {
    return output == (input + stride - 1) / stride && before == same_padding(input, kernel, stride, 1).before;
  }
  bool is_centred() const { return before == (kernel - 1) / 2 && output == (input + stride - 1) / stride; }
  bool all_windows_reach_input() const {
    return before < kernel && (output - 1) * stride - before < input && before <= input && after <= input;
  }
};
using Axes = std::array<Axis, 2>;

bool fills_with_lowest(const Graph& graph, TensorId filling) {
  if (const auto value = graph.uniform(filling)) return *value <= kLowest;
  const ir::Tensor& tensor = graph.tensor(filling);
  if (!graph.is_constant(filling)) return false;
  const Bytes& data = ir::constant_data(graph.model(), tensor);
  if (data.size() != 1) return false;
  if (tensor.type == ir::DataType::kInt8) return static_cast<std::int8_t>(data.data()[0]) == -128;
  return tensor.type == ir::DataType::kUInt8 && data.data()[0] == 0;
}

std::optional<Axes> axes_of(const Graph& graph, OpId pool, OpId pad) {
  const ir::Operator& op = graph.op(pool);
  const ir::Shape& in = graph.shape(graph.op(pad).inputs[0]);
  const ir::Shape& out = graph.shape(op.outputs[0]);
  const auto amounts = graph.ints(graph.op(pad).inputs[1]);
  if (!amounts || amounts->size() != 8 || in.rank() != 4 || out.rank() != 4) return std::nullopt;
  if ((*amounts)[0] != 0 || (*amounts)[1] != 0 || (*amounts)[6] != 0 || (*amounts)[7] != 0) return std::nullopt;
  Axes axes;
  for (std::size_t i = 0; i < 2; ++i) {
    constexpr std::int64_t kMost = 1 << 20;
    Axis& axis = axes[i];
    axis.input = in[static_cast<int>(i) + 1];
    axis.output = out[static_cast<int>(i) + 1];
    axis.kernel = op.attributes.get_int(i == 0 ? "filter_height" : "filter_width", 0);
    axis.stride = op.attributes.get_int(i == 0 ? "stride_h" : "stride_w", 0);
    axis.before = (*amounts)[2 * i + 2];
    const std::int64_t after = (*amounts)[2 * i + 3];
    const auto is_small = [](std::int64_t value, std::int64_t least) { return value >= least && value <= kMost; };
    if (!is_small(axis.kernel, 1) || !is_small(axis.stride, 1) || !is_small(axis.before, 0) || !is_small(after, 0)) {
      return std::nullopt;
    }
    axis.after = std::max<std::int64_t>(0, (axis.output - 1) * axis.stride + axis.kernel - axis.input - axis.before);
    if (axis.after > after || !axis.all_windows_reach_input()) return std::nullopt;
  }
  return axes;
}

ir::Attributes pool_attributes(const Axes& axes, bool has_filter, bool has_stride, std::string_view padding) {
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{std::string(padding)});
  attributes.set("stride_w", has_stride ? axes[1].stride : 1);
  attributes.set("stride_h", has_stride ? axes[0].stride : 1);
  attributes.set("filter_width", has_filter ? axes[1].kernel : 1);
  attributes.set("filter_height", has_filter ? axes[0].kernel : 1);
  return attributes;
}

// x with `before` and `after` more rows and columns, by an operator that pads.
TensorId add_padding(Graph& graph, OpId near, std::string_view type, TensorId x, const Axes& amounts) {
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
  if (type == "MIRROR_PAD") attributes.set("mode", ir::EnumName{"SYMMETRIC"});
  graph.add_op(near, type, type == "PAD" ? "PadOptions" : "MirrorPadOptions", std::move(attributes), {x, sizes}, {y});
  return y;
}

// The rows at the edges repeated, so that windows find there what they hold anyway.
TensorId repeat_edges(Graph& graph, OpId near, TensorId x, Axes left) {
  for (;;) {
    Axes now;
    bool is_done = true;
    for (std::size_t i = 0; i < 2; ++i) {
      // All at once where a window that reaches out so far holds as many rows inside.
      const bool at_once = 2 * std::max(left[i].before, left[i].after) <= left[i].kernel;
      now[i].before = at_once ? left[i].before : std::min<std::int64_t>(left[i].before, 1);
      now[i].after = at_once ? left[i].after : std::min<std::int64_t>(left[i].after, 1);
      left[i].before -= now[i].before;
      left[i].after -= now[i].after;
      // What is left must go on row by row.
      if (!at_once) left[i].kernel = 1;
      is_done = is_done && left[i].is_valid();
    }
    x = add_padding(graph, near, "MIRROR_PAD", x, now);
    if (is_done) return x;
  }
}

bool at(Graph& graph, OpId id) {
  if (!graph.is(id, "MAX_POOL_2D") || graph.op(id).attributes.get_enum("padding") != "VALID") return false;
  const OpId pad = made_by(graph, graph.op(id).inputs[0], "PADV2");
  if (pad == kNone || graph.op(pad).inputs.size() != 3 || !fills_with_lowest(graph, graph.op(pad).inputs[2])) {
    return false;
  }
  const TensorId x = graph.op(pad).inputs[0];
  const auto axes = axes_of(graph, id, pad);
  if (!axes || !same_numbers(graph, x, graph.op(id).inputs[0])) return false;
  const auto all = [&](bool (Axis::*is)() const) { return ((*axes)[0].*is)() && ((*axes)[1].*is)(); };
  if (all(&Axis::is_valid) || all(&Axis::is_same)) {
    graph.set_attribute(id, "padding", ir::EnumName{all(&Axis::is_valid) ? "VALID" : "SAME"});
    graph.set_input(id, 0, x);
    return true;
  }
  if (is_never_negative(graph, x)) {
    graph.set_input(id, 0, add_padding(graph, id, "PAD", x, *axes));
    return true;
  }
  if (all(&Axis::is_centred) && has_no_activation(graph, id)) {
    const TensorId dense = graph.add_like(x, graph.shape(x));
    graph.add_op(id, "MAX_POOL_2D", "Pool2DOptions", pool_attributes(*axes, true, false, "SAME"), {x}, {dense});
    graph.become(id, "MAX_POOL_2D", "Pool2DOptions", pool_attributes(*axes, false, true, "VALID"), {dense});
    return true;
  }
  graph.set_input(id, 0, repeat_edges(graph, id, x, *axes));
  return true;
}

}  // namespace

extern const Pass max_pool_padding_pass;
constinit const Pass max_pool_padding_pass = {
    .name = "max-pool-padding",
    .summary =
        "PADV2 with the lowest number in front of MAX_POOL_2D becomes the pool's own padding, zeros behind a "
        "ReLU, or rows repeated at the edge.",
    .at = at};

}  // namespace reef::simplify
