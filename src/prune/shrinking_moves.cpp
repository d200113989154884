// SPDX-License-Identifier: Apache-2.0
#include "prune/shrinking_moves.h"

#include <algorithm>

#include <fmt/format.h>

#include "formats/tflite/operator_codes.h"
#include "ir/constants.h"

namespace reef::prune {
namespace {

class Adapter {
 public:
  Adapter(const ir::Model& before, const KeptIndices& kept, std::size_t op, ir::Model& after)
      : before_(before), kept_(kept), op_(op), after_(after) {}

  Status run() {
    const std::string type = op().type;
    if (type == Op::RESHAPE) return reshape();
    if (type == Op::BROADCAST_TO) return set_result_sizes(1);
    if (type == Op::TRANSPOSE_CONV) return set_result_sizes(0);
    if (type == Op::SPLIT || type == Op::SPLIT_V) return split();
    if (type == Op::SLICE) return slice();
    if (type == Op::STRIDED_SLICE) return strided_slice();
    return ok_status();
  }

 private:
  ir::Operator& op() { return after_.subgraphs[0].operators[op_]; }
  const ir::Tensor& old_tensor(std::int32_t t) const { return before_.subgraphs[0].tensors[at(t)]; }
  const ir::Tensor& tensor(std::int32_t t) const { return after_.subgraphs[0].tensors[at(t)]; }
  bool shrinks(std::int32_t t) const { return old_tensor(t).shape != tensor(t).shape; }
  std::vector<std::int64_t> sizes_of(std::int32_t t) const { return {tensor(t).shape.begin(), tensor(t).shape.end()}; }
  // Indices below `limit` that stay.
  std::int64_t kept_below(std::int32_t t, std::size_t axis, std::int64_t limit) const {
    const std::vector<bool>& kept = kept_[at(t)][axis];
    return std::count(kept.begin(), kept.begin() + std::clamp<std::int64_t>(limit, 0, std::ssize(kept)), true);
  }

  // The operand gets a constant of its own: others may read the old one.
  Status replace(std::size_t place, const std::vector<std::int64_t>& values) {
    const std::int32_t old = op().inputs[place];
    if (!ir::constant_integers(before_, old_tensor(old))) return unsupported("its sizes are computed while it runs");
    ir::Tensor made = tensor(old);
    made.name = fmt::format("{}/{}", made.name, op_);
    made.shape = ir::Shape({static_cast<std::int32_t>(values.size())});
    if (made.type == ir::DataType::kInt64) {
      ir::set_constant(after_, made, values);
    } else {
      ir::set_constant(after_, made, std::vector<std::int32_t>(values.begin(), values.end()));
    }
    ir::Subgraph& graph = after_.subgraphs[0];
    graph.tensors.push_back(std::move(made));
    op().inputs[place] = static_cast<std::int32_t>(graph.tensors.size() - 1);
    return ok_status();
  }
  Status set_result_sizes(std::size_t place) {
    const bool has_operand = place < op().inputs.size() && op().inputs[place] >= 0;
    return has_operand && shrinks(op().outputs[0]) ? replace(place, sizes_of(op().outputs[0])) : ok_status();
  }

  Status reshape() {
    if (!shrinks(op().outputs[0])) return ok_status();
    const std::vector<std::int64_t> sizes = sizes_of(op().outputs[0]);
    if (op().attributes.find("new_shape") != nullptr) op().attributes.set("new_shape", sizes);
    return set_result_sizes(1);
  }

  // Pieces of different sizes need SPLIT_V. Its operands: value, sizes, axis; those of SPLIT: axis, value.
  Status split() {
    const bool is_equal = op().type == Op::SPLIT;
    const std::int32_t value = op().inputs[is_equal ? 1 : 0], axis_at = op().inputs[is_equal ? 0 : 2];
    if (!shrinks(value)) return ok_status();
    const auto axis = ir::constant_integers(before_, old_tensor(axis_at));
    if (!axis || axis->size() != 1) return unsupported("its axis is computed while the model runs");
    const int rank = tensor(value).shape.rank();
    const int at = static_cast<int>((*axis)[0] < 0 ? (*axis)[0] + rank : (*axis)[0]);
    std::vector<std::int32_t> sizes;
    for (const std::int32_t t : op().outputs) sizes.push_back(tensor(t).shape[at]);
    const bool all_equal = std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
    if (is_equal && all_equal) return ok_status();
    ir::Tensor made;
    made.name = fmt::format("{}/sizes/{}", tensor(value).name, op_);
    made.type = ir::DataType::kInt32;
    made.shape = ir::Shape({static_cast<std::int32_t>(sizes.size())});
    ir::set_constant(after_, made, sizes);
    ir::Subgraph& graph = after_.subgraphs[0];
    graph.tensors.push_back(std::move(made));
    ir::Operator& to = op();
    to.inputs = {value, static_cast<std::int32_t>(graph.tensors.size() - 1), axis_at};
    if (is_equal) {
      to.type = name_of(Op::SPLIT_V);
      to.builtin_code = tflite::builtin_code(to.type);
      to.version = tflite::operator_version(to.type, tensor(value).type);
      to.options_type = "SplitVOptions";
      to.attributes = {};
      to.attributes.set("num_splits", static_cast<std::int64_t>(sizes.size()));
    }
    return ok_status();
  }

