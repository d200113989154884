// SPDX-License-Identifier: Apache-2.0
#include "lower/attention_plan.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "chip/machine.h"
#include "ir/uses.h"
#include "lower/element_maps.h"
#include "lower/matrix_product.h"
#include "ops/inferred_shapes.h"
#include "ops/registry.h"

namespace reef::lower {
namespace {

constexpr std::int64_t kMostFollowed = std::int64_t{1} << 22;  // that are followed one by one
constexpr std::int64_t kMostValueBytes = 64 << 10;             // of a tile

// Elements of a tensor, and for each of them the element of another tensor that it is.
struct Origin {
  std::int32_t tensor = -1;
  std::vector<std::int64_t> elements;
};

class Finder {
 public:
  Finder(const ir::Model& model, const std::vector<std::int32_t>& ops, const std::set<std::int32_t>& outputs)
      : model_(model), graph_(model.subgraphs[0]), part_(ops.begin(), ops.end()), outputs_(outputs), uses_(model) {
    outputs_.insert(graph_.outputs.begin(), graph_.outputs.end());
  }

  std::optional<Attention> at(std::int32_t first) const {
    const ir::Operator& op = this->op(first);
    if (op.type != Op::BATCH_MATMUL || !is_sound(first)) return {};
    Attention found;
    found.scores_op = first;
    found.scores = op.outputs[0];
    if (!follow_to_means(found)) return {};
    if (!is_sound(found.softmax_op) || !is_sound(found.means_op)) return {};
    const ir::Operator& means = this->op(found.means_op);
    const ir::Shape &scores = shape(found.scores), &out = shape(means.outputs[0]);
    if (scores.rank() < 2 || out.rank() != scores.rank()) return {};
    found.heads = static_cast<std::int32_t>(scores.product(0, scores.rank() - 2));
    const std::int32_t queries = scores.last(1), keys = scores.last(0);
    found.value_depth = out.last();
    found.depth = shape(op.inputs[0]).last(op.attributes.get_bool("adj_x") ? 1 : 0);
    const auto q = heads_of(op.inputs[0], found.heads, queries, found.depth, op.attributes.get_bool("adj_x"));
    const auto k = heads_of(op.inputs[1], found.heads, keys, found.depth, !op.attributes.get_bool("adj_y"));
    const auto v = heads_of(means.inputs[1], found.heads, keys, found.value_depth, means.attributes.get_bool("adj_y"));
    if (!q || !k || !v || means.attributes.get_bool("adj_x") || q->source_tokens != queries) return {};
    found.queries = *q;
    found.keys = *k;
    found.values = *v;
    const bool whole_words = found.depth % kWord == 0 && found.value_depth % kWord == 0;
    // Values of one head are copied as a whole.
    const bool fits = keys <= kMostMatrixDepth && std::int64_t{keys} * found.value_depth <= kMostValueBytes;
    if (!whole_words || !fits || found.value_depth > chip::kCells) return {};
    if (!find_result(found)) return {};
    return found;
  }

  // Operators that only move elements, whose results nobody reads but `readers` and others like that.
  void leave_out(const Attention& attention, std::set<std::int32_t>& left_out) const {
    std::set<std::int32_t> done = left_out;
    done.insert({attention.scores_op, attention.means_op});
    for (std::int32_t at = attention.result; at != op(attention.means_op).outputs[0];) {
      const std::int32_t maker = uses_.producer(at);
      left_out.insert(maker);
      at = op(maker).inputs[source_operand(op(maker))];
    }
    std::vector<std::int32_t> open = {op(attention.scores_op).inputs[0], op(attention.scores_op).inputs[1],
                                      op(attention.means_op).inputs[1]};
    while (!open.empty()) {
      const std::int32_t tensor = open.back();
      open.pop_back();
      const std::int32_t maker = maker_of(tensor);
      if (maker < 0 || done.contains(maker) || !moves(maker)) continue;
      const ir::Operator& op = this->op(maker);
      const bool is_needed = std::any_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t output) {
        if (output < 0) return false;
        const auto& readers = uses_.consumers(output);
        return outputs_.contains(output) ||
               std::any_of(readers.begin(), readers.end(), [&](std::int32_t reader) { return !done.contains(reader); });
      });
      if (is_needed) continue;
      done.insert(maker);
      left_out.insert(maker);
      open.push_back(op.inputs[source_operand(op)]);
    }
  }

