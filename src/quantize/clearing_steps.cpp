// SPDX-License-Identifier: Apache-2.0
#include "quantize/clearing_steps.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "graph/appender.h"
#include "ir/describe.h"
#include "quantize/graph_constants.h"
#include "quantize/integer_lstm.h"

namespace reef::quantize {
namespace {

using ir::DataType;

constexpr double kShut = 1'000;        // least sum by which the imported form shuts a gate
constexpr double kShutAgain = 10'000;  // by which it is shut when the form is made again
constexpr double kFirstStep = -1;      // sums in the first step, at most; see the header
constexpr double kFirstOutput = 0.27;  // outputs after it
constexpr double kLowestSum = -8;      // where the kernel cuts sums off
constexpr double kMargin = 0.25;       // rounding of the sums themselves, many times over
constexpr int kMostFeatures = 4096;    // beyond, the inputs are so small beside the recurrent products that 8 bits are
                                       // not for them
constexpr int kOne = 64;               // weight 1 of the layer that adds the features: 64 / 64 is exact
constexpr std::string_view kPaddedName = "/padded";  // of the result with clearing steps, while they are taken out
constexpr std::size_t kShutGates[] = {0, 1, 3};

std::string name_of(const ir::Model& model, std::int32_t t) { return model.subgraphs[0].tensors[reef::at(t)].name; }

// ---- Taking out ----

// An LSTM with clearing steps, as imported.
struct Form {
  std::size_t lstm = 0;  // operator
  std::int32_t x = -1;   // the input without the additions
  std::int32_t steps = 0;
};

class Remover {
 public:
  explicit Remover(ir::Model& model) : model_(model), graph_(model.subgraphs[0]) {}

  ClearedLstms run() {
    std::vector<Form> forms;
    const ir::Uses index(model_);
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (const auto form = at(index, i)) forms.push_back(*form);
    }
    if (forms.empty()) return {};
    std::vector<ir::Operator> before = std::move(graph_.operators);
    graph_.operators.clear();
    ClearedLstms result;
    auto next = forms.begin();
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (next != forms.end() && next->lstm == i) {
        result[add_without(*next, std::move(before[i]))] = next->steps;
        ++next;
      } else {
        graph_.operators.push_back(std::move(before[i]));
      }
    }
    drop_unread(model_);
    return result;
  }

 private:
  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[reef::at(t)]; }
  const ir::Operator* producer(const ir::Uses& index, std::int32_t t) const {
    const std::int32_t op = t < 0 ? -1 : index.producer(t);
    return op < 0 ? nullptr : &graph_.operators[reef::at(op)];
  }

  std::optional<Form> at(const ir::Uses& index, std::size_t number) const {
    const ir::Operator& lstm = graph_.operators[number];
    if (lstm.type != Op::UNIDIRECTIONAL_SEQUENCE_LSTM || !lstm.attributes.get_bool("time_major")) return {};
    if (!lstm_problem(model_, lstm).empty() || (lstm.inputs.size() > 9 && lstm.inputs[kLstmPeepholes] >= 0)) return {};
    const ir::Operator* concat = producer(index, lstm.inputs[kLstmInput]);
    if (concat == nullptr || concat->type != Op::CONCATENATION || concat->inputs.size() != 2) return {};
    if (concat->attributes.get_int("axis") != 0 || !is_float_constant(model_, tensor(concat->inputs[0]))) return {};
    const ir::Operator* pad = producer(index, concat->inputs[1]);
    if (pad == nullptr || pad->type != Op::PAD) return {};
    if (int_values<std::int32_t>(model_, tensor(pad->inputs[1])) != std::vector<std::int32_t>{0, 0, 0, 0, 0, 1}) {
      return {};
    }
    const double value = clearing_value(tensor(concat->inputs[0]));
    if (!(value > 0) || !shuts(lstm, value)) return {};
    return Form{number, pad->inputs[0], tensor(concat->inputs[0]).shape[0]};
  }

  // The value that stands in the last feature of steps that have nothing else; 0: they are not like that.
  double clearing_value(const ir::Tensor& steps) const {
    const std::vector<float> values = float_values(model_, steps);
    const auto width = static_cast<std::size_t>(steps.shape.last());
    if (steps.shape.rank() != 3 || values.empty() || width < 2) return 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != (i % width == width - 1 ? values.back() : 0.0f)) return 0;
    }
    return values.back();
  }

  // Weights of the last feature shut the gates.
  bool shuts(const ir::Operator& lstm, double value) const {
    for (std::size_t gate = 0; gate < kLstmGateCount; ++gate) {
      const ir::Tensor& weights = tensor(lstm.inputs[kLstmWeights + gate]);
      const std::vector<float> values = float_values(model_, weights);
      const auto width = static_cast<std::size_t>(weights.shape.last());
      for (std::size_t i = width - 1; i < values.size(); i += width) {
        const double sum = values[i] * value;
        if (gate == kLstmCellGate ? sum != 0 : !(sum <= -kShut)) return false;
      }
    }
    return true;
  }

  // Returns what the operator computes now.
  std::int32_t add_without(const Form& form, ir::Operator lstm) {
    graph::Appender make(model_);
    const std::int32_t all = lstm.outputs[0];
    for (std::size_t gate = 0; gate < kLstmGateCount; ++gate) {
      std::int32_t& weights = lstm.inputs[kLstmWeights + gate];
      const ir::Tensor before = tensor(weights);
      const std::vector<float> values = float_values(model_, before);
      const auto width = static_cast<std::size_t>(before.shape.last());
      std::vector<float> kept;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i % width != width - 1) kept.push_back(values[i]);
      }
      weights =
          make.add_constant(before.name, ir::Shape{before.shape[0], before.shape[1] - 1}, DataType::kFloat32, kept);
    }
    ir::Shape shape = tensor(all).shape;
    shape[0] -= form.steps;
    // Users know the LSTM by the name of its result.
    const std::string name = name_of(model_, all);
    const std::int32_t steps = make.add_tensor(name, shape);
    graph_.tensors[reef::at(all)].name = name + std::string(kPaddedName);
    lstm.inputs[kLstmInput] = form.x;
    lstm.outputs = {steps};
    graph_.operators.push_back(std::move(lstm));
    make.pad(steps, all, {form.steps, 0, 0, 0, 0, 0}, name + "/padding");
    return steps;
  }

  ir::Model& model_;
  ir::Subgraph& graph_;
};

