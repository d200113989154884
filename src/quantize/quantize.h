// SPDX-License-Identifier: Apache-2.0
// The quantizer: a float model and samples -> an integer model that was run and measured.
//
//   calibrate -> ranges -> decide -> recover accuracy -> integers
//
// Part of the samples is held back from calibration. Every choice that is not forced (how ranges are taken, each means
// of recovery) is tried on them, and where that is cheap on others too, against the float model's outputs, and kept
// only if it is better there by more than chance; the log says with which numbers. Same model, samples and options give
// the same result for any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"
#include "quantize/measure.h"
#include "quantize/options.h"

namespace reef::quantize {

// Something that was tried, and what became of the outputs on the samples measured with.
struct Step {
  std::string what;  // "ranges by mse", "bias correction"
  OutputError error;
  bool kept = false;
  Gain gain = {};  // over what was best before
  std::string why_not =
      {};  // what a user would read became worse, in words; empty: nothing did, or it was not looked at
};

struct FloatOp {
  std::string op;  // "op 12 POW 'head/pow'"
  std::string why;
};

// A tensor of the result and the one of the float model whose values it holds.
struct TensorPair {
  std::string float_name, quantized_name;
};

struct QuantizeResult {
  ir::Model model;        // verified; it has run on the held-back samples
  ir::Model float_model;  // what it was made from: the model as given, equalized if that was kept
  std::int64_t calibration_samples = 0, held_back_samples = 0;
  std::int64_t measured_samples = 0;  // by which choices were made: those held back, and others where runs are cheap
  bool measures_unseen = false;       // each of these with ranges that were taken without it
  std::vector<Step> steps;            // in order; empty where nothing was to be chosen
  std::optional<OutputError> error;   // of the result, on the held-back samples
  std::vector<PartError> parts;       // likewise, of each output, or of its parts where their ranges differ
  std::vector<std::string> lost;  // outputs that are of no use, with the reason; empty: all are, or none was measured
  std::vector<FloatOp> float_ops;
  std::vector<std::string> warnings;  // about the samples; loud
  std::vector<std::string> notes;
  std::vector<TensorPair> names;
  int integer_ops = 0, conversions = 0;
  double calibration_seconds = 0;  // measured
};

// `model` must be verified. `source` may be null for the modes that need no data. `calibrator`: who observes the values
// of tensors; empty: calibrate().
Result<QuantizeResult> quantize(const ir::Model& model, const data::SampleSource* source,
                                const QuantizeOptions& options, const Calibrator& calibrator = {});

}  // namespace reef::quantize
