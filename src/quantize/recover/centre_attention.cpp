// SPDX-License-Identifier: Apache-2.0
// Attention's values, moved to a mean of zero.
//
// The result of an attention is a mean of values, weighted by a softmax. In 8 bits the softmax's results are multiples
// of 1/256: weights of many values are a few steps large, and what is lost or gained by rounding them does not add up
// to one any more. The error that this makes is the values times the errors of their weights, so values should be
// small. What all values have in common can be taken off them and added behind the mean, since true weights add up to
// one:
//
//   P V = P (V - 1 m) + 1 m
//
// m, per channel, is taken off the bias of the layer that computes V, and W m is added to the bias of the layer that
// reads the mean. Both biases are there anyhow: it costs nothing, and what the network computes stays the same.
//
// Between the layers and the product elements only move (heads are split and joined). Where they move to is found by
// running those operators on numbers of channels. Left alone where an element of V's layer is also read by others,
// where a channel is not the same for all values of a mean, or where something else happens on the way.
#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "execute/cpu/evaluate.h"
#include "ir/excerpt.h"
#include "ops/registry.h"
#include "quantize/graph_constants.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

bool only_moves(const ir::Operator& op) { return ops::has_trait(op, ops::Trait::kRearranges); }

// Weights' rows are outputs; no activation; constants that no other operator reads.
bool is_plain_dense(const ir::Model& model, const ir::Uses& index, const ir::Operator& op) {
  if (op.type != Op::FULLY_CONNECTED || op.inputs.size() < 3 || op.inputs[1] < 0 || op.inputs[2] < 0) return false;
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE") return false;
  return is_own_constant(model, index, op.inputs[1]) && is_own_constant(model, index, op.inputs[2]);
}

// Values of `targets` when tensor `from` holds `values` and only operators that move elements run.
Result<std::vector<std::vector<float>>> move_values(const ir::Model& model, std::int32_t from,
                                                    const std::vector<float>& values,
                                                    const std::vector<std::int32_t>& targets) {
  std::vector<bool> is_there(model.subgraphs[0].tensors.size(), false);
  is_there[reef::at(from)] = true;
  std::vector<ir::Operator> kept;
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    const bool follows = only_moves(op) && std::any_of(op.inputs.begin(), op.inputs.end(),
                                                       [&](std::int32_t t) { return t >= 0 && is_there[reef::at(t)]; });
    if (!follows) continue;
    for (const std::int32_t t : op.outputs) is_there[reef::at(t)] = true;
    kept.push_back(op);
  }
  std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  REEF_ASSIGN_OR_RETURN(const std::vector<cpu::Value> moved,
                        cpu::Evaluator()(ir::excerpt(model, kept, targets, 0, {&from, 1}), {&bytes, 1}));
  std::vector<std::vector<float>> result;
  for (const cpu::Value& each : moved) {
    std::vector<float>& numbers = result.emplace_back(each.bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), each.bytes.data(), numbers.size() * sizeof(float));
  }
  return result;
}

class AttentionCentring {
 public:
  AttentionCentring(ir::Model& model, const Calibration& calibration)
      : model_(model), graph_(model.subgraphs[0]), index_(model), calibration_(calibration) {}

  Result<int> run() {
    int count = 0;
    for (const ir::Operator& op : graph_.operators) {
      if (!is_weighted_mean(op)) continue;
      count += centre(op) ? 1 : 0;
    }
    return count;
  }