 private:
  // In the part, with the shapes that it gives: everything here indexes by these.
  bool is_sound(std::int32_t index) const {
    return part_.contains(index) && !op(index).is_custom() && ops::check_declared_shapes(model_, 0, op(index)).ok();
  }
  const ir::Operator& op(std::int32_t index) const { return graph_.operators[reef::at(index)]; }
  const ir::Shape& shape(std::int32_t tensor) const { return graph_.tensors[reef::at(tensor)].shape; }
  bool is_constant(std::int32_t tensor) const {
    return !ir::constant_data(model_, graph_.tensors[reef::at(tensor)]).empty();
  }
  std::vector<std::int64_t> numbers(std::int32_t tensor) const {
    const ir::Tensor& from = graph_.tensors[reef::at(tensor)];
    const Bytes& data = ir::constant_data(model_, from);
    std::vector<std::int32_t> values(data.size() / sizeof(std::int32_t));
    if (from.type != ir::DataType::kInt32) return {};
    std::memcpy(values.data(), data.data(), values.size() * sizeof(std::int32_t));
    return {values.begin(), values.end()};
  }
  bool same_quantization(std::int32_t a, std::int32_t b) const {
    const ir::Quantization &qa = graph_.tensors[reef::at(a)].quantization,
                           &qb = graph_.tensors[reef::at(b)].quantization;
    return graph_.tensors[reef::at(a)].type == graph_.tensors[reef::at(b)].type && qa.scale == qb.scale &&
           qa.zero_point == qb.zero_point;
  }
  // The operator that computes a tensor; -1: none does, or the tensor is left out.
  std::int32_t maker_of(std::int32_t tensor) const { return tensor < 0 ? -1 : uses_.producer(tensor); }
  // The only operator that reads a tensor, in the part; -1: there is none, or others see it.
  std::int32_t only_reader(std::int32_t tensor) const {
    if (tensor < 0) return -1;
    const auto& readers = uses_.consumers(tensor);
    return readers.size() == 1 && !outputs_.contains(tensor) && part_.contains(readers[0]) ? readers[0] : -1;
  }

  // ---- From scores to the second product ----

  // A sum or a product with constants that are one number, or one for each key.
  bool is_mask(std::int32_t index, std::int32_t tensor) const {
    const ir::Operator& op = this->op(index);
    if ((op.type != Op::ADD && op.type != Op::SUB && op.type != Op::MUL) || !is_sound(index)) return false;
    if (op.inputs.size() != 2 || shape(op.outputs[0]) != shape(tensor)) return false;
    const std::int32_t other = op.inputs[0] == tensor ? op.inputs[1] : op.inputs[0];
    if (other == tensor || !is_constant(other)) return false;
    const std::int64_t elements = shape(other).elements();
    return elements == 1 || (elements == shape(other).last() && elements == shape(tensor).last());
  }

  bool follow_to_means(Attention& found) const {
    std::int32_t tensor = found.scores;
    for (;;) {
      const std::int32_t reader = only_reader(tensor);
      if (reader < 0) return false;
      if (op(reader).type == Op::SOFTMAX) {
        found.softmax_op = reader;
        found.means_op = only_reader(op(reader).outputs[0]);
        break;
      }
      if (!is_mask(reader, tensor)) return false;
      found.masks.push_back(reader);
      tensor = op(reader).outputs[0];
    }
    if (found.means_op < 0 || op(found.means_op).type != Op::BATCH_MATMUL) return false;
    return op(found.means_op).inputs[0] == op(found.softmax_op).outputs[0] &&
           op(found.means_op).inputs[1] != op(found.softmax_op).outputs[0];
  }

  // ---- Movement ----

  static std::size_t source_operand(const ir::Operator& op) { return op.type == Op::SPLIT ? 1 : 0; }

