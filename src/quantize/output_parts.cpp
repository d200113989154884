// SPDX-License-Identifier: Apache-2.0
#include "quantize/output_parts.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "graph/appender.h"
#include "ops/registry.h"
#include "quantize/graph_constants.h"

namespace reef::quantize {
namespace {

constexpr int kDeepest = 16;  // operators behind a joint

int normalized(std::int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

class Taker {
 public:
  explicit Taker(const ir::Model& model) : model_(model), graph_(model.subgraphs[0]), index_(model) {}

  // The joint that tensor t shows, through the operators that follow it.
  std::optional<Partition> joint(std::int32_t t, int depth = kDeepest) const {
    const ir::Operator* op = producer(t);
    if (op == nullptr || depth == 0) return std::nullopt;
    if (op->type == Op::CONCATENATION) return joined(*op);
    const std::int32_t x = operand(*op);
    // Somebody else who reads the whole keeps it alive: then it would be computed twice.
    if (x < 0 || !index_.has_one_use(x)) return std::nullopt;
    const std::optional<Partition> before = joint(x, depth - 1);
    if (!before) return std::nullopt;
    const int axis = axis_behind(*op, before->axis);
    if (axis < 0) return std::nullopt;
    return Partition{axis, before->sizes, false};
  }

  // The joint that all operands of the last CONCATENATION have in common, along another axis.
  std::optional<Partition> crossed_joint(std::int32_t t, int depth = kDeepest) const {
    const ir::Operator* op = producer(t);
    if (op == nullptr || depth == 0) return std::nullopt;
    if (op->type != Op::CONCATENATION) {
      const std::int32_t x = operand(*op);
      if (x < 0 || !index_.has_one_use(x)) return std::nullopt;
      const std::optional<Partition> before = crossed_joint(x, depth - 1);
      const int axis = before ? axis_behind(*op, before->axis) : -1;
      return axis < 0 ? std::nullopt : std::optional(Partition{axis, before->sizes, true});
    }
    const std::optional<Partition> outer = joined(*op);
    if (!outer) return std::nullopt;
    std::optional<Partition> common;
    for (const std::int32_t x : op->inputs) {
      const std::optional<Partition> inner = index_.has_one_use(x) ? joint(x, depth - 1) : std::nullopt;
      if (!inner || inner->axis == outer->axis) return std::nullopt;
      if (common && (common->axis != inner->axis || common->sizes != inner->sizes)) return std::nullopt;
      common = inner;
    }
    return Partition{common->axis, common->sizes, true};
  }

  const ir::Operator* producer(std::int32_t t) const {
    const std::int32_t op = index_.producer(t);
    return op < 0 ? nullptr : &graph_.operators[at(op)];
  }
  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[at(t)]; }
  bool is_constant(std::int32_t t) const { return t >= 0 && is_float_constant(model_, tensor(t)); }

  // The tensor that an operator treats part by part; -1: it is none of those.
  std::int32_t operand(const ir::Operator& op) const {
    if (op.outputs.size() != 1 || op.inputs.empty() || op.inputs[0] < 0) return -1;
    if (tensor(op.outputs[0]).type != ir::DataType::kFloat32) return -1;
    if (op.type == Op::TRANSPOSE || op.type == Op::RESHAPE || ops::form_of(op) == ops::Form::kUnary)
      return op.inputs[0];
    if (ops::form_of(op) != ops::Form::kBinary || op.inputs.size() != 2 || op.inputs[1] < 0) return -1;
    const std::size_t constant = is_constant(op.inputs[0]) ? 0 : 1;
    const std::int32_t x = op.inputs[1 - constant];
    // The constant must not enlarge the other operand.
    const bool fits =
        is_constant(op.inputs[constant]) && !is_constant(x) && tensor(x).shape == tensor(op.outputs[0]).shape;
    return fits ? x : -1;
  }

  // Where an axis of the operand is found in the result; -1: its elements do not stay together.
  int axis_behind(const ir::Operator& op, int axis) const {
    const ir::Shape &from = tensor(operand(op)).shape, &to = tensor(op.outputs[0]).shape;
    if (op.type == Op::TRANSPOSE) {
      const auto order = int_values<std::int32_t>(model_, tensor(op.inputs[1]));
      const auto found = std::find(order.begin(), order.end(), axis);
      return found == order.end() ? -1 : static_cast<int>(found - order.begin());
    }
    if (op.type != Op::RESHAPE) return axis;
    for (int i = 0; i < to.rank(); ++i) {
      if (to[i] == from[axis] && to.product(0, i) == from.product(0, axis)) return i;
    }
    return -1;
  }

 private:
  std::optional<Partition> joined(const ir::Operator& op) const {
    if (op.inputs.size() < 2 || op.attributes.get_enum("fused_activation_function", "NONE") != "NONE") {
      return std::nullopt;
    }
    const ir::Shape& shape = tensor(op.outputs[0]).shape;
    Partition result;
    result.axis = normalized(op.attributes.get_int("axis"), shape.rank());
    for (const std::int32_t x : op.inputs) {
      const bool is_part = x >= 0 && index_.producer(x) >= 0 && tensor(x).type == ir::DataType::kFloat32 &&
                           tensor(x).shape.rank() == shape.rank();
      if (!is_part) return std::nullopt;
      result.sizes.push_back(tensor(x).shape[result.axis]);
    }
    return result;
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  ir::Uses index_;
};

class Adder {
 public:
  Adder(ir::Model& model, const ir::Model& source, const std::string& name)
      : model_(model), source_(source), taker_(source), name_(name) {}

  std::vector<std::int32_t> parts(std::int32_t t, bool is_crossed) {
    const ir::Operator op = *taker_.producer(t);
    if (op.type != Op::CONCATENATION) {
      const Partition whole =
          is_crossed ? *taker_.crossed_joint(taker_.operand(op)) : *taker_.joint(taker_.operand(op));
      const std::vector<std::int32_t> before = parts(taker_.operand(op), is_crossed);
      std::vector<std::int32_t> result;
      std::int64_t begin = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        result.push_back(apply(op, before[i], whole.axis, begin, whole.sizes[i]));
        begin += whole.sizes[i];
      }
      return result;
    }
    if (!is_crossed) return op.inputs;
    std::vector<std::vector<std::int32_t>> rows;
    for (const std::int32_t x : op.inputs) rows.push_back(parts(x, false));
    const int axis = normalized(op.attributes.get_int("axis"), taker_.tensor(t).shape.rank());
    std::vector<std::int32_t> result;
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      std::vector<std::int32_t> column;
      for (const auto& row : rows) column.push_back(row[i]);
      result.push_back(add_joint(model_, column, axis, fresh_name()));
    }
    return result;
  }

