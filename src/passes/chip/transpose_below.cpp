// SPDX-License-Identifier: Apache-2.0
// With p the permutation (dimension i of what is transposed is dimension p[i] of what it was), an operator that works
// along dimension i works along p[i] instead; one that works element by element does not care.
#include "passes/chip/transpose_below.h"

#include <algorithm>
#include <cstring>

#include "ops/registry.h"
#include "passes/chip/view.h"

namespace reef::passes {
namespace {

using Permutation = std::vector<std::int64_t>;

ir::Shape before(const ir::Shape& shape, const Permutation& p) {
  ir::Shape result = shape;
  for (int i = 0; i < shape.rank(); ++i) result[static_cast<int>(p[reef::at(i)])] = shape[i];
  return result;
}

std::vector<int> as_ints(const Permutation& p) { return {p.begin(), p.end()}; }

// A constant with its elements put in the order before the transposition.
std::optional<std::int32_t> constant_before(ChipGraph& edit, std::int32_t index, const Permutation& p) {
  const ir::Tensor tensor = edit.tensor(index);
  if (tensor.shape.elements() == 1) return index;
  if (tensor.shape.rank() != static_cast<int>(p.size()) || tensor.quantization.is_per_axis()) return {};
  const int bits = ir::bits_per_element(tensor.type);
  if (bits < 8) return {};
  const auto size = static_cast<std::size_t>(bits / 8);
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), tensor).span();
  ir::Tensor moved = tensor;
  moved.shape = before(tensor.shape, p);
  moved.shape_signature.clear();
  std::vector<std::int64_t> strides(p.size(), 1);  // of `moved`, along the dimensions of `tensor`
  for (std::size_t i = 0; i < p.size(); ++i) {
    strides[i] = moved.shape.product(static_cast<int>(p[i]) + 1, moved.shape.rank());
  }
  std::vector<std::uint8_t> bytes(data.size());
  std::vector<std::int64_t> at(p.size(), 0);
  for (std::size_t from = 0; from + size <= data.size(); from += size) {
    std::int64_t to = 0;
    for (std::size_t i = 0; i < at.size(); ++i) to += at[i] * strides[i];
    std::memcpy(&bytes[static_cast<std::size_t>(to) * size], &data[from], size);
    for (std::size_t i = at.size(); i-- > 0;) {
      if (++at[i] < tensor.shape[static_cast<int>(i)]) break;
      at[i] = 0;
    }
  }
  return edit.add_constant(std::move(moved), std::move(bytes));
}

// What `index` was before a transposition by p: the input of such a TRANSPOSE, a constant rearranged, the source of a
// chain of reshapes and transpositions that amounts to one, or a function of one of these.
std::optional<std::int32_t> operand_before(ChipGraph& edit, OpList& list, std::int32_t index, const Permutation& p) {
  if (edit.is_constant(index)) return constant_before(edit, index, p);
  if (edit.shape(index).rank() != static_cast<int>(p.size())) return {};
  if (const std::int32_t producer = edit.producer(index);
      producer >= 0 && ops::form_of(edit.op(producer)) == ops::Form::kUnary) {
    const ir::Operator op = edit.op(producer);
    if (!edit.has_one_user(index) || !edit.is_sound(producer) || edit.shape(op.inputs[0]) != edit.shape(index))
      return {};
    const auto x = operand_before(edit, list, op.inputs[0], p);
    if (!x) return {};
    const std::int32_t y = list.tensor_like(index, before(edit.shape(index), p));
    list.add(op.type, op.options_type, op.attributes, {*x}, {y}, edit.tensor(index).type);
    list.last().version = op.version;
    return y;
  }
  std::vector<std::int32_t> chain;
  std::int32_t source = index;
  while (edit.producer(source) >= 0 && is_view_op(edit, edit.producer(source)) && chain.size() < 16) {
    chain.push_back(edit.producer(source));
    source = edit.op(chain.back()).inputs[0];
    View view(edit.shape(source));
    bool fine = true;
    for (auto op = chain.rbegin(); fine && op != chain.rend(); ++op) fine = view.apply(edit, *op);
    Permutation inverse(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) inverse[reef::at(p[i])] = static_cast<std::int64_t>(i);
    if (!fine || !view.transpose(inverse) || !view.is_reshape()) continue;
    const ir::Shape wanted = before(edit.shape(index), p);
    return edit.shape(source) == wanted ? source : list.reshape(source, wanted);
  }
  return {};
}

