// SPDX-License-Identifier: Apache-2.0
#include "evaluate/compare_worker.h"

#include <algorithm>
#include <cstring>

#include "evaluate/outputs.h"
#include "execute/cpu/evaluate.h"

namespace reef::evaluate {
namespace {

constexpr std::size_t kNoLayer = ~std::size_t{0};

// Codes of a quantized tensor, values of a float one.
void store(double value, const Representable& range, ops::Tensor& tensor, std::size_t i) {
  if (!range.is_quantized) {
    tensor.mutable_values<float>()[i] = static_cast<float>(value);
    return;
  }
  const double code = range.code_of(value);
  switch (tensor.type) {
    case ir::DataType::kInt8:
      tensor.mutable_values<std::int8_t>()[i] = static_cast<std::int8_t>(code);
      break;
    case ir::DataType::kUInt8:
      tensor.mutable_values<std::uint8_t>()[i] = static_cast<std::uint8_t>(code);
      break;
    default:
      tensor.mutable_values<std::int16_t>()[i] = static_cast<std::int16_t>(code);
  }
}

std::int64_t channels_of(const ir::Shape& shape) { return shape.rank() >= 2 ? shape.last() : 1; }

}  // namespace

void CompareSums::merge(const CompareSums& other) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].values.merge(other.layers[i].values);
    layers[i].cumulative.merge(other.layers[i].cumulative);
    layers[i].own.merge(other.layers[i].own);
    layers[i].at_ends += other.layers[i].at_ends;
    for (std::size_t p = 0; p < layers[i].effect.size(); ++p) layers[i].effect[p].merge(other.layers[i].effect[p]);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].merge(other.outputs[i]);
}

CompareSums ComparePlan::empty_sums() const {
  CompareSums sums;
  for (const LayerPlace& place : layers) {
    LayerSums& layer = sums.layers.emplace_back();
    layer.values = ValueStatistics(place.range);
    layer.effect.resize(effect_points.size());
  }
  sums.outputs.resize(quantized->subgraphs[0].outputs.size());
  return sums;
}

Result<std::unique_ptr<CompareWorker>> CompareWorker::create(const ComparePlan& plan) {
  std::unique_ptr<CompareWorker> worker(new CompareWorker(plan));
  REEF_RETURN_IF_ERROR(worker->prepare());
  return worker;
}

Status CompareWorker::prepare() {
  cpu::InterpreterOptions options;
  options.tflite_release = plan_.tflite_release;
  options.budget = plan_.budget;
  options.after_op = [this](const cpu::OpRun& run) { return after_float_op(run); };
  auto made = cpu::prepared(plan_.float_model, options);
  if (!made.ok()) return made.status().in("the float model");
  float_ = std::move(*made);
  options.after_op = [this](const cpu::OpRun& run) { return after_quantized_op(run); };
  made = cpu::prepared(plan_.quantized, options);
  if (!made.ok()) return made.status().in("the quantized model");
  quantized_ = std::move(*made);
  right_.resize(plan_.float_model->subgraphs[0].tensors.size());
  on_quantized_.resize(right_.size());
  own_error_.resize(plan_.layers.size());
  return ok_status();
}

Status CompareWorker::after_float_op(const cpu::OpRun& run) {
  if (run.subgraph != 0) return ok_status();
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    ops::Tensor* tensor = run.outputs[i];
    if (tensor == nullptr || tensor->type != ir::DataType::kFloat32) continue;
    const auto number = static_cast<std::size_t>(run.op->outputs[i]);
    const auto values = tensor->mutable_values<float>();
    if (float_mode_ == FloatMode::kRight) {
      right_[number].assign(values.begin(), values.end());
      continue;
    }
    const std::int32_t layer = plan_.first_layer_of[number];
    if (float_mode_ == FloatMode::kOnQuantized) {
      on_quantized_[number].assign(values.begin(), values.end());
      if (layer < 0) continue;
      const LayerPlace& place = plan_.layers[at(layer)];
      for (std::size_t k = 0; k < values.size(); ++k) {
        const double factor = place.factor(k);
        values[k] = static_cast<float>(factor * place.range.nearest(right_[number][k] / factor));
      }
      continue;
    }
    if (plan_.layers[error_layer_].original == run.op->outputs[i]) {
      const std::vector<float>& error = own_error_[error_layer_];
      for (std::size_t k = 0; k < values.size(); ++k) values[k] += error[k];
    }
    const auto point = std::find(plan_.effect_points.begin(), plan_.effect_points.end(), run.op->outputs[i]);
    if (point == plan_.effect_points.end()) continue;
    ErrorSums& sums = sums_->layers[error_layer_].effect[at(point - plan_.effect_points.begin())];
    for (std::size_t k = 0; k < values.size(); ++k) sums.add(values[k], right_[number][k]);
  }
  return ok_status();
}

