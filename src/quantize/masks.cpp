// SPDX-License-Identifier: Apache-2.0
#include "quantize/masks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/registry.h"
#include "quantize/graph_constants.h"

namespace reef::quantize {
namespace {

constexpr float kFarBelow = 1000;  // under a row's largest; or a row's largest under 0: a mask was added
// A constant is a mask if it is this large, and so many times as large as the values beside it.
constexpr float kSmallestMaskConstant = 1e4f, kMaskRatio = 1000;
constexpr float kMuchWider = 64;  // an operand's range over what its sum can hold

// The result's elements are elements of input 0.
bool moves_input_0(const ir::Operator& op) {
  if (is_one_of(op.type, {Op::GATHER, Op::MAX_POOL_2D})) return true;
  return ops::form_of(op) == ops::Form::kMove && !is_one_of(op.type, {Op::SPLIT, Op::PADV2});
}

float reach(const Range& range) { return std::max(-range.min, range.max); }
float span_of(const Range& range) { return range.max - range.min; }
Range with_zero(float min, float max) { return {std::min(min, 0.0f), std::max(max, 0.0f)}; }
Range both(const Range& a, const Range& b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

class Unmasking {
 public:
  Unmasking(const ir::Model& model, const std::vector<Decision>& decisions, std::vector<Range> ranges)
      : model_(model), graph_(model.subgraphs[0]), index_(model), decisions_(decisions), ranges_(std::move(ranges)) {}

  std::vector<Range> run() {
    for (std::size_t i = 0; i < decisions_.size(); ++i) {
      if (decisions_[i].treatment == Treatment::kInteger) take_out_constants(graph_.operators[i]);
    }
    for (std::size_t i = decisions_.size(); i-- > 0;) {
      for (const std::int32_t t : graph_.operators[i].outputs) {
        if (is_value(t)) cut_to_need(t);
      }
    }
    for (const std::int32_t t : graph_.inputs) {
      if (is_value(t)) cut_to_need(t);
    }
    return std::move(ranges_);
  }

 private:
  Range& range(std::int32_t t) { return ranges_[reef::at(t)]; }
  bool is_float(std::int32_t t) const { return t >= 0 && graph_.tensors[reef::at(t)].type == ir::DataType::kFloat32; }
  bool is_constant(std::int32_t t) const {
    return is_float(t) && is_float_constant(model_, graph_.tensors[reef::at(t)]);
  }
  bool is_value(std::int32_t t) const { return is_float(t) && !is_constant(t); }

  bool only_largest_counts(std::int32_t t) const {
    const auto readers = index_.consumers(t);
    return !index_.is_output(t) && !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](std::int32_t i) {
      return ops::has_trait(graph_.operators[reef::at(i)], ops::Trait::kTakesLargest);
    });
  }

  void take_out_constants(const ir::Operator& op) {
    const bool inserts = ops::has_trait(op, ops::Trait::kCopiesOperands), moves = moves_input_0(op);
    if ((!inserts && !moves) || op.outputs.empty() || !is_value(op.outputs[0])) return;
    Range values;  // of what is no mask
    bool has_values = false, has_masks = false;
    for (const std::int32_t t : op.inputs) {
      if (!is_value(t)) continue;
      values = hull(values, range(t));
      has_values = true;
      has_masks = has_masks || was_masked_[reef::at(t)];
    }
    if (!has_values) return;
    const Range computed = values;
    const bool ignores_low = only_largest_counts(op.outputs[0]) && op.type == Op::PADV2;
    for (const std::int32_t t : op.inputs) {
      if (!inserts || !is_constant(t)) continue;
      for (const float v : float_values(model_, graph_.tensors[reef::at(t)])) {
        const float size = std::abs(v);
        const bool is_mask = is_masked(v) || (ignores_low && v < computed.min) ||
                             (size >= kSmallestMaskConstant && size > kMaskRatio * reach(computed));
        if (!is_mask) values = hull(values, with_zero(v, v));
        // What was observed may be without it already, as SOFTMAX reads it.
        const Range& seen = range(op.outputs[0]);
        has_masks = has_masks || (is_mask && (v < 0 ? seen.min <= v / 2 : seen.max >= v / 2));
      }
    }
    if (!has_masks) return;
    for (const std::int32_t t : op.outputs) {
      if (!is_value(t)) continue;
      range(t) = both(range(t), values);
      was_masked_[reef::at(t)] = true;
    }
  }

