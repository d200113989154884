// SPDX-License-Identifier: Apache-2.0
#include "data_options.h"
#include "command_help.h"
#include "usage.h"

#include <cstdio>

#include <fmt/format.h>

#include "console.h"
#include "evaluate/yolo_heads.h"

namespace reef::app {

void add_preprocess_option(Command& command, std::string& text) {
  command
      .add_option("--preprocess", text,
                  "How pixels become numbers: mean=127.5,std=127.5 or a preset, see docs/evaluate.md: " +
                      data::describe_presets() + ". Default: as stored in the model, else what suits its input")
      .option_text("PRESET");
}

void add_anchors_option(Command& command, std::string& text) {
  const auto is_readable = [](std::string& given) {
    const auto anchors = evaluate::parse_anchors(given);
    return anchors.ok() ? std::string() : anchors.status().message();
  };
  command
      .add_option("--anchors", text,
                  "Anchors of a YOLO whose heads are raw, in pixels: yolov5 (default), yolov7, or W,H,W,H,W,H/... with "
                  "one group for each stride")
      .option_text("SIZES")
      .check({is_readable, ""});
}

void add_data_options(Command& command, DataArguments& arguments, bool is_required) {
  const OptionGroup group(command, "Samples");
  data::DatasetOptions& options = arguments.dataset;
  Option data =
      command.add_option("--data", options.path, "Folder of pictures (sub-folders are classes), .npz or .npy file");
  if (is_required) data.required();
  command
      .add_option("--array", options.arrays,
                  "Array of the .npz that is the model's input; names with commas between them for several inputs")
      .option_text("NAME");
  command.add_option("--truth", options.truth,
                     "What is right: an array of the .npz, an .npy file, or for pictures a text file: name, label");
  command.add_option("--labels", options.labels,
                     "Text file with one class name a line, for sub-folders and file names");
  add_preprocess_option(command, options.preprocess);
  command.add_option("--limit", options.limit, "Use only the first N samples").check(not_negative());
  command.add_option("--shuffle", arguments.shuffle, "Mix the samples first, by this seed")
      .check(between(0, 0xFFFFFFFF));
}

Result<std::shared_ptr<const data::Dataset>> open_data(const DataArguments& arguments, data::Use use,
                                                       const ir::Model& model, bool quiet) {
  data::DatasetOptions options = arguments.dataset;
  options.use = use;
  if (arguments.shuffle >= 0) options.shuffle_seed = static_cast<std::uint32_t>(arguments.shuffle);
  REEF_ASSIGN_OR_RETURN(auto dataset, data::Dataset::open(options, model));
  if (!quiet) {
    print_error("reef: {}\n", dataset->describe());
    if (dataset->holds_pictures()) {
      const data::ChosenPreprocess& chosen = dataset->preprocess();
      print_error("reef: preprocessing {} ({})\n", data::to_string(chosen.preprocess), chosen.origin);
    }
  }
  return dataset;
}

}  // namespace reef::app