 private:
  std::string fresh_name() { return fmt::format("{}_part{}", name_, ++made_); }

  // The operator on one part: `size` elements from `begin` on along `axis` of its operand.
  std::int32_t apply(const ir::Operator& op, std::int32_t part, int axis, std::int64_t begin, std::int64_t size) {
    ir::Shape shape = taker_.tensor(op.outputs[0]).shape;
    shape[taker_.axis_behind(op, axis)] = static_cast<std::int32_t>(size);
    graph::Appender add(model_);
    const std::string name = fresh_name();
    const std::int32_t result = add.add_tensor(name, shape);
    if (op.type == Op::RESHAPE) {
      add.reshape(part, result, name + "_shape");
      return result;
    }
    std::vector<std::int32_t> inputs = op.inputs;
    const std::int32_t whole = taker_.operand(op);
    for (std::int32_t& t : inputs)
      t = t == whole ? part : op.type == Op::TRANSPOSE ? t : slice(t, whole, axis, begin, size);
    ir::Operator& made = add.op(op.type, op.options_type, inputs, result);
    made.attributes = op.attributes;
    made.version = op.version;
    return result;
  }

  // What a constant operand has for a part of the other one.
  std::int32_t slice(std::int32_t constant, std::int32_t beside, int axis, std::int64_t begin, std::int64_t size) {
    const ir::Shape shape = taker_.tensor(constant).shape;
    const int own = axis - (taker_.tensor(beside).shape.rank() - shape.rank());
    if (own < 0 || shape[own] == 1) return constant;
    const std::vector<float> values = float_values(source_, taker_.tensor(constant));
    const std::int64_t inner = shape.product(own + 1, shape.rank());
    std::vector<float> taken;
    for (std::int64_t outer = 0; outer < shape.product(0, own); ++outer) {
      const auto from = values.begin() + (outer * shape[own] + begin) * inner;
      taken.insert(taken.end(), from, from + size * inner);
    }
    ir::Shape smaller = shape;
    smaller[own] = static_cast<std::int32_t>(size);
    return graph::Appender(model_).add_constant(fresh_name(), smaller, ir::DataType::kFloat32, taken);
  }

  ir::Model& model_;
  const ir::Model& source_;
  Taker taker_;
  std::string name_;
  int made_ = 0;
};

}  // namespace

std::vector<Partition> partitions_of(const ir::Model& model, std::int32_t t) {
  const Taker taker(model);
  std::vector<Partition> result;
  if (const auto plain = taker.joint(t)) result.push_back(*plain);
  if (const auto crossed = taker.crossed_joint(t)) result.push_back(*crossed);
  return result;
}

std::vector<std::int32_t> add_parts(ir::Model& model, const ir::Model& source, std::int32_t t,
                                    const Partition& partition, const std::string& name) {
  return Adder(model, source, name).parts(t, partition.is_crossed);
}

std::int32_t add_joint(ir::Model& model, const std::vector<std::int32_t>& parts, int axis, const std::string& name) {
  const auto shape_of = [&](std::int32_t t) { return model.subgraphs[0].tensors[at(t)].shape; };
  ir::Shape shape = shape_of(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) shape[axis] += shape_of(parts[i])[axis];
  graph::Appender add(model);
  const std::int32_t result = add.add_tensor(name, shape);
  add.concatenation(parts, axis, result);
  return result;
}

}  // namespace reef::quantize
