// SPDX-License-Identifier: Apache-2.0
// How far a quantized model's outputs are from the float model's, on samples that calibration has not seen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"
#include "quantize/calibrate.h"
#include "quantize/reading.h"

namespace reef::quantize {

struct OutputError {
  std::vector<double> sqnr_db;  // per output: power of the values around their mean over power of the error
  double mean_sqnr_db = 0;      // the figure that choices are made by
  double top1_agreement = -1;   // share of rows with the same largest element; -1: no output is read as classes
  double kept_scores = -1;      // share of scores above a threshold that are so in both models; -1: there are none
  std::vector<std::vector<double>> noise;  // [output][sample]: power of the error
  std::vector<ViewError> views;            // what a user reads; may veto a choice
};

// How much nearer to the reference one set of outputs is than another, both on the same samples.
struct Gain {
  double db = 0;              // of the mean SQNR
  double standard_error = 0;  // of `db`, from how much samples differ in it: they are compared pair by pair
};
Gain gain_of(const OutputError& before, const OutputError& after);

// Runs `model` on the samples; its integer outputs are converted to real numbers.
Result<Outputs> run_outputs(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                            std::span<const std::int64_t> samples, const RunOptions& options);

// Inputs of the quantized model are written from real values with its own quantization: the source does that.
OutputError compare_outputs(const Outputs& reference, const Outputs& outputs, const std::vector<View>& views);

// Something that an output consists of: all of it, or `size` elements from `begin` on along an axis.
struct OutputPart {
  std::string name;
  std::size_t output = 0;
  ir::Shape shape;  // of the output
  int axis = 0;
  std::int64_t begin = 0, size = 1;
};

// What was kept of a part.
struct PartError {
  OutputPart part;
  double sqnr_db = 0;
  double min = 0, max = 0;  // of the float model's values
  bool is_dead = false;     // the float model's values differ, but all of them became one number
  double dead_value = 0;    // that number
};
std::vector<PartError> compare_parts(const Outputs& reference, const Outputs& outputs,
                                     const std::vector<OutputPart>& parts);

std::string describe(const OutputError& error);  // "34.2 dB, top-1 agreement 98.4 %"

}  // namespace reef::quantize