class Lowering {
 public:
  Lowering(ChipGraph& edit, OpList& list, std::int32_t op, const Permutation& p)
      : edit_(edit), list_(list), op_(edit.op(op)), index_(op), p_(p) {}

  std::optional<Lowered> run() {
    const std::string& type = op_.type;
    const ops::Form form = ops::form_of(op_);
    if (form == ops::Form::kUnary || type == Op::SOFTMAX || type == Op::CONV_2D) return same_place();
    if (form == ops::Form::kBinary) return binary();
    if (type == Op::CONCATENATION) return concatenation();
    if (type == Op::STRIDED_SLICE || type == Op::SLICE) return slice();
    if (type == Op::SPLIT || type == Op::SPLIT_V) return split();
    if (form == ops::Form::kReduction) return reduction();
    if (is_view_op(edit_, index_)) return view();
    return {};
  }

 private:
  // The same operator with other operands, its output in the shape before the transposition.
  std::optional<Lowered> remade(std::vector<std::int32_t> inputs, const Permutation& p) {
    Lowered lowered{{}, as_ints(p)};
    for (const std::int32_t output : op_.outputs) {
      if (edit_.shape(output).rank() != static_cast<int>(p.size())) return {};
      lowered.results.push_back(list_.tensor_like(output, before(edit_.shape(output), p)));
    }
    list_.add(op_.type, op_.options_type, op_.attributes, std::move(inputs), lowered.results,
              edit_.tensor(op_.outputs[0]).type);
    list_.last().version = op_.version;
    return lowered;
  }

  std::optional<Lowered> same_place() {
    const bool keeps_last = p_.back() == static_cast<std::int64_t>(p_.size()) - 1;
    if (op_.type == Op::SOFTMAX && !keeps_last) return {};
    if (op_.type == Op::CONV_2D && !(keeps_last && is_pointwise())) return {};
    if (edit_.shape(op_.outputs[0]).rank() != static_cast<int>(p_.size())) return {};
    const auto x = operand_before(edit_, list_, op_.inputs[0], p_);
    if (!x) return {};
    std::vector<std::int32_t> inputs = op_.inputs;
    inputs[0] = *x;
    return remade(std::move(inputs), p_);
  }

  bool is_pointwise() const {
    const ir::Shape& filter = edit_.shape(op_.inputs[1]);
    return p_[0] == 0 && filter.rank() == 4 && filter[1] == 1 && filter[2] == 1 && edit_.is_constant(op_.inputs[1]) &&
           op_.attributes.get_int("stride_w") == 1 && op_.attributes.get_int("stride_h") == 1;
  }

  std::optional<Lowered> binary() {
    std::vector<std::int32_t> inputs;
    for (const std::int32_t input : op_.inputs) {
      const auto moved = operand_before(edit_, list_, input, p_);
      if (!moved) return {};
      inputs.push_back(*moved);
    }
    return remade(std::move(inputs), p_);
  }

  std::optional<Lowered> concatenation() {
    const std::int64_t rank = static_cast<std::int64_t>(p_.size());
    std::int64_t axis = op_.attributes.get_int("axis");
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return {};
    std::vector<std::int32_t> inputs;
    for (const std::int32_t input : op_.inputs) {
      if (edit_.shape(input).rank() != rank) return {};
      const auto moved = operand_before(edit_, list_, input, p_);
      if (!moved || (edit_.is_constant(input) && *moved == input)) return {};
      inputs.push_back(*moved);
    }
    op_.attributes.set("axis", p_[reef::at(axis)]);
    return remade(std::move(inputs), p_);
  }

  // Begin of a box that the operator cuts out: strides 1 and no dimension dropped.
  std::optional<std::vector<std::int64_t>> box_begins() const {
    auto begins = edit_.ints(op_.inputs[1]);
    const ir::Shape& in = edit_.shape(op_.inputs[0]);
    if (!begins || static_cast<int>(begins->size()) != in.rank()) return {};
    const ir::Attributes& attributes = op_.attributes;
    const bool strided = op_.type == Op::STRIDED_SLICE;
    if (strided) {
      const auto strides = edit_.ints(op_.inputs[3]);
      if (!strides || std::any_of(strides->begin(), strides->end(), [](std::int64_t s) { return s != 1; })) return {};
      for (const char* mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
        if (attributes.get_int(mask) != 0) return {};
      }
    }
    for (std::size_t i = 0; i < begins->size(); ++i) {
      const std::int32_t size = in[static_cast<int>(i)];
      if (strided && (attributes.get_int("begin_mask") >> i & 1) != 0) (*begins)[i] = 0;
      if ((*begins)[i] < 0) (*begins)[i] += size;
      const std::int64_t taken = edit_.shape(op_.outputs[0])[static_cast<int>(i)];
      if ((*begins)[i] < 0 || (*begins)[i] > size - taken) return {};
    }
    return begins;
  }

