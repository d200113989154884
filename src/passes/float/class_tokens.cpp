// SPDX-License-Identifier: Apache-2.0
// Constants that are joined with one computed tensor, as the class token of a vision transformer is with its patches,
// become a sum: the tensor is padded with zeros, and the constants are added. The Edge TPU pads and adds, but joins no
// constants. A constant that is added before or behind (positions) takes them in, so that one sum is left. Float32
// only; exact but for the sign of zeros.
#include <algorithm>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// Where the computed operand of a CONCATENATION lies in its result.
struct Joined {
  TensorId x = kNone;
  int axis = 0;
  std::int32_t begin = 0, end = 0;  // along the axis
};

// The same but along one axis.
bool is_part_of(const ir::Shape& part, const ir::Shape& whole, int axis) {
  if (part.rank() != whole.rank()) return false;
  for (int d = 0; d < whole.rank(); ++d) {
    if (d != axis && part[d] != whole[d]) return false;
  }
  return part[axis] >= 1;
}

std::optional<Joined> joined_by(const Graph& graph, OpId id) {
  if (!graph.is(id, Op::CONCATENATION) || !graph.is_sound(id) || !has_no_activation(graph, id)) return std::nullopt;
  const ir::Operator& op = graph.op(id);
  const ir::Shape& out = graph.shape(op.outputs[0]);
  const std::int64_t given = graph.op(id).attributes.get_int("axis");
  const std::int64_t axis = given < 0 ? given + out.rank() : given;
  // The outermost dimension and channels are not padded by the chip.
  if (!is_float(graph, op.outputs[0]) || axis < 1 || axis + 1 >= out.rank()) return std::nullopt;
  Joined joined;
  joined.axis = static_cast<int>(axis);
  std::int32_t at = 0;
  for (const TensorId input : op.inputs) {
    // The shapes that a file declares may contradict each other.
    if (!is_part_of(graph.shape(input), out, joined.axis) || graph.shape(input)[joined.axis] > out[joined.axis] - at) {
      return std::nullopt;
    }
    const std::int32_t size = graph.shape(input)[joined.axis];
    if (!graph.is_constant(input)) {
      if (joined.x != kNone) return std::nullopt;
      joined.x = input;
      joined.begin = at;
      joined.end = at + size;
    } else if (const auto values = graph.floats(input);
               !values || static_cast<std::int64_t>(values->size()) != graph.shape(input).elements()) {
      return std::nullopt;
    }
    at += size;
  }
  if (joined.x == kNone || op.inputs.size() < 2 || at != out[joined.axis]) return std::nullopt;
  return joined;
}

// All constants of the CONCATENATION in their places, zeros for the computed operand.
std::vector<float> constants_of(const Graph& graph, OpId id, const Joined& joined) {
  const ir::Operator& op = graph.op(id);
  const ir::Shape& out = graph.shape(op.outputs[0]);
  const std::int64_t inner = out.product(joined.axis + 1, out.rank()), outer = out.product(0, joined.axis);
  std::vector<float> values(static_cast<std::size_t>(out.elements()), 0.0f);
  std::int64_t at = 0;
  for (const TensorId input : op.inputs) {
    const std::int64_t size = graph.shape(input)[joined.axis];
    if (input != joined.x) {
      const std::vector<float> part = *graph.floats(input);
      for (std::int64_t o = 0; o < outer; ++o) {
        std::copy_n(part.begin() + o * size * inner, size * inner,
                    values.begin() + (o * out[joined.axis] + at) * inner);
      }
    }
    at += size;
  }
  return values;
}

