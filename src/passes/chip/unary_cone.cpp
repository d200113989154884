// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/unary_cone.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "ops/registry.h"

namespace reef::passes {
namespace {

constexpr std::size_t kUnaryConeMostOps = 64;

// All elements alike, with at most one scale.
bool is_one_value(const ChipGraph& edit, std::int32_t tensor) {
  const ir::Tensor& it = edit.tensor(tensor);
  const int bits = ir::bits_per_element(it.type);
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), it).span();
  if (bits < 8 || data.empty() || it.quantization.is_per_axis()) return false;
  const auto size = static_cast<std::size_t>(bits / 8);
  return std::equal(data.begin() + static_cast<std::ptrdiff_t>(size), data.end(), data.begin());
}

// Whether the operator can be inside; its computed inputs are added to `sources`.
bool is_elementwise(const ChipGraph& edit, std::int32_t index, const ir::Shape& shape,
                    std::set<std::int32_t>& sources) {
  const ir::Operator& op = edit.op(index);
  if (!ops::is_elementwise(op) || !edit.is_sound(index) || op.outputs.size() != 1) return false;
  for (const std::int32_t input : op.inputs) {
    if (input < 0) return false;
    if (edit.is_constant(input)) {
      if (!is_one_value(edit, input)) return false;
    } else {
      if (edit.shape(input) != shape || edit.tensor(input).is_variable) return false;
      sources.insert(input);
    }
  }
  return true;
}

bool is_read_only_inside(const ChipGraph& edit, std::int32_t tensor, const std::set<std::int32_t>& inside) {
  if (edit.is_graph_output(tensor)) return false;
  const std::vector<std::int32_t>& readers = edit.consumers(tensor);
  return std::all_of(readers.begin(), readers.end(), [&](std::int32_t op) { return inside.contains(op); });
}

}  // namespace

std::vector<Cone> cones_ending_at(const ChipGraph& edit, std::int32_t last, const ConeOptions& options) {
  std::vector<Cone> cones;
  if (edit.op(last).outputs.size() != 1 || edit.op(last).outputs[0] < 0) return cones;
  const std::int32_t y = edit.op(last).outputs[0];
  if (!edit.affine(y)) return cones;
  const ir::Shape shape = edit.shape(y);
  std::set<std::int32_t> inside, sources;
  bool some_does_not_fit = false, has_a_curve = false;
  std::int32_t next = last;  // the latest operator that is not inside yet: those before it may feed several of ours
  while (inside.size() < kUnaryConeMostOps && is_elementwise(edit, next, shape, sources)) {
    inside.insert(next);
    sources.erase(edit.op(next).outputs[0]);
    some_does_not_fit = some_does_not_fit || !edit.fits(next);
    has_a_curve = has_a_curve || edit.op(next).type == Op::LOGISTIC || edit.op(next).type == Op::TANH;
    const bool is_wanted = some_does_not_fit || (options.may_fit && has_a_curve && inside.size() > 1);
    if (sources.size() == 1 && edit.affine(*sources.begin()) && is_wanted) {
      cones.push_back({*sources.begin(), y, {inside.begin(), inside.end()}});
    }
    next = -1;
    for (const std::int32_t source : sources) next = std::max(next, edit.producer(source));
    if (next < 0) break;
    // DEQUANTIZE costs nothing to repeat: others that read its result (SIN beside COS) keep theirs.
    if (edit.op(next).type != Op::DEQUANTIZE && !is_read_only_inside(edit, edit.op(next).outputs[0], inside)) break;
  }
  std::reverse(cones.begin(), cones.end());
  return cones;
}

namespace {

// Whether `tensor` is x, is computed inside, or can be: by operators on x alone, which then are inside as well (the
// condition of a SELECT, beside what it selects from).
bool is_function_of(const ChipGraph& edit, std::int32_t tensor, std::int32_t x, const ir::Shape& shape,
                    std::set<std::int32_t>& inside, std::set<std::int32_t>& open, int depth = 0) {
  constexpr int kMostDepth = 8;
  const std::int32_t maker = edit.producer(tensor);
  if (tensor == x || (maker >= 0 && inside.contains(maker))) return true;
  std::set<std::int32_t> sources;
  if (maker < 0 || depth == kMostDepth || !is_elementwise(edit, maker, shape, sources)) return false;
  const bool all = std::all_of(sources.begin(), sources.end(), [&](std::int32_t source) {
    return is_function_of(edit, source, x, shape, inside, open, depth + 1);
  });
  if (!all || sources.empty()) return false;
  inside.insert(maker);
  open.insert(tensor);
  return true;
}

}  // namespace

std::optional<Cone> continuation(const ChipGraph& edit, const Cone& inner) {
  const ir::Shape shape = edit.shape(inner.y);
  std::set<std::int32_t> inside(inner.ops.begin(), inner.ops.end());
  std::set<std::int32_t> open = {inner.y};  // computed inside and read outside as well
  std::optional<Cone> largest;
  while (inside.size() < kUnaryConeMostOps && !open.empty()) {
    std::int32_t next = edit.op_count();  // the first reader that is not inside yet
    for (const std::int32_t tensor : open) {
      if (edit.is_graph_output(tensor)) return largest;
      for (const std::int32_t reader : edit.consumers(tensor)) {
        if (!inside.contains(reader)) next = std::min(next, reader);
      }
    }
    std::set<std::int32_t> sources;
    if (next == edit.op_count() || !is_elementwise(edit, next, shape, sources)) return largest;
    for (const std::int32_t source : sources) {
      if (!is_function_of(edit, source, inner.x, shape, inside, open)) return largest;
    }
    inside.insert(next);
    open.insert(edit.op(next).outputs[0]);
    std::erase_if(open, [&](std::int32_t tensor) {
      return !edit.consumers(tensor).empty() && is_read_only_inside(edit, tensor, inside);
    });
    if (open.size() == 1 && edit.affine(*open.begin())) {
      largest = {inner.x, *open.begin(), {inside.begin(), inside.end()}};
    }
  }
  return largest;
}

bool is_tame(const ChipGraph& edit, const Cone& cone, const Cone& whole, const Table& table) {
  std::vector<std::int32_t> rest;
  std::set_difference(whole.ops.begin(), whole.ops.end(), cone.ops.begin(), cone.ops.end(), std::back_inserter(rest));
  return amplification(edit, rest, cone.x, cone.y, whole.y, table) <= kLargestDifference;
}

bool rest_fits(const ChipGraph& edit, const Cone& whole, const Cone& part) {
  return std::all_of(whole.ops.begin(), whole.ops.end(), [&](std::int32_t op) {
    return edit.fits(op) || std::binary_search(part.ops.begin(), part.ops.end(), op);
  });
}

}  // namespace reef::passes