  Status slice() {
    const std::int32_t x = op().inputs[0];
    if (!shrinks(x)) return ok_status();
    const auto begin = ir::constant_integers(before_, old_tensor(op().inputs[1]));
    if (!begin) return unsupported("its position is computed while the model runs");
    std::vector<std::int64_t> moved = *begin;
    for (std::size_t axis = 0; axis < moved.size(); ++axis) moved[axis] = kept_below(x, axis, moved[axis]);
    // Results that keep their shape are cut from an axis that lost indices before or behind them.
    const std::vector<std::int64_t> sizes = sizes_of(op().outputs[0]);
    REEF_RETURN_IF_ERROR(replace(1, moved));
    return replace(2, sizes);
  }
  // Only axes with positive bounds and a step of 1 shrink (adapts_to_shrinking); masked bounds are not looked at.
  Status strided_slice() {
    const std::int32_t x = op().inputs[0];
    if (!shrinks(x)) return ok_status();
    const auto begin = ir::constant_integers(before_, old_tensor(op().inputs[1]));
    const auto end = ir::constant_integers(before_, old_tensor(op().inputs[2]));
    if (!begin || !end) return unsupported("its position is computed while the model runs");
    std::vector<std::int64_t> from = *begin, to = *end;
    for (std::size_t axis = 0; axis < from.size(); ++axis) {
      const std::vector<bool>& kept = kept_[at(x)][axis];
      if (std::all_of(kept.begin(), kept.end(), [](bool k) { return k; })) continue;
      from[axis] = kept_below(x, axis, from[axis]);
      to[axis] = kept_below(x, axis, to[axis]);
    }
    REEF_RETURN_IF_ERROR(replace(1, from));
    return replace(2, to);
  }

  const ir::Model& before_;
  const KeptIndices& kept_;
  const std::size_t op_;
  ir::Model& after_;
};

bool is_run(const std::vector<std::int32_t>& from) {
  for (std::size_t i = 1; i < from.size(); ++i) {
    if (from[i] != from[0] + static_cast<std::int32_t>(i)) return false;
  }
  return !from.empty() && from[0] >= 0;
}

// Bounds of the axis are plain numbers: positive, with a step of 1 and no mask but those for the whole axis.
bool has_plain_bounds(const ir::Model& model, const ir::Operator& op, std::size_t axis) {
  const auto& tensors = model.subgraphs[0].tensors;
  const auto begin = ir::constant_integers(model, tensors[at(op.inputs[1])]);
  const auto end = ir::constant_integers(model, tensors[at(op.inputs[2])]);
  const auto step = ir::constant_integers(model, tensors[at(op.inputs[3])]);
  if (!begin || !end || !step || axis >= begin->size() || axis >= end->size() || axis >= step->size()) return false;
  for (const char* mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    if (op.attributes.get_int(mask) != 0) return false;
  }
  const bool from_start = (op.attributes.get_int("begin_mask") >> axis & 1) != 0;
  const bool to_end = (op.attributes.get_int("end_mask") >> axis & 1) != 0;
  return (*step)[axis] == 1 && (from_start || (*begin)[axis] >= 0) && (to_end || (*end)[axis] >= 0);
}

}  // namespace

bool adapts_to_shrinking(const ir::Model& model, const ir::Operator& op, const MovedAxis& moved) {
  const ir::Shape& from = model.subgraphs[0].tensors[at(moved.input)].shape;
  const ir::Shape& to = model.subgraphs[0].tensors[at(moved.output)].shape;
  const bool is_whole = is_run(moved.from) && from[moved.input_axis] == to[moved.output_axis];
  if (op.type == Op::CONCATENATION) return true;
  if (op.type == Op::SPLIT || op.type == Op::SPLIT_V || op.type == Op::SLICE) return is_run(moved.from);
  if (op.type == Op::STRIDED_SLICE) {
    return is_run(moved.from) && has_plain_bounds(model, op, static_cast<std::size_t>(moved.input_axis));
  }
  return is_whole;
}

Status adapt_sizes(const ir::Model& before, const KeptIndices& kept, std::size_t op, ir::Model& after) {
  return Adapter(before, kept, op, after).run();
}

}  // namespace reef::prune