  std::optional<Lowered> slice() {
    const ir::Shape& out = edit_.shape(op_.outputs[0]);
    if (out.rank() != static_cast<int>(p_.size())) return {};
    const auto begins = box_begins();
    const auto x = operand_before(edit_, list_, op_.inputs[0], p_);
    if (!begins || !x || begins->size() != p_.size()) return {};
    std::vector<std::int64_t> moved(begins->size());
    for (std::size_t i = 0; i < moved.size(); ++i) moved[reef::at(p_[i])] = (*begins)[i];
    return Lowered{{list_.slice_box(*x, moved, before(edit_.shape(op_.outputs[0]), p_))}, as_ints(p_)};
  }

  std::optional<Lowered> split() {
    const bool sized = op_.type == Op::SPLIT_V;
    const auto axis_value = edit_.ints(op_.inputs[sized ? 2 : 0]);
    const std::int64_t rank = static_cast<std::int64_t>(p_.size());
    if (!axis_value || axis_value->size() != 1) return {};
    const std::int64_t axis = (*axis_value)[0] + ((*axis_value)[0] < 0 ? rank : 0);
    if (axis < 0 || axis >= rank) return {};
    const auto x = operand_before(edit_, list_, op_.inputs[sized ? 0 : 1], p_);
    if (!x) return {};
    std::vector<std::int32_t> inputs = op_.inputs;
    inputs[sized ? 0 : 1] = *x;
    inputs[sized ? 2 : 0] = list_.int_scalar(static_cast<std::int32_t>(p_[reef::at(axis)]));
    return remade(std::move(inputs), p_);
  }

  std::optional<Lowered> reduction() {
    const std::int64_t rank = static_cast<std::int64_t>(p_.size());
    auto axes = edit_.ints(op_.inputs[1]);
    if (!axes) return {};
    std::vector<bool> reduced(p_.size(), false);  // of the operand as it was
    for (std::int64_t& axis : *axes) {
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return {};
      axis = p_[reef::at(axis)];
      reduced[reef::at(axis)] = true;
    }
    const auto x = operand_before(edit_, list_, op_.inputs[0], p_);
    if (!x) return {};
    Permutation p = p_;
    if (!op_.attributes.get_bool("keep_dims")) {
      // Dimensions that stay, numbered anew on both sides.
      p.clear();
      for (const std::int64_t source : p_) {
        if (reduced[reef::at(source)]) continue;
        p.push_back(std::count(reduced.begin(), reduced.begin() + source, false));
      }
    }
    if (edit_.shape(op_.outputs[0]).rank() != static_cast<int>(p.size())) return {};
    return remade({*x, list_.int_vector(*axes)}, p);
  }

  std::optional<Lowered> view() {
    const std::int32_t transposer = edit_.producer(op_.inputs[0]);
    if (transposer < 0 || !is_view_op(edit_, transposer)) return {};
    const std::int32_t source = edit_.op(transposer).inputs[0];
    View view(edit_.shape(source));
    ReshapeTranspose form;
    if (!view.apply(edit_, transposer) || !view.apply(edit_, index_) || !as_reshape_transpose(view, form)) return {};
    const std::int32_t shaped = form.source == edit_.shape(source) ? source : list_.reshape(source, form.source);
    return Lowered{{shaped}, form.permutation};
  }

  ChipGraph& edit_;
  OpList& list_;
  ir::Operator op_;
  std::int32_t index_;
  const Permutation& p_;
};

}  // namespace

std::optional<Lowered> lower_past(ChipGraph& edit, OpList& list, std::int32_t op, std::int32_t tensor) {
  const std::int32_t transposer = edit.producer(tensor);
  if (transposer < 0 || edit.op(transposer).type != Op::TRANSPOSE || !is_view_op(edit, transposer)) return {};
  if (!edit.is_sound(op)) return {};
  return Lowering(edit, list, op, permutation_of(edit, transposer)).run();
}

}  // namespace reef::passes
