// SPDX-License-Identifier: Apache-2.0
#include "model_variation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace reef::testing {
namespace {

const std::set<std::string> kPassOn = {"RESHAPE",
                                       "SQUEEZE",
                                       "EXPAND_DIMS",
                                       "PAD",
                                       "MAX_POOL_2D",
                                       "SPLIT",
                                       "CONCATENATION",
                                       "STRIDED_SLICE",
                                       "TRANSPOSE",
                                       "SLICE",
                                       "MAXIMUM",
                                       "RESIZE_BILINEAR",
                                       "RESIZE_NEAREST_NEIGHBOR"};
constexpr std::size_t kLstmState = 18, kLstmCell = 19;

class Variation {
 public:
  Variation(const ir::Model& model, std::uint32_t seed) : model_(model), random_(seed) {
    group_.resize(graph().tensors.size());
    std::iota(group_.begin(), group_.end(), 0);
  }

  ir::Model run() {
    group_tensors();
    vary_activations();
    for (const ir::Operator& op : graph().operators) vary_constants(op);
    return std::move(model_);
  }

 private:
  ir::Subgraph& graph() { return model_.subgraphs[0]; }
  ir::Tensor& tensor(std::int32_t t) { return graph().tensors[static_cast<std::size_t>(t)]; }
  bool is_constant(std::int32_t t) { return !ir::constant_data(model_, tensor(t)).empty(); }
  float factor(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_); }
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::int32_t root(std::int32_t t) {
    while (group_[static_cast<std::size_t>(t)] != t) t = group_[static_cast<std::size_t>(t)];
    return t;
  }
  void join(std::int32_t a, std::int32_t b) { group_[static_cast<std::size_t>(root(a))] = root(b); }

  void group_tensors() {
    for (const ir::Operator& op : graph().operators) {
      const bool is_free_quantize =
          op.type == "QUANTIZE" && tensor(op.inputs[0]).quantization.scale == tensor(op.outputs[0]).quantization.scale;
      if (kPassOn.count(op.type) > 0 || is_free_quantize) {
        std::vector<std::int32_t> all = op.outputs;
        for (const std::int32_t t : op.inputs) {
          if (t >= 0 && !is_constant(t)) all.push_back(t);
        }
        for (const std::int32_t t : all) join(t, all[0]);
      }
      if (op.type == "SOFTMAX" || op.type == "LOGISTIC" || op.type == "TANH") fixed_.insert(op.outputs[0]);
      if (op.type == "UNIDIRECTIONAL_SEQUENCE_LSTM") {
        join(op.outputs[0], op.inputs[kLstmState]);
        fixed_.insert(op.inputs[kLstmCell]);
      }
    }
  }

  void vary_activations() {
    std::set<std::int32_t> fixed;
    for (const std::int32_t t : fixed_) fixed.insert(root(t));
    std::map<std::int32_t, std::pair<float, int>> changes;
    for (std::size_t i = 0; i < graph().tensors.size(); ++i) {
      const auto t = static_cast<std::int32_t>(i);
      ir::Quantization& q = tensor(t).quantization;
      if (is_constant(t) || q.scale.size() != 1 || !ir::is_integer_8(tensor(t).type) || fixed.count(root(t)) > 0)
        continue;
      const auto [at, is_new] = changes.emplace(root(t), std::pair(1.0f, 0));
      if (is_new) at->second = {factor(0.75f, 1.33f), number(0, 255)};
      q.scale[0] *= at->second.first;
      q.zero_point = {at->second.second - (tensor(t).type == ir::DataType::kInt8 ? 128 : 0)};
    }
  }

  void vary_constants(const ir::Operator& op) {
    if (op.type == "CONV_2D" || op.type == "DEPTHWISE_CONV_2D" || op.type == "FULLY_CONNECTED") {
      vary_weights(op, 1, op.inputs.size() > 2 ? 2 : 0);
    }
    if (op.type == "UNIDIRECTIONAL_SEQUENCE_LSTM") {
      for (std::size_t gate = 0; gate < 4; ++gate) {
        vary_weights(op, 1 + gate, 12 + gate);
        vary_weights(op, 5 + gate, 0);
      }
    }
    if (op.type == "MUL" || op.type == "ADD" || op.type == "SUB") {
      for (const std::int32_t t : op.inputs) {
        if (t >= 0 && is_constant(t)) vary_bytes(t);
      }
    }
  }

  void replace(std::int32_t t, std::vector<std::uint8_t> bytes) {
    model_.buffers[static_cast<std::size_t>(tensor(t).buffer)].data = Bytes(std::move(bytes));
  }

  // Values in another order, and new scales.
  void vary_bytes(std::int32_t t) {
    if (!done_.insert(t).second) return;
    const auto old = ir::constant_data(model_, tensor(t)).span();
    std::vector<std::uint8_t> bytes(old.begin(), old.end());
    std::shuffle(bytes.begin(), bytes.end(), random_);
    replace(t, std::move(bytes));
    ir::Quantization& q = tensor(t).quantization;
    const bool all_equal = std::all_of(q.scale.begin(), q.scale.end(), [&](float s) { return s == q.scale[0]; });
    const float common = factor(0.8f, 1.25f);
    for (float& scale : q.scale) scale *= all_equal ? common : factor(0.8f, 1.25f);
    if (tensor(t).type == ir::DataType::kUInt8 && q.zero_point.size() == 1) q.zero_point[0] = number(0, 255);
  }

  void vary_weights(const ir::Operator& op, std::size_t weights, std::size_t biases) {
    const std::int32_t w = op.inputs[weights];
    if (w < 0 || !is_constant(w)) return;
    vary_bytes(w);
    if (biases == 0 || op.inputs[biases] < 0) return;
    const std::int32_t b = op.inputs[biases];
    ir::Quantization& q = tensor(b).quantization;
    q.scale.clear();
    for (const float scale : tensor(w).quantization.scale)
      q.scale.push_back(scale * tensor(op.inputs[0]).quantization.scale[0]);
    if (!done_.insert(b).second) return;
    const auto old = ir::constant_data(model_, tensor(b)).span();
    std::vector<std::int32_t> values(old.size() / 4);
    std::memcpy(values.data(), old.data(), values.size() * 4);
    if (std::all_of(values.begin(), values.end(), [](std::int32_t v) { return v == 0; })) return;
    std::shuffle(values.begin(), values.end(), random_);
    for (std::int32_t& value : values) value += number(-50, 50);
    std::vector<std::uint8_t> bytes(old.size());
    std::memcpy(bytes.data(), values.data(), values.size() * 4);
    replace(b, std::move(bytes));
  }

  ir::Model model_;
  std::mt19937 random_;
  std::vector<std::int32_t> group_;
  std::set<std::int32_t> fixed_, done_;
};

}  // namespace

ir::Model vary(const ir::Model& model, std::uint32_t seed) { return Variation(model, seed).run(); }

}  // namespace reef::testing