// A constant of the shape, or of its last dimensions, repeated to fill it; nothing where it is repeated otherwise.
std::optional<std::vector<float>> filled(const Graph& graph, TensorId constant, const ir::Shape& shape) {
  const auto values = graph.floats(constant);
  if (!values || values->empty()) return std::nullopt;
  const ir::Shape& own = graph.shape(constant);
  bool is_whole = true;  // from some dimension on
  for (int d = 0; d < own.rank(); ++d) {
    const int from_end = own.rank() - 1 - d;
    if (from_end >= shape.rank()) {
      if (own[d] != 1) return std::nullopt;
      continue;
    }
    const bool repeats = own[d] == 1 && shape.last(from_end) != 1;
    if (!repeats && own[d] != shape.last(from_end)) return std::nullopt;
    if (repeats && d > 0 && own.product(0, d) != 1) is_whole = false;
  }
  if (!is_whole || static_cast<std::int64_t>(values->size()) != own.elements()) return std::nullopt;
  std::vector<float> result(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = (*values)[i % values->size()];
  return result;
}

struct Sum {
  TensorId x = kNone, constant = kNone;
};
std::optional<Sum> sum_with_constant(const Graph& graph, OpId id) {
  if (!graph.is(id, Op::ADD) || !graph.is_sound(id) || !has_no_activation(graph, id)) return std::nullopt;
  const std::vector<TensorId>& inputs = graph.op(id).inputs;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    if (graph.is_constant(inputs[1 - side]) && !graph.is_constant(inputs[side]) &&
        graph.shape(inputs[side]) == graph.shape(graph.op(id).outputs[0])) {
      return Sum{inputs[side], inputs[1 - side]};
    }
  }
  return std::nullopt;
}

// Positions that are added to the computed operand alone.
void take_in_sum_before(const Graph& graph, const ir::Shape& out, Joined& joined, std::vector<float>& values) {
  const OpId before = graph.producer(joined.x);
  if (before == kNone || !graph.has_one_user(joined.x)) return;
  const auto sum = sum_with_constant(graph, before);
  const auto added = sum ? filled(graph, sum->constant, graph.shape(joined.x)) : std::nullopt;
  if (!added) return;
  const std::int64_t inner = out.product(joined.axis + 1, out.rank()), outer = out.product(0, joined.axis);
  const std::int64_t size = (joined.end - joined.begin) * inner;
  for (std::int64_t o = 0; o < outer; ++o) {
    std::copy_n(added->begin() + o * size, size, values.begin() + (o * out[joined.axis] + joined.begin) * inner);
  }
  joined.x = sum->x;
}

bool class_tokens_at(Graph& graph, OpId id) {
  auto joined = joined_by(graph, id);
  if (!joined) return false;
  const TensorId result = graph.op(id).outputs[0];
  const ir::Shape out = graph.shape(result);
  std::vector<float> values = constants_of(graph, id, *joined);
  const std::int32_t rest = out[joined->axis] - joined->end;
  take_in_sum_before(graph, out, *joined, values);
  // Positions that are added to everything.
  OpId sum = id;
  const OpId behind = graph.only_user(result);
  const auto later = behind == kNone ? std::nullopt : sum_with_constant(graph, behind);
  if (later && later->x == result) {
    if (const auto added = filled(graph, later->constant, out)) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += (*added)[i];
      sum = behind;
    }
  }
  std::vector<std::int32_t> amounts(static_cast<std::size_t>(2 * out.rank()), 0);
  amounts[at(2 * joined->axis)] = joined->begin;
  amounts[at(2 * joined->axis + 1)] = rest;
  const TensorId padded = graph.add_like(result, out);
  graph.add_op(id, Op::PAD, "PadOptions", {}, {joined->x, graph.add_ints(std::move(amounts), {out.rank(), 2})},
               {padded});
  const TensorId constant = graph.add_floats(std::move(values), out, graph.tensor(result).name + "/constants");
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  graph.become(sum, Op::ADD, "AddOptions", std::move(attributes), {padded, constant});
  return true;
}

}  // namespace

constinit const Pass class_tokens_float_pass = {
    .name = "class-tokens",
    .summary =
        "Constants that are joined with one computed tensor (the class token of a vision transformer) are added to it, "
        "padded with zeros; positions that are added before or behind take them in.",
    .at = class_tokens_at};

}  // namespace reef::passes
