// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_lstm.h"

#include <algorithm>
#include <cmath>

#include "graph/appender.h"
#include "kernels/recurrent/lstm_float.h"
#include "quantize/graph_constants.h"
#include "quantize/weights.h"

namespace reef::quantize {
namespace {

using ir::DataType;

// Cells are fixed-point numbers of 16 bits; the kernel takes these scales alone.
constexpr int kFinestCells = -15, kCoarsestCells = -9;
constexpr int kIntermediates = 5, kHidden = 4;

std::int32_t operand(const ir::Operator& op, std::size_t position) {
  return position < op.inputs.size() ? op.inputs[position] : -1;
}

const ir::Tensor& tensor_of(const ir::Model& model, std::int32_t t) { return model.subgraphs[0].tensors[at(t)]; }

bool is_variable_of(const ir::Model& model, const ir::Operator& op, std::size_t position) {
  const std::int32_t t = operand(op, position);
  if (t < 0 || !tensor_of(model, t).is_variable || tensor_of(model, t).type != DataType::kFloat32) return false;
  const ir::Subgraph& graph = model.subgraphs[0];
  return std::count_if(graph.operators.begin(), graph.operators.end(), [&](const ir::Operator& other) {
           return std::find(other.inputs.begin(), other.inputs.end(), t) != other.inputs.end();
         }) == 1;
}

ir::Quantization symmetric(float scale) {
  ir::Quantization result;
  result.scale = {scale};
  result.zero_point = {0};
  return result;
}

float cell_scale(const Range& cells) {
  const float largest = std::max({-cells.min, cells.max, 1e-6f});
  // 32,767 steps reach it.
  const auto exponent = static_cast<int>(std::ceil(std::log2(largest / 32767)));
  return std::ldexp(1.0f, std::clamp(exponent, kFinestCells, kCoarsestCells));
}

class Maker {
 public:
  Maker(ir::Model& model, const ir::Model& source, ir::Operator& op, bool clip)
      : model_(model), source_(source), op_(op), make_(model), clip_(clip) {}

  void run(const Range& cells) {
    const ir::Quantization input = tensor_of(model_, op_.inputs[kLstmInput]).quantization;
    const ir::Quantization output = tensor_of(model_, op_.outputs[0]).quantization;
    for (std::size_t gate = 0; gate < kLstmGateCount; ++gate) {
      const std::vector<float> bias = values(kLstmBias + gate);
      const float scale = weights(kLstmWeights + gate, bias, input.scale[0]);
      weights(kLstmRecurrent + gate, {}, 0);
      replace(kLstmBias + gate, DataType::kInt32, bias_scales(input.scale[0], std::vector{scale})[0],
              [&](float each) { return round_bias<std::int32_t>(bias, std::vector{each}); });
    }
    for (std::size_t i = kLstmPeepholes; i < kLstmPeepholes + 3; ++i) {
      if (operand(op_, i) >= 0) peephole(i);
    }
    set_state(kLstmOutputState, DataType::kInt8, output);
    set_state(kLstmCellState, DataType::kInt16, symmetric(cell_scale(cells)));
    // Only what is in front of a projection or a normalization needs these; the kernel wants to see them all the same.
    op_.intermediates.clear();
    const std::string name = tensor_of(model_, op_.outputs[0]).name;
    for (int i = 0; i < kIntermediates; ++i) {
      const bool is_hidden = i == kHidden;
      op_.intermediates.push_back(make_.add_tensor(name + "/intermediate_" + std::to_string(i), ir::Shape{0},
                                                   is_hidden ? DataType::kInt8 : DataType::kInt16,
                                                   is_hidden ? output : symmetric(0x1p-12f)));
    }
  }

 private:
  std::vector<float> values(std::size_t position) const {
    return float_values(source_, tensor_of(source_, op_.inputs[position]));
  }

  // A constant of integers instead of the one at `position`.
  template <typename Round>
  void replace(std::size_t position, DataType type, float scale, const Round& round) {
    const ir::Tensor before = tensor_of(source_, op_.inputs[position]);
    op_.inputs[position] =
        make_.add_constant(before.name + "_quantized", before.shape, type, round(scale), symmetric(scale));
  }

  float weights(std::size_t position, const std::vector<float>& bias, double input_scale) {
    const std::vector<float> real = values(position);
    WeightRequest request;
    request.clip = clip_;
    request.bias = bias;
    request.input_scale = input_scale;
    const std::vector<float> scales = weight_scales(real, request);
    replace(position, DataType::kInt8, scales[0], [&](float) { return round_weights(real, request.layout, scales); });
    return scales[0];
  }

