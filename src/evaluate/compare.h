// SPDX-License-Identifier: Apache-2.0
// The quantization debugger: a float model and its quantized version on the same samples, layer by layer.
//
// For every layer three questions, each answered by runs of its own:
//   cumulative  how far is the result from the float model's, with everything before it quantized too?
//   own         what does this layer add? It is fed the float model's values, quantized, and compared with the float
//               operator on the same (quantized) values: its weights, its bias, its rounding, its range.
//   effect      what does that do to the outputs? The float model runs with this layer's own error added to its result,
//               all else float. Layers are ranked by it: it is what would be gained by curing this layer alone.
// Effects take one run of the float model for each layer and sample. Errors of different layers are taken for
// independent where shares of the whole are given; they are not quite.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "data/sample_source.h"
#include "evaluate/layer_statistics.h"
#include "evaluate/tensor_match.h"
#include "evaluate/transformer_roles.h"
#include "execute/cpu/interpreter.h"

namespace reef::evaluate {

struct CompareOptions {
  int threads = 1;  // results do not depend on it
  std::int64_t effect_samples =
      4;                        // of the samples, for effects on the outputs; 0: layers are ranked by their own error
  std::vector<NamePair> names;  // what the quantizer says
  ops::TfliteRelease tflite_release = ops::TfliteRelease::kCurrent;
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // one call at a time
  Budget budget = {};
};

// An operator's weights against the float model's.
struct WeightsReport {
  double sqnr_db = 0;
  double gain = 1;  // factor by which the quantized ones are too large, at best fit
  // The same with a factor for each output and each input channel: how close they come, largest over smallest factor.
  double rescaled_sqnr_db = 0, rescaling = 1;
  double channel_ratio = 1;  // largest over smallest range of an output channel, in the float model
  bool is_per_channel = false;
};

struct LayerReport {
  std::int32_t op = -1;  // in the quantized model; -1: an input of the model
  std::string type;      // "CONV_2D"; "input"
  std::string name;      // of the result in the quantized model
  std::string float_name;
  ir::DataType data_type = ir::DataType::kFloat32;
  Representable range;
  ValueStatistics values;  // the float model's
  double at_ends = 0;      // share of the quantized run's numbers that are the least or the most there is
  ErrorSums cumulative, own;
  bool is_conversion = false;
  bool is_output = false;  // of the model, or becomes one by conversion
  std::optional<WeightsReport> weights;
  double effect = 0;  // noise at the outputs from this layer's own error alone, as a share of their signal
  double share = 0;   // of all layers' effects
  std::vector<std::string> advice;
};

struct OutputReport {
  std::string name;
  ErrorSums error;
};

// Layers of a transformer that are for the same, together.
struct RoleReport {
  Role role = Role::kOther;
  std::int64_t layers = 0;
  double share = 0;         // of all layers' effects
  double least_own_db = 0;  // own error of the worst of them, as signal to noise
};

struct Comparison {
  std::int64_t samples = 0, effect_samples = 0;
  std::vector<LayerReport> layers;   // in the quantized model's order
  std::vector<std::size_t> ranking;  // numbers in `layers`, worst first
  std::vector<RoleReport> roles;     // of a transformer, largest share first; empty: it is none
  std::vector<OutputReport> outputs;
  std::vector<std::string> effect_points;  // where effects are measured: outputs, and what goes into a final SOFTMAX
  TensorMatch match;
  double seconds = 0;  // measured
};

// Both models must have passed ir::verify.
Result<Comparison> compare(const std::shared_ptr<const ir::Model>& float_model,
                           const std::shared_ptr<const ir::Model>& quantized, const data::SampleSource& source,
                           const CompareOptions& options);

// Fills LayerReport::advice: sentences that say what is wrong and what to do, worst layers first.
void add_advice(const ir::Model& quantized, Comparison& comparison);

// Fills Comparison::roles.
void add_roles(const ir::Model& quantized, Comparison& comparison);

// For people: the worst `most` layers (0: all), outputs, what was not matched.
std::string comparison_text(const Comparison& comparison, std::size_t most);
// docs/json.md
std::string comparison_json(const Comparison& comparison, const std::string& float_path, const std::string& path);
// One page that needs nothing else.
std::string comparison_html(const Comparison& comparison, const std::string& float_path, const std::string& path);

}  // namespace reef::evaluate
