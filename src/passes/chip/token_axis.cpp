// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/token_axis.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "ops/registry.h"

namespace reef::passes {
namespace {

constexpr int kNoAxis = -1;

template <std::size_t kCount>
bool is_one_of(OpName type, const std::array<std::string_view, kCount>& types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

class Walk {
 public:
  Walk(const ChipGraph& edit, TokenRegion& region) : edit_(edit), region_(region) {}

  void visit(std::int32_t index) {
    const ir::Operator& op = edit_.op(index);
    if (std::none_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t t) { return axis_of(t) != kNoAxis; })) return;
    index_ = index;
    const std::size_t cuts = region_.cut.size(), constants = region_.constants.size(), shapes = region_.reshapes.size();
    const int layers = region_.layers;
    const std::optional<int> axis = edit_.is_sound(index) && !op.is_custom() ? through(op) : std::nullopt;
    if (axis) {
      if (*axis == kNoAxis) return;
      for (const std::int32_t output : op.outputs) region_.axis[output] = *axis;
      return;
    }
    region_.cut.resize(cuts);
    region_.constants.resize(constants);
    region_.constant_axes.resize(constants);
    region_.reshapes.resize(shapes);
    region_.layers = layers;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (axis_of(op.inputs[k]) != kNoAxis) cut(k, true);
    }
  }

 private:
  int axis_of(std::int32_t tensor) const {
    const auto found = region_.axis.find(tensor);
    return found == region_.axis.end() ? kNoAxis : found->second;
  }
  void cut(std::size_t k, bool is_end) {
    region_.cut.push_back({index_, k});
    if (is_end) ++region_.ends;
  }

  // The axis of all results; kNoAxis: results have none, and the operator need not know. Nothing: it needs the tokens
  // that there were.
  std::optional<int> through(const ir::Operator& op) {
    static constexpr std::array<Op, 2> kByRows = {Op::SOFTMAX, Op::L2_NORMALIZATION};
    if (op.type == Op::BATCH_MATMUL) return matrix_product(op);
    if (op.type == Op::FULLY_CONNECTED) return layer(op);
    if (op.type == Op::CONV_2D) return convolution(op);
    if (op.type == Op::TRANSPOSE) return transpose(op);
    if (op.type == Op::SPLIT) return split(op);
    if (op.type == Op::SLICE || op.type == Op::STRIDED_SLICE) return slice(op);
    if (op.type == Op::CONCATENATION) return concatenation(op);
    if (op.type == Op::RESHAPE) return reshape(op);
    if (ops::form_of(op) == ops::Form::kReduction) return reduction(op);
    if (is_one_of(op.type, kByRows)) return not_last(op);
    if (ops::is_elementwise_over(op, 1)) return axis_of(op.inputs[0]);
    if (ops::is_elementwise_over(op, 2)) return binary(op);
    return std::nullopt;
  }

  const ir::Shape& in(const ir::Operator& op, std::size_t k = 0) const { return edit_.shape(op.inputs[k]); }
  const ir::Shape& out(const ir::Operator& op) const { return edit_.shape(op.outputs[0]); }
  bool is_last(const ir::Shape& shape, int axis) const { return axis + 1 == shape.rank(); }

  // The dimension of tokens with as many elements before it.
  std::optional<int> at_same_place(const ir::Shape& from, int axis, const ir::Shape& to) const {
    for (int d = 0; d < to.rank(); ++d) {
      if (to[d] == region_.tokens && to.product(0, d) == from.product(0, axis)) return d;
    }
    return std::nullopt;
  }

  std::optional<int> not_last(const ir::Operator& op) const {
    const int axis = axis_of(op.inputs[0]);
    return is_last(in(op), axis) ? std::nullopt : std::optional<int>(axis);
  }

  std::optional<int> reshape(const ir::Operator& op) {
    const auto axis = at_same_place(in(op), axis_of(op.inputs[0]), out(op));
    if (axis) region_.reshapes.push_back(index_);
    return axis;
  }

  std::optional<int> transpose(const ir::Operator& op) const {
    const auto order = edit_.ints(op.inputs[1]);
    if (!order || static_cast<int>(order->size()) != in(op).rank()) return std::nullopt;
    const auto found = std::find(order->begin(), order->end(), axis_of(op.inputs[0]));
    if (found == order->end()) return std::nullopt;
    return static_cast<int>(found - order->begin());
  }

  std::optional<int> split(const ir::Operator& op) const {
    const auto axes = edit_.ints(op.inputs[0]);
    const int axis = axis_of(op.inputs[1]), rank = in(op, 1).rank();
    if (!axes || axes->size() != 1 || axis == kNoAxis) return std::nullopt;
    const std::int64_t along = (*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0];
    return along == axis ? std::nullopt : std::optional<int>(axis);
  }

