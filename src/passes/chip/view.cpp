// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/view.h"
#include "ops/registry.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace reef::passes {
namespace {

void append_merged(std::vector<Factor>& list, const Factor& factor) {
  if (factor.size == 1) return;
  if (!list.empty() && list.back().stride == factor.stride * factor.size) {
    list.back() = {list.back().size * factor.size, factor.stride};
  } else {
    list.push_back(factor);
  }
}

}  // namespace

View::View(const ir::Shape& source) {
  std::int64_t stride = source.elements();
  for (const std::int32_t dim : source) {
    stride /= std::max(dim, 1);
    dims_.emplace_back();
    append_merged(dims_.back(), {dim, stride});
  }
}

ir::Shape View::shape() const {
  ir::Shape shape;
  for (const std::vector<Factor>& dim : dims_) {
    std::int64_t size = 1;
    for (const Factor& factor : dim) size *= factor.size;
    shape.push_back(static_cast<std::int32_t>(size));
  }
  return shape;
}

std::vector<Factor> View::factors() const {
  std::vector<Factor> all;
  for (const std::vector<Factor>& dim : dims_) {
    for (const Factor& factor : dim) append_merged(all, factor);
  }
  return all;
}

bool View::reshape(const ir::Shape& shape) {
  std::vector<Factor> rest = factors();
  std::reverse(rest.begin(), rest.end());  // taken from the back
  std::vector<std::vector<Factor>> dims;
  for (const std::int32_t size : shape) {
    dims.emplace_back();
    std::int64_t open = size;
    while (open > 1) {
      if (rest.empty()) return false;
      const Factor next = rest.back();
      rest.pop_back();
      if (open % next.size == 0) {
        append_merged(dims.back(), next);
        open /= next.size;
      } else if (next.size % open == 0) {
        const std::int64_t inner = next.size / open;
        append_merged(dims.back(), {open, next.stride * inner});
        rest.push_back({inner, next.stride});
        open = 1;
      } else {
        return false;
      }
    }
  }
  dims_ = std::move(dims);
  return rest.empty();
}

bool View::transpose(std::span<const std::int64_t> permutation) {
  if (permutation.size() != dims_.size()) return false;
  std::vector<std::vector<Factor>> dims;
  for (const std::int64_t source : permutation) dims.push_back(dims_[at(source)]);
  dims_ = std::move(dims);
  return true;
}

bool View::apply(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  const ir::Shape in = edit.shape(op.inputs[0]), out = edit.shape(op.outputs[0]);
  if (shape() != in) return false;
  if (op.type == Op::TRANSPOSE) return transpose(permutation_of(edit, index));
  if (op.type == Op::DEPTH_TO_SPACE || op.type == Op::SPACE_TO_DEPTH) {
    const auto block = static_cast<std::int32_t>(op.attributes.get_int("block_size"));
    if (op.type == Op::DEPTH_TO_SPACE) {
      const std::int64_t order[] = {0, 1, 3, 2, 4, 5};
      return reshape({in[0], in[1], in[2], block, block, in[3] / (block * block)}) && transpose(order) && reshape(out);
    }
    const std::int64_t order[] = {0, 1, 3, 2, 4, 5};
    return reshape({in[0], in[1] / block, block, in[2] / block, block, in[3]}) && transpose(order) && reshape(out);
  }
  return reshape(out);
}

std::vector<std::int64_t> permutation_of(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  auto values = edit.ints(op.inputs[1]);
  const int rank = edit.shape(op.inputs[0]).rank();
  if (!values || static_cast<int>(values->size()) != rank) return {};
  std::vector<bool> seen(values->size(), false);
  for (std::int64_t& value : *values) {
    if (value < 0) value += rank;
    if (value < 0 || value >= rank || seen[at(value)]) return {};
    seen[at(value)] = true;
  }
  return *values;
}

bool is_view_op(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (ops::form_of(op) != ops::Form::kMove || !edit.is_sound(index)) return false;
  const ir::Shape &in = edit.shape(op.inputs[0]), &out = edit.shape(op.outputs[0]);
  // Elements keep their meaning only if they are stored alike.
  if (in.elements() != out.elements() || in.elements() == 0) return false;
  if (!edit.same_quantization(op.inputs[0], op.outputs[0])) return false;
  if (ops::has_same_bytes(op)) return true;
  if (op.type == Op::TRANSPOSE) {
    const std::vector<std::int64_t> permutation = permutation_of(edit, index);
    if (static_cast<int>(permutation.size()) != out.rank() || out.rank() != in.rank()) return false;
    for (int i = 0; i < out.rank(); ++i) {
      if (out[i] != in[static_cast<int>(permutation[at(i)])]) return false;
    }
    return true;
  }
  if (op.type != Op::DEPTH_TO_SPACE && op.type != Op::SPACE_TO_DEPTH) return false;
  const std::int64_t block = op.attributes.get_int("block_size");
  if (in.rank() != 4 || out.rank() != 4 || block < 1 || block > 64 || in[0] != out[0]) return false;
  const ir::Shape& deep = op.type == Op::DEPTH_TO_SPACE ? in : out;
  const ir::Shape& wide = op.type == Op::DEPTH_TO_SPACE ? out : in;
  return deep[3] == wide[3] * block * block && wide[1] == deep[1] * block && wide[2] == deep[2] * block;
}

bool ReshapeTranspose::is_identity() const { return std::is_sorted(permutation.begin(), permutation.end()); }

bool as_reshape_transpose(const View& view, ReshapeTranspose& result) {
  // Dimensions of size 1 go wherever they disturb least: to the front, or to the end where they end the shape.
  const auto& dims = view.dims();
  std::size_t last = dims.size();
  while (last > 0 && dims[last - 1].empty()) --last;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].size() > 1) return false;
    if (dims[i].empty()) {
      strides.push_back(i >= last ? 0 : std::numeric_limits<std::int64_t>::max());
    } else {
      strides.push_back(dims[i][0].stride);
    }
  }
  std::vector<int> order(dims.size());  // dimensions of the result, in the order of the source
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[at(a)] > strides[at(b)]; });
  const ir::Shape shape = view.shape();
  result.source = {};
  result.permutation.assign(dims.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.source.push_back(shape[order[i]]);
    result.permutation[at(order[i])] = static_cast<int>(i);
  }
  return true;
}

}  // namespace reef::passes
