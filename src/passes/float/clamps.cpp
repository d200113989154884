// SPDX-License-Identifier: Apache-2.0
// MAXIMUM and MINIMUM with numbers, alone or in pairs, become RELU, RELU6, RELU_N1_TO_1 or RELU_0_TO_1 where these are
// the bounds. Float32; exact but for NaN.
#include <algorithm>
#include <limits>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Range {
  TensorId x = kNone;
  float low = -kInfinity, high = kInfinity;
};

// The bounds that one operator puts on its operand.
std::optional<Range> range_of(const Graph& graph, OpId id) {
  if (id == kNone || !graph.is_sound(id) || !is_float(graph, graph.op(id).outputs[0])) return std::nullopt;
  const ir::Operator& op = graph.op(id);
  if (op.type == Op::RELU) return Range{op.inputs[0], 0, kInfinity};
  if (op.type == Op::RELU6) return Range{op.inputs[0], 0, 6};
  if (op.type == Op::RELU_N1_TO_1) return Range{op.inputs[0], -1, 1};
  if (op.type == Op::RELU_0_TO_1) return Range{op.inputs[0], 0, 1};
  if (op.type != Op::MAXIMUM && op.type != Op::MINIMUM) return std::nullopt;
  const auto parts = with_number(graph, id);
  if (!parts) return std::nullopt;
  Range range{parts->x};
  (op.type == Op::MAXIMUM ? range.low : range.high) = parts->number;
  return range;
}

OpName function_of(const Range& range) {
  if (range.low == 0 && range.high == kInfinity) return Op::RELU;
  if (range.low == 0 && range.high == 6) return Op::RELU6;
  if (range.low == -1 && range.high == 1) return Op::RELU_N1_TO_1;
  if (range.low == 0 && range.high == 1) return Op::RELU_0_TO_1;
  return {};
}

// clamp(clamp(x, inner), outer) as one, for crossing bounds as well.
Range both(const Range& inner, const Range& outer) {
  return {inner.x, std::clamp(inner.low, outer.low, outer.high), std::clamp(inner.high, outer.low, outer.high)};
}

bool clamps_at(Graph& graph, OpId id) {
  const auto range = range_of(graph, id);
  if (!range || range->low > range->high) return false;
  const auto inner = range_of(graph, graph.producer(range->x));
  if (inner && inner->low <= inner->high) {
    const Range joined = both(*inner, *range);
    const OpName name = function_of(joined);
    if (!name.empty()) {
      graph.become(id, name, "", {}, {joined.x});
      return true;
    }
  }
  const OpName name = function_of(*range);
  if (name.empty() || name == graph.type(id)) return false;
  graph.become(id, name, "", {}, {range->x});
  return true;
}

}  // namespace

constinit const Pass clamps_float_pass = {
    .name = "clamps",
    .summary = "MAXIMUM and MINIMUM with the bounds of RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1 become those.",
    .at = clamps_at};

}  // namespace reef::passes