Status CompareWorker::look_at_result(std::size_t layer, const cpu::OpRun& run, ops::Tensor& tensor) {
  const LayerPlace& place = plan_.layers[layer];
  const std::vector<float>& right = right_[at(place.original)];
  REEF_ASSIGN_OR_RETURN(std::vector<double> values, real_values(tensor));
  if (right.size() != values.size()) return ok_status();  // computed once at prepare
  for (std::size_t k = 0; k < values.size(); ++k) values[k] *= place.factor(k);
  LayerSums& sums = sums_->layers[layer];
  if (quantized_mode_ == QuantizedMode::kPlain) {
    std::vector<float> held;  // what the quantized model would hold of equalized channels
    for (std::size_t k = 0; k < right.size() && !place.factors.empty(); ++k) {
      held.push_back(static_cast<float>(right[k] / place.factor(k)));
    }
    sums.values.add(place.factors.empty() ? right : held, channels_of(tensor.shape));
    for (std::size_t k = 0; k < values.size(); ++k) {
      sums.cumulative.add(values[k], right[k]);
      if (place.range.is_quantized) {
        const double code = place.range.code_of(values[k] / place.factor(k));
        sums.at_ends += code <= place.range.least_code || code >= place.range.most_code ? 1 : 0;
      }
    }
    return ok_status();
  }
  std::vector<double> expected;
  if (place.is_conversion && run.inputs.size() == 1 && run.inputs[0] != nullptr) {
    REEF_ASSIGN_OR_RETURN(expected, real_values(*run.inputs[0]));
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] *= place.factor(k);
  } else {
    const std::vector<float>& made = on_quantized_[at(place.original)];
    expected.assign(made.begin(), made.end());
  }
  if (expected.size() != values.size()) return ok_status();
  own_error_[layer].resize(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    sums.own.add(values[k], expected[k]);
    own_error_[layer][k] = static_cast<float>(values[k] - expected[k]);
    store(right[k] / place.factor(k), place.range, tensor, k);
  }
  return ok_status();
}

Status CompareWorker::after_quantized_op(const cpu::OpRun& run) {
  if (run.subgraph != 0) return ok_status();
  for (const std::size_t layer : plan_.layers_of_op[at(run.op_index)]) {
    for (std::size_t i = 0; i < run.outputs.size(); ++i) {
      if (run.outputs[i] != nullptr && run.op->outputs[i] == plan_.layers[layer].tensor)
        REEF_RETURN_IF_ERROR(look_at_result(layer, run, *run.outputs[i]));
    }
  }
  return ok_status();
}

Status CompareWorker::read_inputs(const data::SampleSource& source, std::int64_t sample) {
  quantized_inputs_.resize(static_cast<std::size_t>(quantized_->input_count()));
  float_inputs_.resize(quantized_inputs_.size());
  for (int i = 0; i < quantized_->input_count(); ++i) {
    std::vector<std::byte>& bytes = quantized_inputs_[at(i)];
    bytes.resize(quantized_->input_bytes(i).size());
    REEF_RETURN_IF_ERROR(source.read(sample, data::input_spec(*plan_.quantized, i), bytes));
    std::memcpy(quantized_->input_bytes(i).data(), bytes.data(), bytes.size());
    std::vector<std::byte>& floats = float_inputs_[at(i)];
    floats.resize(float_->input_bytes(i).size());
    REEF_RETURN_IF_ERROR(source.read(sample, data::input_spec(*plan_.float_model, i), floats));
    if (float_->input(i).type != ir::DataType::kFloat32) continue;
    const auto number = static_cast<std::size_t>(plan_.float_model->subgraphs[0].inputs[at(i)]);
    right_[number].resize(floats.size() / sizeof(float));
    std::memcpy(right_[number].data(), floats.data(), floats.size());
  }
  return ok_status();
}

