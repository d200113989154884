// SPDX-License-Identifier: Apache-2.0
// Mean subtraction of a normalization, done by the layer behind it.
//
// A normalization divides x - mean(x) by a deviation; where a layer reads the result, mean(x) falls away if the weights
// of each of the layer's outputs add up to zero: W (x - m 1) r = (W - mean of its rows) x r. So the product reads x
// itself, the weights are centred, and x - mean(x) is not computed: an operator less, and what matters here, one
// rounding to 8 bits less on the way of every value. What the network computes stays the same.
//
//   before: c = SUB(x, MEAN(x)); n = MUL(c, r); y = layer(n)        after: n = MUL(x, r); y = centred layer(n)
//
// Where means are large against what varies, the range of n grows and this loses; whether it helps is measured.
#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "quantize/graph_index.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

struct Centring {
  std::size_t subtraction, product;  // operators
  std::int32_t x;                    // tensor
  std::vector<std::size_t> layers;   // operators that read the product
};

class Finder {
 public:
  explicit Finder(const ir::Model& model) : model_(model), graph_(model.subgraphs[0]), index_(model) {}

  std::optional<Centring> at(std::size_t number) const {
    const ir::Operator& sub = graph_.operators[number];
    if (sub.type != "SUB" || is_activated(sub) || !is_mean_of(sub.inputs[1], sub.inputs[0])) return std::nullopt;
    const std::int32_t c = sub.outputs[0];
    for (const std::int32_t reader : index_.consumers(c)) {
      const ir::Operator& mul = graph_.operators[static_cast<std::size_t>(reader)];
      if (mul.type != "MUL" || is_activated(mul) || index_.is_output(c) || mul.inputs[0] == mul.inputs[1]) continue;
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
  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[static_cast<std::size_t>(t)]; }
  static bool is_activated(const ir::Operator& op) {
    return op.attributes.get_enum("fused_activation_function", "NONE") != "NONE";
  }

  // Over the last dimension, which is kept.
  bool is_mean_of(std::int32_t mean, std::int32_t x) const {
    const std::int32_t producer = index_.producer(mean);
    if (producer < 0 || x < 0) return false;
    const ir::Operator& op = graph_.operators[static_cast<std::size_t>(producer)];
    if (op.type != "MEAN" || op.inputs[0] != x) return false;
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
      const ir::Operator& op = graph_.operators[static_cast<std::size_t>(reader)];
      if ((op.type != "FULLY_CONNECTED" && op.type != "CONV_2D") || op.inputs[0] != t) return std::nullopt;
      const std::int32_t weights = op.inputs[1];
      if (weights < 0 || !is_float_constant(model_, tensor(weights))) return std::nullopt;
      if (index_.consumers(weights).size() != 1 || tensor(weights).shape.rank() < 2) return std::nullopt;
      if (tensor(weights).shape.last() != tensor(t).shape.last()) return std::nullopt;
      layers.push_back(static_cast<std::size_t>(reader));
    }
    return layers;
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  GraphIndex index_;
};

void centre_weights(ir::Model& model, const ir::Operator& layer) {
  ir::Tensor& weights = model.subgraphs[0].tensors[static_cast<std::size_t>(layer.inputs[1])];
  std::vector<float> values = float_values(model, weights);
  const auto length = static_cast<std::size_t>(weights.shape.last());
  for (std::size_t row = 0; row + length <= values.size(); row += length) {
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += values[row + i];
    const double mean = sum / static_cast<double>(length);
    for (std::size_t i = 0; i < length; ++i) values[row + i] = static_cast<float>(values[row + i] - mean);
  }
  set_constant(model, weights, values);
}

}  // namespace

int fold_centring(ir::Model& model) {
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
    for (const std::size_t layer : centring.layers) centre_weights(model, graph.operators[layer]);
  }
  drop_unread(model);
  return static_cast<int>(found.size());
}

Status fold_centring(Session& session) {
  ir::Model model = *session.best().model;
  const int count = fold_centring(model);
  if (count == 0) return ok_status();
  return session.consider_rewritten(std::move(model),
                                    fmt::format("mean subtraction of {} normalizations done by layers", count));
}

}  // namespace reef::quantize
