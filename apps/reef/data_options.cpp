// SPDX-License-Identifier: Apache-2.0
#include "data_options.h"
#include "command_help.h"
#include "usage.h"

#include <charconv>

#include <fmt/format.h>

#include "console.h"
#include "data/shard_files.h"
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

void add_order_options(Command& command, data::DatasetOptions& options, std::string& shuffle, std::string& shard) {
  const auto is_seed = [&options](std::string& text) -> std::string {
    std::uint32_t seed = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, seed);
    if (error != std::errc() || end != last) return fmt::format("'{}' is no seed: a number from 0 to 4294967295", text);
    options.shuffle_seed = seed;
    return "";
  };
  command.add_option("--shuffle", shuffle, "Mix the samples first, by this seed").option_text("N").check({is_seed, ""});
  const auto is_part = [&options](std::string& text) -> std::string {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.shard);
    const char* const last = text.data() + text.size();
    const bool has_slash = error == std::errc() && end < last && *end == '/';
    const auto [end_of_all, problem] = std::from_chars(has_slash ? end + 1 : last, last, options.shards);
    const bool is_right = has_slash && problem == std::errc() && end_of_all == last && options.shard >= 0 &&
                          options.shards >= 1 && options.shard < options.shards;
    return is_right ? "" : fmt::format("'{}' is no part: 0/4 is the first of four, 3/4 the last", text);
  };
  command
      .add_option("--shard", shard,
                  "Use only this part of the samples: 0/4 is every fourth from the first on, 1/4 from the second on")
      .option_text("I/N")
      .check({is_part, ""});
}

void add_data_options(Command& command, DataArguments& arguments, bool is_required) {
  const OptionGroup group(command, "Samples");
  data::DatasetOptions& options = arguments.dataset;
  Option data =
      command.add_option("--data", options.path,
                         "Folder of pictures (sub-folders are classes), .npz or .npy file, TFRecord files or tar "
                         "shards (docs/data.md)");
  if (is_required) data.required();
  command
      .add_option(
          "--array", options.arrays,
          "Array of the .npz, feature of the records or ending in the shards that is the model's input; names with "
          "commas between them for several inputs")
      .option_text("NAME");
  command.add_option(
      "--truth", options.truth,
      "What is right: an array of the .npz, a feature, an ending, an .npy file, or for pictures a text file: "
      "name, label");
  command.add_option("--labels", options.labels,
                     "Text file with one class name a line, for sub-folders and file names");
  add_preprocess_option(command, options.preprocess);
  command.add_option("--limit", options.limit, "Use only the first N samples").check(not_negative());
  add_order_options(command, options, arguments.shuffle, arguments.shard);
}

void add_stages_option(Command& command, DataArguments& arguments) {
  command.add_flag("-v,--verbose", arguments.is_verbose,
                   "Say what each stage from the file to the result did, and what it waited for");
}

std::vector<std::string> with_joined_shards(const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  bool is_value = false, goes_on = false;  // the word before is an option for data; a shard for one
  for (const std::string& word : words) {
    const bool is_shard = data::is_shard_name(word) && !word.starts_with("-");
    if (goes_on && is_shard) {
      joined.back() += "," + word;
      continue;
    }
    goes_on = is_value && is_shard;
    is_value = word == "--data" || word == "--test";
    joined.push_back(word);
  }
  return joined;
}

void print_read_counters(const data::ReadCounters& counters) {
  print_error(
      "reef: {} samples were fetched: reading {:.3f} s, decoding {:.3f} s, resizing and scaling {:.3f} s, on all "
      "threads together (measured)\n",
      counters.samples, counters.reading, counters.decoding, counters.fitting);
}

Result<std::shared_ptr<const data::Dataset>> open_data(const DataArguments& arguments, data::Use use,
                                                       const ir::Model& model, bool quiet) {
  data::DatasetOptions options = arguments.dataset;
  options.use = use;
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