  void peephole(std::size_t position) {
    const std::vector<float> real = values(position);
    float largest = 0;
    for (const float each : real) largest = std::max(largest, std::fabs(each));
    replace(position, DataType::kInt16, largest > 0 ? largest / 32767 : 1.0f, [&](float scale) {
      std::vector<std::int16_t> rounded;
      for (const float each : real) rounded.push_back(static_cast<std::int16_t>(std::lround(each / scale)));
      return rounded;
    });
  }

  void set_state(std::size_t position, DataType type, const ir::Quantization& quantization) {
    ir::Tensor& state = model_.subgraphs[0].tensors[at(op_.inputs[position])];
    state.type = type;
    state.quantization = quantization;
    state.has_quantization = true;
  }

  ir::Model& model_;
  const ir::Model& source_;
  ir::Operator& op_;
  graph::Appender make_;
  bool clip_;
};

}  // namespace

std::string lstm_problem(const ir::Model& model, const ir::Operator& op) {
  const auto has = [&](std::size_t position) { return operand(op, position) >= 0; };
  if (operand(op, kLstmInput) < 0 || tensor_of(model, op.inputs[kLstmInput]).shape.rank() != 3) {
    return "its input is no sequence";
  }
  if (has(kLstmProjection)) return "it has a projection";
  if (has(kLstmNorms) || has(kLstmNorms + 1)) return "it normalizes its gates";
  for (std::size_t i = kLstmWeights; i < kLstmPeepholes; ++i) {
    if (!has(i)) return "its input gate is coupled to its forget gate";
  }
  for (std::size_t i = kLstmWeights; i < kLstmProjection; ++i) {
    if (!has(i) && i >= kLstmPeepholes && i < kLstmBias) continue;
    if (!has(i) || !is_float_constant(model, tensor_of(model, op.inputs[i]))) {
      return "its weights are computed, not constant";
    }
  }
  if (!is_variable_of(model, op, kLstmOutputState) || !is_variable_of(model, op, kLstmCellState)) {
    return "its state is shared with other operators";
  }
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "TANH") {
    return "in integers its function is always TANH";
  }
  if (op.attributes.get_bool("diagonal_recurrent_tensors")) return "its recurrent weights are diagonal";
  return {};
}

std::vector<float> cell_history(const cpu::OpRun& run) {
  const auto real = [&](std::size_t i) -> const float* {
    return i < run.inputs.size() && run.inputs[i] != nullptr ? run.inputs[i]->values<float>().data() : nullptr;
  };
  const ir::Shape& x = run.inputs[kLstmInput]->shape;
  const bool time_major = run.op->attributes.get_bool("time_major");
  const std::int64_t steps = x[time_major ? 0 : 1];
  kernels::LstmFloat lstm;
  lstm.sizes.batches = x[time_major ? 1 : 0];
  lstm.sizes.inputs = x[2];
  lstm.sizes.cells = lstm.sizes.outputs = run.inputs[kLstmRecurrent]->shape[0];
  constexpr std::size_t kPeepholeOf[] = {0, 1, 3, 2};  // of the gates; the cell gate has none
  for (std::size_t gate = 0; gate < kLstmGateCount; ++gate) {
    lstm.gates[gate].input.real = real(kLstmWeights + gate);
    lstm.gates[gate].recurrent.real = real(kLstmRecurrent + gate);
    lstm.gates[gate].bias = real(kLstmBias + gate);
    if (gate != kLstmCellGate) lstm.gates[gate].peephole = real(kLstmPeepholes + kPeepholeOf[gate]);
  }
  lstm.cell_clip = static_cast<float>(run.op->attributes.get_float("cell_clip"));
  const std::int64_t state = lstm.sizes.batches * lstm.sizes.cells;
  std::vector<float> outputs(static_cast<std::size_t>(state)), cells(outputs.size()), hidden(outputs.size()), workspace;
  std::vector<float> history;
  history.reserve(static_cast<std::size_t>(steps * state));
  kernels::LstmFloatStep step;
  step.input_stride = time_major ? lstm.sizes.inputs : steps * lstm.sizes.inputs;
  step.output = outputs.data();
  step.output_stride = lstm.sizes.cells;
  step.output_state = hidden.data();
  step.cell_state = cells.data();
  for (std::int64_t t = 0; t < steps; ++t) {
    step.input = real(kLstmInput) + t * (time_major ? lstm.sizes.batches : 1) * lstm.sizes.inputs;
    kernels::run_lstm_step(lstm, step, workspace,
                           [](std::int64_t count, std::int64_t, const auto& body) { body(0, count); });
    history.insert(history.end(), cells.begin(), cells.end());
  }
  return history;
}

void make_integer_lstm(ir::Model& model, const ir::Model& source, ir::Operator& op, const Range& cells, bool clip) {
  Maker(model, source, op, clip).run(cells);
}

}  // namespace reef::quantize