// ---- Putting back ----

class Restorer {
 public:
  explicit Restorer(ir::Model& model) : model_(model), graph_(model.subgraphs[0]) {}

  Status run(const ClearedLstms& lstms) {
    std::vector<ir::Operator> before = std::move(graph_.operators);
    graph_.operators.clear();
    for (ir::Operator& op : before) {
      const auto found = op.outputs.empty() ? lstms.end() : lstms.find(op.outputs[0]);
      const bool is_padding = op.type == Op::PAD && lstms.contains(op.inputs[0]);
      if (found != lstms.end()) {
        const auto padding = std::find_if(before.begin(), before.end(), [&](const ir::Operator& other) {
          return other.type == Op::PAD && other.inputs[0] == op.outputs[0];
        });
        const std::int32_t steps = op.outputs[0];
        if (padding != before.end()) {
          std::swap(graph_.tensors[reef::at(steps)].name, graph_.tensors[reef::at(padding->outputs[0])].name);
        }
        // A float LSTM among integers: the PAD is behind a QUANTIZE, and stays.
        op.outputs = {padding != before.end() ? padding->outputs[0] : with_more_steps(steps, found->second)};
        const std::int32_t all = op.outputs[0];
        REEF_RETURN_IF_ERROR(add_with(std::move(op), found->second));
        if (padding == before.end()) graph::Appender(model_).drop_first(all, steps, name_of(model_, steps) + "/first");
      } else if (!is_padding) {
        graph_.operators.push_back(std::move(op));
      }
    }
    return ok_status();
  }