  // The range of which tensor t must hold what its readers can tell apart; nothing: all of it.
  std::optional<Range> need(std::int32_t t, int depth) {
    if (depth == 0 || index_.is_output(t) || index_.consumers(t).empty()) return std::nullopt;
    Range result;
    for (const std::int32_t i : index_.consumers(t)) {
      const ir::Operator& op = graph_.operators[reef::at(i)];
      std::optional<Range> one;
      if (decisions_[reef::at(i)].treatment != Treatment::kInteger) return std::nullopt;
      const bool is_sum = (op.type == Op::ADD || op.type == Op::SUB) && op.inputs.size() == 2;
      if (is_sum && op.inputs[0] != op.inputs[1] && is_value(op.outputs[0])) {
        const std::size_t position = op.inputs[0] == t ? 0 : 1;
        const std::int32_t other = op.inputs[1 - position];
        if (is_constant(other)) return std::nullopt;
        one = useful_range(op, position, range(t), range(other), range(op.outputs[0]), 0);
      } else if (moves_input_0(op) && op.inputs[0] == t && op.outputs.size() == 1) {
        one = need(op.outputs[0], depth - 1);
      }
      if (!one) return std::nullopt;
      result = hull(result, *one);
    }
    return result;
  }

  void cut_to_need(std::int32_t t) {
    constexpr int kDeepest = 8;
    if (span_of(range(t)) < kFarBelow) return;
    const std::optional<Range> needed = need(t, kDeepest);
    if (needed && span_of(range(t)) > kMuchWider * span_of(*needed)) range(t) = both(range(t), *needed);
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  ir::Uses index_;
  const std::vector<Decision>& decisions_;
  std::vector<Range> ranges_;
  std::vector<bool> was_masked_ = std::vector<bool>(ranges_.size(), false);
};

}  // namespace

std::vector<std::int64_t> softmax_rows(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses index(model);
  std::vector<std::int64_t> rows(graph.tensors.size(), 0);
  // From the back: a reader of a RESHAPE's result is known before the RESHAPE is looked at.
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const ir::Operator& op = graph.operators[i];
    if (op.inputs.empty() || op.inputs[0] < 0 || op.outputs.empty() || op.outputs[0] < 0) continue;
    const std::int32_t t = op.inputs[0];
    const ir::Shape& shape = graph.tensors[reef::at(t)].shape;
    if (index.consumers(t).size() != 1 || index.is_output(t) || shape.rank() < 1) continue;
    const std::int64_t behind = rows[reef::at(op.outputs[0])];
    const bool passes_on = op.type == Op::RESHAPE && behind > 0 && shape.last() == behind;
    if (op.type == Op::SOFTMAX || passes_on) rows[reef::at(t)] = shape.last();
  }
  return rows;
}

std::span<const float> as_softmax_reads(std::span<const float> values, std::int64_t row, std::vector<float>& memory) {
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(row, 1));
  const auto largest_of = [](std::span<const float> elements) {
    float largest = -std::numeric_limits<float>::infinity();
    for (const float v : elements) largest = v > largest && !is_masked(v) ? v : largest;
    return largest;
  };
  bool is_plain = true;
  for (std::size_t at = 0; is_plain && at + length <= values.size(); at += length) {
    const std::span<const float> elements = values.subspan(at, length);
    const float largest = largest_of(elements);
    is_plain = largest > -kFarBelow &&
               std::none_of(elements.begin(), elements.end(), [&](float v) { return v < largest - kFarBelow; });
  }
  if (is_plain) return values;
  // Results have steps of 1/256; all masked elements of a row together weigh less than half of one.
  const float depth = std::log(512.0f * static_cast<float>(length));
  memory.clear();
  for (std::size_t at = 0; at + length <= values.size(); at += length) {
    const std::span<const float> elements = values.subspan(at, length);
    const float largest = largest_of(elements);
    if (!(largest > -kFarBelow)) continue;
    for (const float v : elements) memory.push_back(v < largest - kFarBelow ? largest - depth : v);
  }
  return memory;
}

std::vector<Range> without_masks(const ir::Model& model, const std::vector<Decision>& decisions,
                                 std::vector<Range> ranges) {
  return Unmasking(model, decisions, std::move(ranges)).run();
}

Range useful_range(const ir::Operator& op, std::size_t position, const Range& constant, const Range& other,
                   const Range& result, double step) {
  if (op.type == Op::ADD) return both(constant, with_zero(result.min - other.max, result.max - other.min));
  if (op.type == Op::SUB && position == 1) {
    return both(constant, with_zero(other.min - result.max, other.max - result.min));
  }
  if (op.type == Op::SUB) return both(constant, with_zero(result.min + other.min, result.max + other.max));
  if (op.type == Op::MUL && step > 0) {
    const double most = static_cast<double>(reach(result)) / step;
    if (!(most > 0)) return constant;
    const auto limit = static_cast<float>(std::min<double>(most, kMask));
    return both(constant, {-limit, limit});
  }
  return constant;
}

}  // namespace reef::quantize
