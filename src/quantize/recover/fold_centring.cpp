// SPDX-License-Identifier: Apache-2.0
// Mean subtraction of a normalization, done by what is in front of it or by the layer behind it.
//
// In front: where x is a sum of embeddings, constants and layers, and nobody reads it but the normalization, their own
// means can be left out, and x has none:
//
//   before: x = ADD(GATHER(table), places); c = SUB(x, MEAN(x))        after: x of centred constants is c
//           s = SQUARED_DIFFERENCE(x, MEAN(x))                               s = MUL(x, x)
//
// Behind: a normalization divides x - mean(x) by a deviation; where a layer reads the result, mean(x) falls away if the
// weights of each of the layer's outputs add up to zero: W (x - m 1) r = (W - mean of its rows) x r. So the product
// reads x itself, the weights are centred, and x - mean(x) is not computed: an operator less, and what matters here,
// one rounding to 8 bits less on the way of every value. What the network computes stays the same.
//
//   before: c = SUB(x, MEAN(x)); n = MUL(c, r); y = layer(n)        after: n = MUL(x, r); y = centred layer(n)
//
// Either way x - mean(x) is not computed. Behind, where means are large against what varies, the range of n grows and
// this loses; whether it helps is measured.
#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "formats/tflite/operator_codes.h"
#include "quantize/graph_constants.h"
#include "quantize/op_rules.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

// By what is behind.
struct Centring {
  std::size_t subtraction, product;  // operators
  std::int32_t x;                    // tensor
  std::vector<std::size_t> layers;   // operators that read the product
};

// By what is in front.
struct Sources {
  std::size_t subtraction;             // operator
  std::vector<std::int32_t> rows;      // constants whose last axis is that of x
  std::vector<std::int32_t> channels;  // constants whose first axis is: weights and biases
  std::vector<std::int32_t> sums;      // tensors that have no mean afterwards
};

class Finder {
 public:
  explicit Finder(const ir::Model& model) : model_(model), graph_(model.subgraphs[0]), index_(model) {}

  std::optional<Sources> in_front_of(std::size_t number) const {
    const ir::Operator& sub = graph_.operators[number];
    if (!is_centring(sub) || index_.is_output(sub.outputs[0])) return std::nullopt;
    const std::int32_t x = sub.inputs[0];
    for (const std::int32_t reader : index_.consumers(x)) {
      const ir::Operator& op = graph_.operators[reef::at(reader)];
      const bool is_difference = (op.type == Op::SUB || op.type == Op::SQUARED_DIFFERENCE) && op.inputs[0] == x;
      if (is_difference ? !is_mean_of(op.inputs[1], x) : !is_mean_of(op.outputs[0], x)) return std::nullopt;
    }
    Sources sources{number, {}, {}, {}};
    const bool found = !index_.is_output(x) && collect(x, tensor(x).shape.last(), sources);
    return found ? std::optional(std::move(sources)) : std::nullopt;
  }

  std::optional<Centring> at(std::size_t number) const {
    const ir::Operator& sub = graph_.operators[number];
    if (!is_centring(sub)) return std::nullopt;
    const std::int32_t c = sub.outputs[0];
    for (const std::int32_t reader : index_.consumers(c)) {
      const ir::Operator& mul = graph_.operators[reef::at(reader)];
      if (mul.type != Op::MUL || is_activated(mul) || index_.is_output(c) || mul.inputs[0] == mul.inputs[1]) continue;
      const std::int32_t factor = mul.inputs[mul.inputs[0] == c ? 1 : 0];
      const ir::Shape& factors = tensor(factor).shape;
      const bool is_one_per_row = factors.rank() == 0 || factors.last() == 1;
      if (!is_one_per_row || tensor(mul.outputs[0]).shape != tensor(c).shape) continue;
      if (auto layers = layers_behind(mul.outputs[0])) {
        return Centring{number, static_cast<std::size_t>(reader), sub.inputs[0], std::move(*layers)};
      }
    }
    return std::nullopt;
  }