 private:
  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[reef::at(t)]; }

  std::int32_t with_more_steps(std::int32_t t, std::int32_t more) {
    const ir::Tensor like = tensor(t);
    ir::Shape shape = like.shape;
    shape[0] += more;
    return graph::Appender(model_).add_tensor(like.name + "/all", shape, like.type, like.quantization);
  }

  Status add_with(ir::Operator lstm, std::int32_t steps) {
    if (tensor(lstm.inputs[kLstmInput]).type == DataType::kInt8) return add_integer(std::move(lstm), steps);
    add_float(std::move(lstm), steps);
    return ok_status();
  }

  // Weights with so many columns more, all of one value.
  template <typename T>
  void widen(std::int32_t& weights, const std::vector<T>& values, std::int32_t more, T value) {
    const ir::Tensor before = tensor(weights);
    const std::int32_t width = before.shape[1];
    std::vector<T> wide;
    for (std::int32_t row = 0; row < before.shape[0]; ++row) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row) * width;
      wide.insert(wide.end(), begin, begin + width);
      wide.insert(wide.end(), static_cast<std::size_t>(more), value);
    }
    weights = graph::Appender(model_).add_constant(before.name, ir::Shape{before.shape[0], width + more}, before.type,
                                                   wide, before.quantization);
  }

  void add_float(ir::Operator lstm, std::int32_t steps) {
    float weakest = static_cast<float>(kShutAgain);
    for (std::size_t gate = 0; gate < kLstmGateCount; ++gate) {
      std::int32_t& weights = lstm.inputs[kLstmWeights + gate];
      const std::vector<float> values = float_values(model_, tensor(weights));
      float largest = 0;
      for (const float each : values) largest = std::max(largest, std::fabs(each));
      if (!(largest > 0)) largest = 1;
      if (gate != kLstmCellGate) weakest = std::min(weakest, largest);
      widen(weights, values, 1, gate == kLstmCellGate ? 0.0f : -largest);
    }
    const std::int32_t x = lstm.inputs[kLstmInput];
    const ir::Shape shape = tensor(x).shape;
    const std::int32_t batch = shape[1], width = shape[2] + 1;
    std::vector<float> first(static_cast<std::size_t>(steps) * static_cast<std::size_t>(batch * width), 0.0f);
    for (std::size_t i = static_cast<std::size_t>(width) - 1; i < first.size(); i += static_cast<std::size_t>(width)) {
      first[i] = static_cast<float>(kShutAgain) / weakest;
    }
    graph::Appender make(model_);
    const std::string name = name_of(model_, lstm.outputs[0]);
    const std::int32_t clearing =
        make.add_constant(name + "/clearing", ir::Shape{steps, batch, width}, DataType::kFloat32, first);
    const std::int32_t wider = make.add_tensor(name + "/wider", ir::Shape{shape[0], batch, width});
    const std::int32_t joined = make.add_tensor(name + "/joined", ir::Shape{shape[0] + steps, batch, width});
    make.pad(x, wider, {0, 0, 0, 0, 0, 1}, name + "/padding");
    make.concatenation({clearing, wider}, 0, joined);
    lstm.inputs[kLstmInput] = joined;
    graph_.operators.push_back(std::move(lstm));
  }

  // Features that it takes to shut this gate, each adding `each` to its sum; see the header.
  double features_needed(const ir::Operator& lstm, std::size_t gate, double each) const {
    const ir::Tensor& recurrent = tensor(lstm.inputs[kLstmRecurrent + gate]);
    const ir::Tensor& bias = tensor(lstm.inputs[kLstmBias + gate]);
    const ir::Quantization& state = tensor(lstm.inputs[kLstmOutputState]).quantization;
    const double largest_output =
        state.scale[0] * static_cast<double>(std::max(127 - state.zero_point[0], 128 + state.zero_point[0]));
    const auto weights = int_values<std::int8_t>(model_, recurrent);
    const auto biases = int_values<std::int32_t>(model_, bias);
    const auto width = static_cast<std::size_t>(recurrent.shape[1]);
    double needed = 1;
    for (std::size_t row = 0; row < biases.size(); ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += std::abs(weights[row * width + i]);
      sum *= recurrent.quantization.scale[0];
      const double own = biases[row] * static_cast<double>(bias.quantization.scale[0]) + kMargin;
      needed = std::max({needed, (own + sum * largest_output - kFirstStep) / each,
                         (own + sum * std::min(largest_output, kFirstOutput) - kLowestSum) / each});
    }
    return std::ceil(needed);
  }

  Status add_integer(ir::Operator lstm, std::int32_t steps) {
    const ir::Quantization input = tensor(lstm.inputs[kLstmInput]).quantization;
    const auto zero = static_cast<std::int32_t>(input.zero_point[0]);
    // The value farther from zero, in steps from the zero point.
    const std::int32_t value = 127 - zero >= 128 + zero ? 127 - zero : -128 - zero;
    const std::int32_t weight = value > 0 ? 127 : -127;
    double needed = 1;
    for (const std::size_t gate : kShutGates) {
      const double scale = tensor(lstm.inputs[kLstmWeights + gate]).quantization.scale[0];
      needed = std::max(needed, features_needed(lstm, gate, scale * input.scale[0] * value * weight));
    }
    REEF_REQUIRE(needed <= kMostFeatures,
                 "the LSTM that computes '{}' would need {:.0f} features to clear its state in 8 bits: its inputs add "
                 "too little to its gates. Keep it float (--keep-float '{}')",
                 ir::describe_name(name_of(model_, lstm.outputs[0])), needed, name_of(model_, lstm.outputs[0]));
    const auto features = static_cast<std::int32_t>(needed);
    for (std::size_t gate = 0; gate < kLstmGateCount; ++gate) {
      const bool shut = gate != kLstmCellGate;
      std::int32_t &weights = lstm.inputs[kLstmWeights + gate], &bias = lstm.inputs[kLstmBias + gate];
      widen(weights, int_values<std::int8_t>(model_, tensor(weights)), features,
            static_cast<std::int8_t>(shut ? weight : 0));
      if (!shut) continue;
      const ir::Tensor before = tensor(bias);
      std::vector<std::int32_t> lower = int_values<std::int32_t>(model_, before);
      for (std::int32_t& each : lower) each -= features * value * weight;
      bias =
          graph::Appender(model_).add_constant(before.name, before.shape, DataType::kInt32, lower, before.quantization);
    }
    lstm.inputs[kLstmInput] =
        with_features(lstm.inputs[kLstmInput], name_of(model_, lstm.outputs[0]), features, value, steps);
    graph_.operators.push_back(std::move(lstm));
    return ok_status();
  }

  // [time, batch, width] -> [steps + time, batch, width + features].
  std::int32_t with_features(std::int32_t x, const std::string& name, std::int32_t features, std::int32_t value,
                             std::int32_t steps) {
    const ir::Shape shape = tensor(x).shape;
    const ir::Quantization quantization = tensor(x).quantization;
    const std::int32_t time = shape[0], batch = shape[1], width = shape[2], wide = width + features;
    std::vector<std::int8_t> identity(static_cast<std::size_t>(wide) * static_cast<std::size_t>(width), 0);
    for (std::int32_t i = 0; i < width; ++i) identity[reef::at(i * width + i)] = kOne;
    std::vector<std::int32_t> values(static_cast<std::size_t>(wide), 0);
    std::fill(values.begin() + width, values.end(), value * kOne);
    ir::Quantization one, product;
    one.scale.assign(static_cast<std::size_t>(wide), 1.0f / kOne);
    product.scale.assign(static_cast<std::size_t>(wide), quantization.scale[0] / kOne);
    one.zero_point.assign(static_cast<std::size_t>(wide), 0);
    product.zero_point = one.zero_point;
    graph::Appender make(model_);
    const auto activation = [&](std::string_view what, ir::Shape of) {
      return make.add_tensor(name + std::string(what), std::move(of), DataType::kInt8, quantization);
    };
    const std::int32_t grid = activation("/grid", ir::Shape{1, time, batch, width});
    const std::int32_t wider = activation("/wider", ir::Shape{1, time, batch, wide});
    const std::int32_t longer = activation("/longer", ir::Shape{1, steps + time, batch, wide});
    const std::int32_t result = activation("/joined", ir::Shape{steps + time, batch, wide});
    const std::int32_t filter =
        make.add_constant(name + "/identity", ir::Shape{wide, 1, 1, width}, DataType::kInt8, identity, one);
    const std::int32_t bias = make.add_constant(name + "/features", ir::Shape{wide}, DataType::kInt32, values, product);
    make.reshape(x, grid, name + "/grid_shape");
    ir::Operator& layer = make.op(Op::CONV_2D, "Conv2DOptions", {grid, filter, bias}, wider);
    layer.version = 3;
    graph::Appender::set_pointwise(layer);
    layer.attributes.set("fused_activation_function", ir::EnumName{"NONE"});
    make.pad(wider, longer, {0, 0, steps, 0, 0, 0, 0, 0}, name + "/padding");
    make.reshape(longer, result, name + "/joined_shape");
    return result;
  }

  ir::Model& model_;
  ir::Subgraph& graph_;
};

}  // namespace

ClearedLstms take_out_clearing_steps(ir::Model& model) { return Remover(model).run(); }

Status put_back_clearing_steps(ir::Model& model, const ClearedLstms& lstms) {
  if (lstms.empty()) return ok_status();
  return Restorer(model).run(lstms);
}

}  // namespace reef::quantize