 private:
  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[reef::at(t)]; }
  const ir::Operator* producer(std::int32_t t) const {
    const std::int32_t op = index_.producer(t);
    return op < 0 ? nullptr : &graph_.operators[reef::at(op)];
  }

  bool is_weighted_mean(const ir::Operator& op) const {
    if (op.type != Op::BATCH_MATMUL || op.attributes.get_bool("adj_x")) return false;
    const ir::Operator* softmax = producer(op.inputs[0]);
    if (softmax == nullptr || softmax->type != Op::SOFTMAX || !index_.has_one_use(op.inputs[1])) return false;
    const ir::Shape &values = tensor(op.inputs[1]).shape, &result = tensor(op.outputs[0]).shape;
    const int rank = values.rank();
    return rank >= 2 && result.rank() == rank && values.product(0, rank - 2) == result.product(0, rank - 2);
  }

  // The layer that computes `t`, or null.
  const ir::Operator* layer_before(std::int32_t t) const {
    const ir::Operator* op = producer(t);
    while (op != nullptr && only_moves(*op)) {
      const bool keeps_first = op->type != Op::SPLIT;
      op = producer(op->inputs[keeps_first ? 0 : 1]);
    }
    return op != nullptr && is_plain_dense(model_, index_, *op) ? op : nullptr;
  }
  // The tensor that a layer reads, to which `t` alone comes, or -1.
  std::int32_t layer_input_behind(std::int32_t t) const {
    while (index_.has_one_use(t)) {
      const ir::Operator& op = graph_.operators[reef::at(index_.consumers(t)[0])];
      if (is_plain_dense(model_, index_, op) && op.inputs[0] == t) return t;
      if (!only_moves(op) || op.outputs.size() != 1) return -1;
      t = op.outputs[0];
    }
    return -1;
  }
  // Tensors with elements of `t` that something other than a movement reads; `t` itself may be one.
  std::vector<std::int32_t> ends_of(std::int32_t t) const {
    std::set<std::int32_t> ends;
    std::vector<std::int32_t> open = {t};
    while (!open.empty()) {
      const std::int32_t at = open.back();
      open.pop_back();
      bool is_end = index_.is_output(at);
      for (const std::int32_t reader : index_.consumers(at)) {
        const ir::Operator& op = graph_.operators[reef::at(reader)];
        if (!only_moves(op)) {
          is_end = true;
        } else {
          open.insert(open.end(), op.outputs.begin(), op.outputs.end());
        }
      }
      if (is_end) ends.insert(at);
    }
    return {ends.begin(), ends.end()};
  }

  // Of each of the layer's outputs.
  std::vector<float> mean_outputs(const ir::Operator& layer) const {
    const ChannelStatistics& inputs = calibration_.tensors[reef::at(layer.inputs[0])].channels;
    const std::vector<float> weights = float_values(model_, tensor(layer.inputs[1]));
    std::vector<float> means = float_values(model_, tensor(layer.inputs[2]));
    const std::size_t length = inputs.sum.size();
    if (inputs.count == 0 || weights.size() != means.size() * length) return {};
    for (std::size_t o = 0; o < means.size(); ++o) {
      double sum = means[o];
      for (std::size_t i = 0; i < length; ++i) sum += weights[o * length + i] * inputs.mean(i);
      means[o] = static_cast<float>(sum);
    }
    return means;
  }

  // For each element of the product's result the channel of V's layer that its mean is of; empty: there is no such.
  std::vector<float> result_channels(const ir::Operator& product, const std::vector<float>& value_channels) const {
    const ir::Shape &values = tensor(product.inputs[1]).shape, &result = tensor(product.outputs[0]).shape;
    const bool transposed = product.attributes.get_bool("adj_y");
    const auto keys = static_cast<std::size_t>(values.last(transposed ? 0 : 1));
    const auto channels = static_cast<std::size_t>(values.last(transposed ? 1 : 0));
    const auto rows = static_cast<std::size_t>(result.last(1));
    if (keys == 0 || channels != static_cast<std::size_t>(result.last())) return {};
    std::vector<float> found(static_cast<std::size_t>(result.elements()));
    for (std::size_t batch = 0; batch < value_channels.size() / (keys * channels); ++batch) {
      const float* in = value_channels.data() + batch * keys * channels;
      const auto at = [&](std::size_t key, std::size_t channel) {
        return transposed ? in[channel * keys + key] : in[key * channels + channel];
      };
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t key = 1; key < keys; ++key) {
          if (at(key, c) != at(0, c)) return {};
        }
        for (std::size_t row = 0; row < rows; ++row) found[(batch * rows + row) * channels + c] = at(0, c);
      }
    }
    return found;
  }

  void add_to_bias(std::int32_t bias, const std::vector<double>& change) {
    std::vector<float> values = float_values(model_, tensor(bias));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(values[i] + change[i]);
    set_constant(model_, graph_.tensors[reef::at(bias)], values);
  }

  bool centre(const ir::Operator& product) {
    const ir::Operator* before = layer_before(product.inputs[1]);
    const std::int32_t behind = layer_input_behind(product.outputs[0]);
    if (before == nullptr || behind < 0) return false;
    const ir::Operator& after = graph_.operators[reef::at(index_.consumers(behind)[0])];
    const std::vector<float> means = mean_outputs(*before);
    if (means.empty() || tensor(behind).shape.last() != tensor(after.inputs[1]).shape.last()) return false;
    // Which channels come to V, and to nobody else?
    const std::vector<std::int32_t> ends = ends_of(before->outputs[0]);
    std::vector<float> channels(static_cast<std::size_t>(tensor(before->outputs[0]).shape.elements()));
    for (std::size_t i = 0; i < channels.size(); ++i) channels[i] = static_cast<float>(i % means.size());
    const auto moved_values = move_values(model_, before->outputs[0], channels, ends);
    if (!moved_values.ok()) return false;  // a movement that cannot be followed, such as one by computed numbers
    const std::vector<std::vector<float>>& moved = *moved_values;
    std::vector<bool> is_value(means.size(), false);
    const std::vector<float>* value_channels = nullptr;
    for (std::size_t e = 0; e < ends.size(); ++e) {
      if (ends[e] != product.inputs[1]) continue;
      value_channels = &moved[e];
      for (const float c : moved[e]) is_value[static_cast<std::size_t>(c)] = true;
    }
    if (value_channels == nullptr) return false;
    for (std::size_t e = 0; e < ends.size(); ++e) {
      if (ends[e] == product.inputs[1]) continue;
      for (const float c : moved[e]) {
        if (is_value[static_cast<std::size_t>(c)]) return false;
      }
    }
    // Where do they come to in the layer behind?
    const std::vector<float> found = result_channels(product, *value_channels);
    if (found.empty()) return false;
    const auto behind_values = move_values(model_, product.outputs[0], found, {behind});
    if (!behind_values.ok()) return false;
    const std::vector<std::vector<float>>& there = *behind_values;
    const auto length = static_cast<std::size_t>(tensor(behind).shape.last());
    for (std::size_t i = length; i < there[0].size(); ++i) {
      if (there[0][i] != there[0][i % length]) return false;
    }
    shift(*before, after, is_value, means, std::span(there[0]).first(length));
    rename(product.inputs[1], before->outputs[0]);
    rename(behind, product.outputs[0]);
    return true;
  }

  // All tensors from `last` back to `first`, with only moves between them: they hold something else now.
  void rename(std::int32_t last, std::int32_t first) {
    for (std::int32_t t = last;;) {
      std::string& name = graph_.tensors[reef::at(t)].name;
      if (!name.ends_with(kCentredSuffix)) name += kCentredSuffix;
      if (t == first) return;
      const auto& inputs = graph_.operators[reef::at(index_.producer(t))].inputs;
      t = *std::find_if(inputs.begin(), inputs.end(),
                        [&](std::int32_t input) { return input >= 0 && tensor(input).type == ir::DataType::kFloat32; });
    }
  }

  // `channels`: for each input of the layer behind, the output of the layer before that it is a mean of.
  void shift(const ir::Operator& before, const ir::Operator& after, const std::vector<bool>& is_value,
             const std::vector<float>& means, std::span<const float> channels) {
    std::vector<double> taken(means.size(), 0);
    for (std::size_t c = 0; c < means.size(); ++c) taken[c] = is_value[c] ? -means[c] : 0;
    const std::vector<float> weights = float_values(model_, tensor(after.inputs[1]));
    std::vector<double> given(weights.size() / channels.size(), 0);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      given[k / channels.size()] +=
          static_cast<double>(weights[k]) * means[static_cast<std::size_t>(channels[k % channels.size()])];
    }
    add_to_bias(before.inputs[2], taken);
    add_to_bias(after.inputs[2], given);
  }

  ir::Model& model_;
  ir::Subgraph& graph_;
  ir::Uses index_;
  const Calibration& calibration_;
};

}  // namespace

Result<int> centre_attention(ir::Model& model, const Calibration& calibration) {
  return AttentionCentring(model, calibration).run();
}

Status centre_attention(Session& session) {
  ir::Model model = *session.best().model;
  REEF_ASSIGN_OR_RETURN(const int count, centre_attention(model, *session.best().calibration));
  if (count == 0) return ok_status();
  return session.consider_rewritten(std::move(model), fmt::format("values of {} attentions centred", count));
}

}  // namespace reef::quantize
