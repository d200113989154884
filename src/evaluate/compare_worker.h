// SPDX-License-Identifier: Apache-2.0
// One thread's part of a comparison: a pair of interpreters and the four kinds of runs.
//
//   float model, plain        the right values of every tensor
//   float model, on quantized every result is replaced by its nearest quantized value before the next operator reads
//   it:
//                             what each operator would give if only its operands were quantized
//   quantized model, plain    cumulative errors
//   quantized model, fed      every result is replaced by the quantized right one: each layer's own error
//   float model, with error   one layer's own error added: its effect
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "evaluate/compare.h"
#include "execute/cpu/interpreter.h"

namespace reef::evaluate {

// What is compared: a result (or input) of the quantized model and the tensor of the float model that it stands for.
struct LayerPlace {
  std::int32_t op = -1;        // of the quantized model; -1: an input of the model
  std::int32_t input = -1;     // which one
  std::int32_t tensor = -1;    // of the quantized model
  std::int32_t original = -1;  // of the float model
  bool is_conversion = false;
  Representable range;
  std::vector<float> factors;  // of channels: what the quantized model holds times them is the float model's; empty: 1

  double factor(std::size_t i) const { return factors.empty() ? 1.0 : factors[i % factors.size()]; }
};

struct LayerSums {
  ValueStatistics values;
  ErrorSums cumulative, own;
  std::int64_t at_ends = 0;
  std::vector<ErrorSums> effect;  // one for each place where effects are measured
};

struct CompareSums {
  std::vector<LayerSums> layers;
  std::vector<ErrorSums> outputs;

  void merge(const CompareSums& other);
};

// Shared by all workers, read only.
struct ComparePlan {
  std::shared_ptr<const ir::Model> float_model, quantized;
  std::vector<LayerPlace> layers;
  std::vector<std::vector<std::size_t>> layers_of_op;  // by operator of the quantized model
  std::vector<std::int32_t> first_layer_of;            // by tensor of the float model: the layer it is quantized as; -1
  std::vector<std::int32_t> effect_points;             // tensors of the float model
  ops::TfliteRelease tflite_release = ops::TfliteRelease::kCurrent;
  Budget budget = {};

  CompareSums empty_sums() const;
};

class CompareWorker {
 public:
  static Result<std::unique_ptr<CompareWorker>> create(const ComparePlan& plan);

  // Without effects: four runs. `step` is called after each run.
  Status run(const data::SampleSource& source, std::int64_t sample, bool with_effects, CompareSums& sums,
             const std::function<void()>& step);

 private:
  enum class FloatMode { kRight, kOnQuantized, kWithError };
  enum class QuantizedMode { kPlain, kFed };

  explicit CompareWorker(const ComparePlan& plan) : plan_(plan) {}
  Status prepare();
  Status after_float_op(const cpu::OpRun& run);
  Status after_quantized_op(const cpu::OpRun& run);
  Status read_inputs(const data::SampleSource& source, std::int64_t sample);
  Status run_float(FloatMode mode, std::size_t layer);
  Status run_quantized(QuantizedMode mode);
  Status look_at_result(std::size_t layer, const cpu::OpRun& run, ops::Tensor& tensor);
  void compare_inputs();
  void compare_outputs();
  Status run_effects(const std::function<void()>& step);

  const ComparePlan& plan_;
  std::unique_ptr<cpu::Interpreter> float_, quantized_;
  FloatMode float_mode_ = FloatMode::kRight;
  QuantizedMode quantized_mode_ = QuantizedMode::kPlain;
  std::size_t error_layer_ = 0;
  CompareSums* sums_ = nullptr;
  // Of the current sample. By tensor of the float model; empty where it is not computed.
  std::vector<std::vector<float>> right_, on_quantized_;
  std::vector<std::vector<std::byte>> quantized_inputs_, float_inputs_;
  std::vector<std::vector<float>> own_error_;  // by layer
};

}  // namespace reef::evaluate