  bool moves(std::int32_t index) const {
    // The kinds that map_of() has a formula for.
    const bool is_known = is_one_of(op(index).type, {Op::RESHAPE, Op::SQUEEZE, Op::EXPAND_DIMS, Op::TRANSPOSE,
                                                     Op::SPLIT, Op::SPLIT_V, Op::SLICE, Op::TILE, Op::STRIDED_SLICE});
    if (!is_known || !is_sound(index)) return false;
    if (op(index).type == Op::STRIDED_SLICE && !is_plain_slice(op(index))) return false;
    const std::int32_t from = op(index).inputs[source_operand(op(index))];
    return std::all_of(op(index).outputs.begin(), op(index).outputs.end(),
                       [&](std::int32_t to) { return same_quantization(from, to); });
  }

  // A box: all strides 1, no dimension added or dropped, begins counted from the front.
  bool is_plain_slice(const ir::Operator& op) const {
    for (const char* mask : {"begin_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
      if (op.attributes.get_int(mask) != 0) return false;
    }
    const std::vector<std::int64_t> begins = numbers(op.inputs[1]), strides = numbers(op.inputs[3]);
    return !begins.empty() && std::all_of(begins.begin(), begins.end(), [](std::int64_t b) { return b >= 0; }) &&
           std::all_of(strides.begin(), strides.end(), [](std::int64_t stride) { return stride == 1; });
  }

  // Which element of the operand each element of `output` is.
  std::optional<ElementMap> map_of(const ir::Operator& op, std::int32_t output) const {
    const ir::Shape &from = shape(op.inputs[source_operand(op)]), &to = shape(output);
    if (ops::has_same_bytes(op)) return in_order();
    if (from.rank() != to.rank() || from.rank() == 0) return {};
    const std::vector<std::int64_t> strides = element_strides(from);
    std::vector<std::int64_t> order(static_cast<std::size_t>(to.rank())), begin(static_cast<std::size_t>(to.rank()), 0);
    std::iota(order.begin(), order.end(), 0);
    if (op.type == Op::TRANSPOSE) order = numbers(op.inputs[1]);
    if (op.type == Op::SLICE || op.type == Op::STRIDED_SLICE) begin = numbers(op.inputs[1]);
    if (order.size() != strides.size() || begin.size() != strides.size()) return {};
    if (op.type == Op::SPLIT || op.type == Op::SPLIT_V) {
      const std::vector<std::int64_t> axis = numbers(op.inputs[op.type == Op::SPLIT ? 0 : 2]);
      if (axis.size() != 1) return {};
      const auto d = static_cast<int>(axis[0] < 0 ? axis[0] + from.rank() : axis[0]);
      if (d < 0 || d >= from.rank()) return {};
      for (const std::int32_t before : op.outputs) {
        if (before == output) break;
        begin[reef::at(d)] += shape(before)[d];
      }
    }
    AxisOffsets axes;
    for (int d = 0; d < to.rank(); ++d) {
      const std::int64_t source = order[reef::at(d)];
      if (source < 0 || source >= from.rank()) return {};
      std::vector<std::int64_t> offsets;
      for (std::int64_t i = 0; i < to[d]; ++i) {
        std::int64_t at = begin[reef::at(d)] + i;
        if (op.type == Op::TILE) at %= from[static_cast<int>(source)];
        if (at < 0 || at >= from[static_cast<int>(source)]) return {};
        offsets.push_back(at * strides[reef::at(source)]);
      }
      axes.offsets.push_back(std::move(offsets));
    }
    return by_axes(std::move(axes));
  }

  // Back through everything that only moves elements.
  std::optional<Origin> origin_of(std::int32_t tensor) const {
    const std::int64_t count = shape(tensor).elements();
    if (count < 1 || count > kMostFollowed) return {};
    Origin origin{tensor, std::vector<std::int64_t>(static_cast<std::size_t>(count))};
    std::iota(origin.elements.begin(), origin.elements.end(), 0);
    for (;;) {
      const std::int32_t maker = maker_of(origin.tensor);
      if (maker < 0 || !moves(maker)) return origin;
      const ir::Operator& op = this->op(maker);
      const auto map = map_of(op, origin.tensor);
      if (!map) return origin;
      for (std::int64_t& element : origin.elements) element = (*map)(element).element;
      origin.tensor = op.inputs[source_operand(op)];
    }
  }

  // Operand [heads, tokens, depth], or [heads, depth, tokens] if swapped; the leading dimensions may be repeated.
  std::optional<Heads> heads_of(std::int32_t tensor, std::int32_t heads, std::int32_t tokens, std::int32_t depth,
                                bool swapped) const {
    if (is_constant(tensor) || shape(tensor).rank() < 2) return {};
    const ir::Shape& operand = shape(tensor);
    if (operand.last(swapped ? 0 : 1) != tokens || operand.last(swapped ? 1 : 0) != depth) return {};
    const std::int64_t size = std::int64_t{tokens} * depth, matrices = operand.elements() / size;
    if (matrices != heads && matrices != 1) return {};
    const auto origin = origin_of(tensor);
    if (!origin || is_constant(origin->tensor)) return {};
    Heads result{origin->tensor, tokens, shape(origin->tensor).last(), 0, {}};
    result.source_tokens = static_cast<std::int32_t>(shape(origin->tensor).elements() / result.channels);
    if (result.source_tokens < tokens) return {};
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t at = matrices == 1 ? 0 : head * size;
      const auto element = [&](std::int64_t token, std::int64_t channel) {
        return origin->elements[reef::at(at + (swapped ? channel * tokens + token : token * depth + channel))];
      };
      const std::int64_t first = element(0, 0);
      if (first % kWord != 0 || first + depth > result.channels) return {};
      for (std::int64_t token = 0; token < tokens; ++token) {
        for (std::int64_t channel = 0; channel < depth; ++channel) {
          if (element(token, channel) != token * result.channels + first + channel) return {};
        }
      }
      result.first.push_back(static_cast<std::int32_t>(first));
    }
    return result;
  }

