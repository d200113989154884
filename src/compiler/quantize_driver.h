// SPDX-License-Identifier: Apache-2.0
// From a float model's file and samples to a quantized model's file.
//
//   load (any format) -> float form -> scales it carries, or calibration and recovery -> write -> read back and run
//
// Nothing is written unless the bytes read back as a sound model that runs on a sample. compiler/pipeline.h goes on to
// a compiled file without a file in between.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "compiler/front_end.h"
#include "data/dataset.h"
#include "evaluate/box_agreement.h"
#include "ir/model.h"
#include "quantize/quantize.h"

namespace reef::compiler {

struct QuantizeRequest {
  std::string model, output;  // files; no output: everything is done but writing
  std::string report;         // file for a page on every layer's error; empty: none
  FrontEndOptions front_end;  // graphs that its log names are written as text beside the output, if any
  data::DatasetOptions data;  // an empty path: no samples
  quantize::QuantizeOptions how;
  std::vector<std::string> attached = {};  // files that the result carries (attached_files.h)
  quantize::Calibrator calibrator = {};    // empty: this process calibrates
};

struct QuantizeOutcome {
  quantize::QuantizeResult result;
  Bytes file;                                      // result.model as it is written
  std::string report_page;                         // what request.report gets; empty: no report was asked for
  std::int64_t model_bytes = 0, output_bytes = 0;  // of the files
  std::string data;                                // what the samples are, in words
  std::string preprocess;            // text form, as stored in the result; empty: samples are not pictures
  std::string preprocess_from;       // where it comes from, in words
  bool preprocess_is_guess = false;  // nobody named it, and the model stores none
  // The preset that does clearly better on the samples, and by what figures; empty if none does. If
  // `preprocess_is_guess`, it was taken; otherwise the user is told about it.
  std::string better_preprocess, better_preprocess_why;
  std::optional<evaluate::BoxAgreement> boxes;  // of a detector, against the float model
  // Of a detector or classifier whose samples say what is right: the metric of the float and of the quantized model,
  // shares of 1.
  struct Accuracy {
    std::string metric;  // map50, top1
    double of_float = 0, of_quantized = 0;
    std::int64_t samples = 0;
  };
  std::optional<Accuracy> accuracy;
  std::vector<TensorOrigin> origins;  // of the result's tensors; empty: names are the file's own
  std::vector<std::string> notes;
  passes::PassLog log;                    // of simplification
  std::vector<std::string> worst_layers;  // sentences from the report, if one was asked for
  double seconds = 0;                     // measured
  data::ReadCounters fetched;             // work on samples before they reach the model
};

// Reads the model, quantizes it and writes the files that the request names.
Result<QuantizeOutcome> quantize_file(const QuantizeRequest& request);

// The same for a model that was read already (from request.model, with request.front_end). Writes nothing.
Result<QuantizeOutcome> quantize_loaded(const QuantizeRequest& request, FrontEndResult loaded);

}  // namespace reef::compiler
