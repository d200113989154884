// SPDX-License-Identifier: Apache-2.0
// The options by which commands are given samples, and the sentence in which they say what they took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "command.h"

#include "base/status.h"
#include "data/dataset.h"

namespace reef::app {

struct DataArguments {
  data::DatasetOptions dataset;
  std::string shuffle, shard;  // as written; `dataset` has the numbers
  bool is_verbose = false;     // print what the stages did
};

// A shell makes several words of `--data shards/*.tar`: shards that follow each other become one word, with commas.
std::vector<std::string> with_joined_shards(const std::vector<std::string>& words);

// --data, --array, --truth, --labels, --preprocess, --limit, --shuffle, --shard.
void add_data_options(Command& command, DataArguments& arguments, bool is_required);
// --shuffle and --shard alone, whose numbers go into `options` when they are checked.
void add_order_options(Command& command, data::DatasetOptions& options, std::string& shuffle, std::string& shard);
// --verbose, for commands that have none.
void add_stages_option(Command& command, DataArguments& arguments);
// Also --preprocess alone, for commands that take a single picture.
void add_preprocess_option(Command& command, std::string& text);
// --anchors, for commands that read a detector's boxes.
void add_anchors_option(Command& command, std::string& text);

// Opens the data and tells on standard error what was taken and how pictures are preprocessed, unless `quiet`.
Result<std::shared_ptr<const data::Dataset>> open_data(const DataArguments& arguments, data::Use use,
                                                       const ir::Model& model, bool quiet);

// Samples, and the time that reading, decoding and fitting took on all threads together: to standard error.
void print_read_counters(const data::ReadCounters& counters);

}  // namespace reef::app