  // Forward from the second product to where all heads' channels of a token are together.
  bool find_result(Attention& found) const {
    const std::int32_t means = op(found.means_op).outputs[0];
    std::int32_t tensor = means;
    for (;;) {
      const std::int32_t reader = only_reader(tensor);
      if (reader < 0 || !moves(reader) || op(reader).outputs.size() != 1) return false;
      tensor = op(reader).outputs[0];
      if (is_joined(found, means, tensor)) {
        found.result = tensor;
        return true;
      }
    }
  }
  bool is_joined(const Attention& found, std::int32_t means, std::int32_t tensor) const {
    const std::int32_t heads = found.heads, depth = found.value_depth, tokens = found.queries.tokens;
    if (shape(tensor).last() != heads * depth || shape(tensor).elements() != std::int64_t{tokens} * heads * depth) {
      return false;
    }
    const auto origin = origin_of(tensor);
    if (!origin || origin->tensor != means) return false;
    for (std::int64_t e = 0; e < static_cast<std::int64_t>(origin->elements.size()); ++e) {
      const std::int64_t channel = e % depth, head = e / depth % heads, token = e / depth / heads;
      if (origin->elements[reef::at(e)] != (head * tokens + token) * depth + channel) return false;
    }
    return true;
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  const std::set<std::int32_t> part_;
  std::set<std::int32_t> outputs_;
  const ir::Uses uses_;
};

}  // namespace

AttentionPlan::AttentionPlan(const ir::Model& model, const std::vector<std::int32_t>& ops,
                             const std::set<std::int32_t>& outputs) {
  const bool has_products = std::any_of(ops.begin(), ops.end(), [&](std::int32_t op) {
    return model.subgraphs[0].operators[reef::at(op)].type == Op::BATCH_MATMUL;
  });
  if (!has_products) return;
  const Finder finder(model, ops, outputs);
  for (const std::int32_t op : ops) {
    auto found = finder.at(op);
    if (!found) continue;
    finder.leave_out(*found, left_out_);
    for (const std::int32_t named : {found->scores_op, found->softmax_op, found->means_op}) by_op_[named] = all_.size();
    for (const std::int32_t mask : found->masks) by_op_[mask] = all_.size();
    all_.push_back(std::move(*found));
  }
}

}  // namespace reef::lower
