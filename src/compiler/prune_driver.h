// SPDX-License-Identifier: Apache-2.0
// From a float model's file and samples to a smaller float model: what `reef prune` does.
//
//   load -> study (what can go, and what that costs) -> the point of the ladder that meets the goal -> fit -> measure
//
// Samples that accuracy is measured with are never those that weights are fitted to. Times are estimated while looking
// for the goal and simulated for the table, each said with the figure. Nothing here has run on a real Edge TPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "chip/links.h"
#include "compiler/front_end.h"
#include "compiler/quantize_driver.h"
#include "data/dataset.h"
#include "prune/study.h"

namespace reef::compiler {

// The goal that the pruned model must reach. Exactly one is given.
struct PruneGoal {
  std::optional<double> parameters;  // share of the parameters that stay
  std::optional<double> latency_ms;  // on the Edge TPU with its link and host
  std::optional<double> drop;        // of the metric, or of agreement with the original: 0.01 is one point
  std::optional<double> zeros;       // share of single weights that become zero; nothing is removed
  bool fit = false;                  // all parameters in the chip's memory
};

struct PruneRequest {
  std::string model, output;
  std::string masks, map, plot;  // further files; empty: not wanted
  std::string int8;              // the pruned model, quantized; empty: not wanted
  FrontEndOptions front_end;
  data::DatasetOptions data;
  std::int64_t fit_samples = 512;     // at most, to fit weights to
  std::int64_t judge_samples = 2000;  // at most, to measure with
  PruneGoal goal;
  std::string metric;  // top1, top5, map50, psnr, miou; empty: what suits the model, if the samples say what is right
  prune::StudyOptions study;
  const chip::LinkProfile* link = nullptr;
  int points = 4;  // of the table between the original and the result, the latter included
  bool simulates = true;
};

// A model of the table.
struct PrunePoint {
  std::string what;  // "original", "pruned"
  std::int64_t parameters = 0;
  std::optional<double> accuracy;                     // of the metric; float model, measured
  double agreement_db = 0;                            // outputs against the original's, around their mean; measured
  std::optional<double> top1_agreement;               // share of samples with the same largest output; measured
  std::optional<double> estimated_ms;                 // on chip, CPU and link
  std::optional<double> simulated_ms;                 // on the virtual Edge TPU: the parts that run there
  std::int64_t cached_bytes = 0, streamed_bytes = 0;  // parameters on the chip, and sent with every inference
  std::string why_no_time;
};

// A layer whose channels changed.
struct PrunedLayer {
  std::string tensor;        // name of the weights in the result
  std::string output;        // name of the layer's result
  std::string onnx_output;   // of the node it was made from; empty: not from ONNX, or not known
  std::string onnx_weights;  // initializer; likewise
  std::string module;        // what PyTorch calls the module, told from the node's name; likewise
  std::vector<std::int64_t> kept_outputs, kept_inputs;  // indices of the original's channels
  std::int64_t outputs_before = 0, inputs_before = 0;
};

struct PruneOutcome {
  Bytes file;  // the pruned model as it is written
  ir::Model model;
  std::vector<PrunePoint> points;  // the first is the original, the last the result
  std::vector<PrunedLayer> layers;
  std::string metric, metric_unit;  // empty: accuracy was not measured
  std::int64_t fitted_samples = 0, judged_samples = 0;
  bool judged_apart = true;  // false: too few samples, they are judged on those that they were fitted to
  bool meets_goal = true;
  std::string nearest;  // why the goal is not met, and what is nearest; empty: it is
  prune::RepairReport repair;
  std::vector<std::string> notes;
  std::optional<QuantizeOutcome> quantized;
  double seconds = 0;  // measured
};

// Writes the files that the request names, unless the goal cannot be met.
Result<PruneOutcome> prune_file(const PruneRequest& request);

}  // namespace reef::compiler
