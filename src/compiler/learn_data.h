// SPDX-License-Identifier: Apache-2.0
// Pictures (or arrays) with class names -> embeddings with class numbers: opens the data, runs the extractor on a CPU
// or a virtual Edge TPU, and leaves out, by name, what should not be learned from: files that cannot be read, copies of
// a picture, and pictures that stand in two classes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "ir/model.h"
#include "learn/embeddings.h"
#include "runtime/dealer.h"
#include "runtime/placement.h"

namespace reef::compiler {

struct LabelledData {
  std::shared_ptr<const data::Dataset> dataset;
  std::vector<std::int32_t> labels;  // of each sample: index into class_names
  std::vector<std::string> class_names;
};
// Classes get consecutive numbers in the order of the data's own; their names are sub-folders', or the labels file's,
// or the number. `known`: names whose numbers come first, as given; nothing new may appear then (for test data).
Result<LabelledData> open_labelled(const data::DatasetOptions& options, const ir::Model& model,
                                   const std::vector<std::string>* known = nullptr);

// The arrays of an .npz that hold samples to learn from ("train" with "train_labels", "x_train" with "y_train") and to
// test with ("test", "x_test"); what is not there, or not an .npz, stays as the options say.
data::DatasetOptions train_arrays(const data::DatasetOptions& options);
std::optional<data::DatasetOptions> test_arrays_beside(const data::DatasetOptions& options);

struct EmbedOptions {
  runtime::Placement place;  // of Edge TPU ops
  bool is_mirrored = false;  // also in a mirror, where the model's input is a picture
  int threads = 1;
  std::function<void(std::int64_t done, std::int64_t all)> progress;
  Budget budget = {};
};

struct RejectedSample {
  std::string name, reason;
};

struct EmbeddedData {
  learn::Embeddings embeddings;
  std::vector<std::string> names;    // of the samples, in the order of the rows
  std::vector<std::string> digests;  // of what the model was given
  std::vector<RejectedSample> rejected;
  double seconds = 0;             // measured
  runtime::DealerReport devices;  // that did it, in the last round
};
// `extractor` must be verified and have one output. `seen`: samples that must not come again (test data against what
// was learned from).
Result<EmbeddedData> embed(const std::shared_ptr<const ir::Model>& extractor, const LabelledData& data,
                           const EmbedOptions& options, const EmbeddedData* seen = nullptr);

}  // namespace reef::compiler
