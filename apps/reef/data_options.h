// SPDX-License-Identifier: Apache-2.0
// The options by which commands are given samples, and the sentence in which they say what they took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "command.h"

#include "base/status.h"
#include "data/dataset.h"

namespace reef::app {

struct DataArguments {
  data::DatasetOptions dataset;
  std::int64_t shuffle = -1;  // seed; negative: in order
};

// --data, --array, --truth, --labels, --preprocess, --limit, --shuffle.
void add_data_options(Command& command, DataArguments& arguments, bool is_required);
// Also --preprocess alone, for commands that take a single picture.
void add_preprocess_option(Command& command, std::string& text);
// --anchors, for commands that read a detector's boxes.
void add_anchors_option(Command& command, std::string& text);

// Opens the data and tells on standard error what was taken and how pictures are preprocessed, unless `quiet`.
Result<std::shared_ptr<const data::Dataset>> open_data(const DataArguments& arguments, data::Use use,
                                                       const ir::Model& model, bool quiet);

}  // namespace reef::app