  // Some of the tokens are the same ones among more.
  std::optional<int> slice(const ir::Operator& op) {
    // These are the sizes of a SLICE, or the ends of a STRIDED_SLICE.
    const auto begins = edit_.ints(op.inputs[1]), sizes = edit_.ints(op.inputs[2]);
    const int axis = axis_of(op.inputs[0]);
    if (!begins || !sizes || axis == kNoAxis || out(op).rank() != in(op).rank()) return std::nullopt;
    if (static_cast<int>(sizes->size()) != in(op).rank() || begins->size() != sizes->size()) return std::nullopt;
    if (op.type == Op::STRIDED_SLICE && !is_box(op, *begins)) return std::nullopt;
    if (out(op)[axis] == region_.tokens) {
      region_.reshapes.push_back(index_);
      return axis;
    }
    return (*sizes)[at(axis)] < 0 ? std::nullopt : std::optional<int>(kNoAxis);
  }
  bool is_box(const ir::Operator& op, const std::vector<std::int64_t>& begins) const {
    for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
      if (op.attributes.get_int(mask) != 0) return false;
    }
    const auto strides = edit_.ints(op.inputs[3]);
    return strides && std::all_of(strides->begin(), strides->end(), [](std::int64_t stride) { return stride == 1; }) &&
           std::all_of(begins.begin(), begins.end(), [](std::int64_t begin) { return begin >= 0; });
  }

  std::optional<int> concatenation(const ir::Operator& op) const {
    const int rank = out(op).rank(), axis = axis_of(op.inputs[0]);
    const std::int64_t given = op.attributes.get_int("axis");
    const std::int64_t along = given < 0 ? given + rank : given;
    const bool is_same =
        std::all_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t input) { return axis_of(input) == axis; });
    return axis == kNoAxis || along == axis || !is_same ? std::nullopt : std::optional<int>(axis);
  }

  std::optional<int> reduction(const ir::Operator& op) const {
    const auto axes = edit_.ints(op.inputs[1]);
    const int axis = axis_of(op.inputs[0]), rank = in(op).rank();
    if (!axes || axis == kNoAxis) return std::nullopt;
    int before = 0;
    for (int d = 0; d < rank; ++d) {
      const bool is_reduced = std::any_of(axes->begin(), axes->end(),
                                          [&](std::int64_t each) { return (each < 0 ? each + rank : each) == d; });
      if (is_reduced && d == axis) return std::nullopt;
      if (is_reduced && d < axis) ++before;
    }
    return op.attributes.get_bool("keep_dims") ? axis : axis - before;
  }

  std::optional<int> layer(const ir::Operator& op) {
    const int axis = axis_of(op.inputs[0]);
    if (axis == kNoAxis || !edit_.is_constant(op.inputs[1]) || in(op, 1).rank() != 2) return std::nullopt;
    if (is_last(in(op), axis) || in(op).last() != in(op, 1)[1]) return std::nullopt;
    const auto made = at_same_place(in(op), axis, out(op));
    if (!made || is_last(out(op), *made)) return std::nullopt;
    ++region_.layers;
    return made;
  }

  std::optional<int> convolution(const ir::Operator& op) {
    const int axis = axis_of(op.inputs[0]);
    if (axis != 1 && axis != 2) return std::nullopt;
    const ir::Shape& weights = in(op, 1);
    if (!edit_.is_constant(op.inputs[1]) || weights.rank() != 4 || weights[1] != 1 || weights[2] != 1) return {};
    if (op.attributes.get_int("stride_h", 1) != 1 || op.attributes.get_int("stride_w", 1) != 1) return {};
    if (weights[3] != in(op).last()) return std::nullopt;
    ++region_.layers;
    return axis;
  }

  // Rows of the first operand are tokens; the second is as it was.
  std::optional<int> matrix_product(const ir::Operator& op) {
    const int axis = axis_of(op.inputs[0]);
    const bool has_second = axis_of(op.inputs[1]) != kNoAxis;
    if (op.inputs[0] == op.inputs[1]) return std::nullopt;
    if (axis == kNoAxis) {
      cut(1, false);
      return kNoAxis;
    }
    if (axis != in(op).rank() - (op.attributes.get_bool("adj_x") ? 1 : 2)) return std::nullopt;
    if (has_second) {
      cut(1, false);
    } else if (edit_.is_constant(op.inputs[1])) {
      ++region_.layers;
    }
    return out(op).rank() - 2;
  }

  std::optional<int> binary(const ir::Operator& op) {
    std::optional<int> result;
    const int rank = out(op).rank();
    for (std::size_t k = 0; k < 2; ++k) {
      const int axis = axis_of(op.inputs[k]);
      if (axis == kNoAxis) continue;
      const int of_result = axis + rank - in(op, k).rank();
      if (result && *result != of_result) return std::nullopt;
      result = of_result;
    }
    for (std::size_t k = 0; k < 2; ++k) {
      if (axis_of(op.inputs[k]) != kNoAxis) continue;
      const int own = *result - (rank - in(op, k).rank());
      if (own < 0 || in(op, k)[own] == 1) continue;
      const auto affine = edit_.affine(op.inputs[k]);
      if (!edit_.is_constant(op.inputs[k]) || !affine) return std::nullopt;
      region_.constants.push_back({index_, k});
      region_.constant_axes.push_back(own);
    }
    return result;
  }

  const ChipGraph& edit_;
  TokenRegion& region_;
  std::int32_t index_ = -1;
};

}  // namespace

TokenRegion follow_tokens(const ChipGraph& edit, std::int32_t tensor, int axis) {
  TokenRegion region;
  region.tokens = edit.shape(tensor)[axis];
  region.axis[tensor] = axis;
  Walk walk(edit, region);
  for (std::int32_t op = std::max(0, edit.producer(tensor) + 1); op < edit.op_count(); ++op) walk.visit(op);
  return region;
}

}  // namespace reef::passes