 private:
  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[reef::at(t)]; }
  static bool is_activated(const ir::Operator& op) {
    return op.attributes.get_enum("fused_activation_function", "NONE") != "NONE";
  }

  bool is_centring(const ir::Operator& sub) const {
    return sub.type == Op::SUB && !is_activated(sub) && is_mean_of(sub.inputs[1], sub.inputs[0]);
  }
  bool is_own_constant(std::int32_t t) const { return quantize::is_own_constant(model_, index_, t); }

  // The constants that `t`, with rows of this width, is a sum of, each times something that its other axes give.
  bool collect(std::int32_t t, std::int32_t width, Sources& sources) const {
    if (t < 0 || tensor(t).shape.rank() < 1 || tensor(t).shape.last() != width) return false;
    if (is_own_constant(t)) return sources.rows.push_back(t), true;
    const std::int32_t producer = index_.producer(t);
    if (producer < 0) return false;
    const ir::Operator& op = graph_.operators[reef::at(producer)];
    if (is_activated(op)) return false;
    sources.sums.push_back(t);
    const auto is_alone = [&](std::int32_t operand) { return operand >= 0 && index_.has_one_use(operand); };
    if (op.type == Op::ADD) {
      return op.inputs[0] != op.inputs[1] && is_alone(op.inputs[0]) && is_alone(op.inputs[1]) &&
             collect(op.inputs[0], width, sources) && collect(op.inputs[1], width, sources);
    }
    if (op.type == Op::GATHER) {
      const std::int32_t table = op.inputs[0];
      const bool takes_rows = op.attributes.get_int("axis") == 0 && op.attributes.get_int("batch_dims") == 0;
      if (!takes_rows || !is_own_constant(table) || tensor(table).shape.rank() < 2) return false;
      return tensor(table).shape.last() == width && (sources.rows.push_back(table), true);
    }
    if (op.type != Op::FULLY_CONNECTED && op.type != Op::CONV_2D) return false;
    const std::int32_t bias = op.inputs.size() > 2 ? op.inputs[2] : -1;
    if (!is_own_constant(op.inputs[1]) || (bias >= 0 && !is_own_constant(bias))) return false;
    sources.channels.push_back(op.inputs[1]);
    if (bias >= 0) sources.channels.push_back(bias);
    return tensor(op.inputs[1]).shape[0] == width;
  }

  // Over the last dimension, which is kept.
  bool is_mean_of(std::int32_t mean, std::int32_t x) const {
    const std::int32_t producer = index_.producer(mean);
    if (producer < 0 || x < 0) return false;
    const ir::Operator& op = graph_.operators[reef::at(producer)];
    if (op.type != Op::MEAN || op.inputs[0] != x) return false;
    ir::Shape expected = tensor(x).shape;
    if (expected.rank() < 2) return false;
    expected[expected.rank() - 1] = 1;
    return tensor(mean).shape == expected;
  }

  // All readers of `t`, if they are layers whose weights have a row for each output and place and are theirs alone.
  std::optional<std::vector<std::size_t>> layers_behind(std::int32_t t) const {
    if (index_.is_output(t) || index_.consumers(t).empty()) return std::nullopt;
    std::vector<std::size_t> layers;
    for (const std::int32_t reader : index_.consumers(t)) {
      const ir::Operator& op = graph_.operators[reef::at(reader)];
      if ((op.type != Op::FULLY_CONNECTED && op.type != Op::CONV_2D) || op.inputs[0] != t) return std::nullopt;
      const std::int32_t weights = op.inputs[1];
      if (!is_own_constant(weights) || tensor(weights).shape.rank() < 2) return std::nullopt;
      if (tensor(weights).shape.last() != tensor(t).shape.last()) return std::nullopt;
      layers.push_back(static_cast<std::size_t>(reader));
    }
    return layers;
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  ir::Uses index_;
};

// Takes the mean along one axis from a constant's values. The axis is the first or the last.
void centre(ir::Model& model, std::int32_t constant, bool along_last) {
  ir::Tensor& tensor = model.subgraphs[0].tensors[reef::at(constant)];
  std::vector<float> values = float_values(model, tensor);
  const auto length = static_cast<std::size_t>(along_last ? tensor.shape.last() : tensor.shape[0]);
  const std::size_t lines = length == 0 ? 0 : values.size() / length, step = along_last ? 1 : lines;
  for (std::size_t line = 0; line < lines; ++line) {
    float* const first = values.data() + line * (along_last ? length : 1);
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += first[i * step];
    const double mean = sum / static_cast<double>(length);
    for (std::size_t i = 0; i < length; ++i) first[i * step] = static_cast<float>(first[i * step] - mean);
  }
  set_constant(model, tensor, values);
}

// x has no mean: it is what was computed by subtracting it, and its square is the squared difference from it.
void use_without_mean(ir::Subgraph& graph, const ir::Operator& subtraction) {
  const std::int32_t x = subtraction.inputs[0], mean = subtraction.inputs[1], c = subtraction.outputs[0];
  for (ir::Operator& op : graph.operators) {
    if (op.type == Op::SQUARED_DIFFERENCE && op.inputs[0] == x && op.inputs[1] == mean) {
      op.type = name_of(Op::MUL);
      op.builtin_code = tflite::builtin_code(op.type);
      op.version = 1;
      op.options_type = "MulOptions";
      op.attributes = ir::Attributes();
      op.inputs = {x, x};
    }
    std::replace(op.inputs.begin(), op.inputs.end(), c, x);
  }
}

int fold_in_front(ir::Model& model) {
  ir::Subgraph& graph = model.subgraphs[0];
  std::vector<Sources> found;
  {
    const Finder finder(model);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      if (auto sources = finder.in_front_of(i)) found.push_back(std::move(*sources));
    }
  }
  for (const Sources& sources : found) {
    for (const std::int32_t constant : sources.rows) centre(model, constant, true);
    for (const std::int32_t constant : sources.channels) centre(model, constant, false);
    for (const std::int32_t sum : sources.sums) graph.tensors[reef::at(sum)].name += kCentredSuffix;
    use_without_mean(graph, ir::Operator(graph.operators[sources.subtraction]));
  }
  drop_unread(model);
  return static_cast<int>(found.size());
}

}  // namespace

int fold_centring(ir::Model& model) {
  const int in_front = fold_in_front(model);
  ir::Subgraph& graph = model.subgraphs[0];
  std::vector<Centring> found;
  {
    const Finder finder(model);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      if (auto centring = finder.at(i)) found.push_back(std::move(*centring));
    }
  }
  for (const Centring& centring : found) {
    const std::int32_t c = graph.operators[centring.subtraction].outputs[0];
    for (std::int32_t& t : graph.operators[centring.product].inputs) t = t == c ? centring.x : t;
    for (const std::size_t layer : centring.layers) centre(model, graph.operators[layer].inputs[1], true);
  }
  drop_unread(model);
  return in_front + static_cast<int>(found.size());
}

Status fold_centring(Session& session) {
  ir::Model model = *session.best().model;
  const int count = fold_centring(model);
  if (count == 0) return ok_status();
  return session.consider_rewritten(
      std::move(model), fmt::format("mean subtraction of {} normalizations done by constants and layers", count));
}

}  // namespace reef::quantize