Status CompareWorker::run_float(FloatMode mode, std::size_t layer) {
  float_mode_ = mode;
  error_layer_ = layer;
  const ir::Subgraph& graph = plan_.float_model->subgraphs[0];
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto number = static_cast<std::size_t>(graph.inputs[i]);
    const std::span<std::byte> bytes = float_->input_bytes(static_cast<int>(i));
    if (float_->input(static_cast<int>(i)).type != ir::DataType::kFloat32) {
      std::memcpy(bytes.data(), float_inputs_[i].data(), bytes.size());
      continue;
    }
    std::vector<float> values = right_[number];
    const std::int32_t first = plan_.first_layer_of[number];
    if (mode == FloatMode::kOnQuantized && first >= 0) {
      for (float& value : values) value = static_cast<float>(plan_.layers[at(first)].range.nearest(value));
    }
    if (mode == FloatMode::kWithError && plan_.layers[layer].original == graph.inputs[i]) {
      for (std::size_t k = 0; k < values.size(); ++k) values[k] += own_error_[layer][k];
    }
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  float_->reset_variables();
  return float_->invoke().in("the float model");
}

Status CompareWorker::run_quantized(QuantizedMode mode) {
  quantized_mode_ = mode;
  for (std::size_t i = 0; i < quantized_inputs_.size(); ++i)
    std::memcpy(quantized_->input_bytes(static_cast<int>(i)).data(), quantized_inputs_[i].data(),
                quantized_inputs_[i].size());
  quantized_->reset_variables();
  return quantized_->invoke().in("the quantized model");
}

// A quantized input is a layer of its own: what is lost before anything is computed.
void CompareWorker::compare_inputs() {
  for (std::size_t layer = 0; layer < plan_.layers.size(); ++layer) {
    const LayerPlace& place = plan_.layers[layer];
    if (place.op >= 0) continue;
    const std::vector<float>& right = right_[at(place.original)];
    const ops::Tensor& tensor = quantized_->input(place.input);
    const auto values = real_values(tensor);
    if (!values.ok() || values->size() != right.size()) continue;
    LayerSums& sums = sums_->layers[layer];
    sums.values.add(right, channels_of(tensor.shape));
    own_error_[layer].resize(right.size());
    for (std::size_t k = 0; k < right.size(); ++k) {
      sums.cumulative.add((*values)[k], right[k]);
      sums.own.add((*values)[k], right[k]);
      own_error_[layer][k] = static_cast<float>((*values)[k] - right[k]);
      const double code = place.range.code_of((*values)[k]);
      sums.at_ends += code <= place.range.least_code || code >= place.range.most_code ? 1 : 0;
    }
  }
}

void CompareWorker::compare_outputs() {
  const std::size_t count = std::min(sums_->outputs.size(), plan_.float_model->subgraphs[0].outputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::size_t>(plan_.float_model->subgraphs[0].outputs[i]);
    const auto values = real_values(quantized_->output(static_cast<int>(i)));
    if (!values.ok() || values->size() != right_[number].size()) continue;
    for (std::size_t k = 0; k < values->size(); ++k) sums_->outputs[i].add((*values)[k], right_[number][k]);
  }
}

Status CompareWorker::run_effects(const std::function<void()>& step) {
  for (std::size_t layer = 0; layer < plan_.layers.size(); ++layer) {
    const std::vector<float>& error = own_error_[layer];
    const auto is_zero = [](float value) { return value == 0; };
    if (!error.empty() && !std::all_of(error.begin(), error.end(), is_zero))
      REEF_RETURN_IF_ERROR(run_float(FloatMode::kWithError, layer));
    step();
  }
  return ok_status();
}

Status CompareWorker::run(const data::SampleSource& source, std::int64_t sample, bool with_effects, CompareSums& sums,
                          const std::function<void()>& step) {
  sums_ = &sums;
  for (std::vector<float>& error : own_error_) error.clear();
  REEF_RETURN_IF_ERROR(read_inputs(source, sample));
  REEF_RETURN_IF_ERROR(run_float(FloatMode::kRight, kNoLayer));
  step();
  REEF_RETURN_IF_ERROR(run_quantized(QuantizedMode::kPlain));
  compare_outputs();
  // The plain run has left the inputs in an arena that its operators may use again.
  for (std::size_t i = 0; i < quantized_inputs_.size(); ++i)
    std::memcpy(quantized_->input_bytes(static_cast<int>(i)).data(), quantized_inputs_[i].data(),
                quantized_inputs_[i].size());
  compare_inputs();
  step();
  REEF_RETURN_IF_ERROR(run_float(FloatMode::kOnQuantized, kNoLayer));
  step();
  REEF_RETURN_IF_ERROR(run_quantized(QuantizedMode::kFed));
  step();
  return with_effects ? run_effects(step) : ok_status();
}

}  // namespace reef::evaluate
