// SPDX-License-Identifier: Apache-2.0
#include "quantize_arguments.h"

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "command_help.h"
#include "data_options.h"
#include "progress.h"
#include "usage.h"

namespace reef::app {

using quantize::Choice;
using quantize::IoType;
using quantize::Mode;
using quantize::RangeMethod;

void add_data_options(Command& command, QuantizeArguments& arguments) {
  const OptionGroup group(command, "Samples");
  data::DatasetOptions& data = arguments.request.data;
  data.use = data::Use::kCalibration;
  command.add_option(
      "--data", data.path,
      "Samples to calibrate with: a folder of pictures, an .npz or .npy file, TFRecord files or tar shards "
      "(docs/data.md). 100 to 500 typical ones");
  command
      .add_option(
          "--array", data.arrays,
          "Array of the .npz, feature of the records or ending in the shards to take (default: calib, images, x "
          "... by name)")
      .option_text("NAME");
  command
      .add_option("--preprocess", data.preprocess,
                  "How pictures become numbers, e.g. mean=127.5,std=127.5; stored in the result. Presets: " +
                      data::describe_presets())
      .option_text("PRESET");
  command.add_option("--limit", data.limit, "Use only the first N samples").check(positive());
  add_order_options(command, data, arguments.shuffle, arguments.shard);
  command.add_option("--held-back", arguments.request.how.held_back,
                     "Samples kept from calibration to measure with (default: a fifth, 32 at most, and others too "
                     "where runs are cheap; 0: measure nothing, choose nothing)");
}

void add_mode_option(Command& command, QuantizeArguments& arguments) {
  command
      .add_option("--mode", arguments.request.how.mode,
                  "int8 (for the Edge TPU), int16x8, dynamic (weights only) or float16")
      .transform(one_of(std::map<std::string, Mode>{{"int8", Mode::kInt8},
                                                    {"int16x8", Mode::kInt16x8},
                                                    {"dynamic", Mode::kDynamic},
                                                    {"float16", Mode::kFloat16}}))
      .option_text("MODE [int8]");
}

void add_quantizer_options(Command& command, QuantizeArguments& arguments) {
  const OptionGroup group(command, "Quantizing");
  quantize::QuantizeOptions& how = arguments.request.how;
  command.add_option("--io", arguments.io, "Type of the model's inputs and outputs: int8, uint8 or float32")
      .transform(one_of(std::map<std::string, IoType>{
          {"int8", IoType::kInt8}, {"uint8", IoType::kUInt8}, {"float32", IoType::kFloat32}}))
      .option_text("TYPE [int8]");
  command
      .add_option("--calibration", arguments.calibration,
                  "Ranges by auto (measured), minmax, moving-average, percentile, entropy or mse")
      .transform(one_of({"auto", "minmax", "moving-average", "percentile", "entropy", "mse"}))
      .capture_default_str();
  command.add_option("--percentile", how.percentile, "Share of values inside the range, for --calibration percentile")
      .check(between(50.0, 100.0))
      .capture_default_str();
  command
      .add_option("--keep-float", how.keep_float,
                  "Operators that stay float: name of a result, * stands for anything; may be repeated")
      .option_text("NAME")
      .allow_extra_args(false);
  command.add_flag("--full-integer", how.full_integer, "Fail rather than leave an operator in float");
  command.add_flag(
      "--per-channel-dense", how.per_channel_fully_connected,
      "One scale per output of FULLY_CONNECTED: finer, but needs TFLite 2.17 and not for Google's compiler");
  command
      .add_option(
          "--attach", arguments.request.attached,
          "A file that the model carries in its archive: labels.txt, vocab.txt (reef run finds them there); may "
          "be repeated")
      .option_text("FILE")
      .allow_extra_args(false);
  command.add_flag("--keep-structure", arguments.keep_structure,
                   "Do not try other ways to compute the same (normalizations, attention) with fewer roundings");
  command.add_flag("--no-equalization", arguments.no_equalization, "Do not try cross-layer equalization");
  command.add_flag("--no-bias-correction", arguments.no_bias_correction, "Do not try bias correction");
  command.add_flag("--no-automatic-float", arguments.no_float, "Do not try leaving sensitive operators in float");
  command.add_flag("--adaptive-rounding", arguments.adaptive_rounding,
                   "Also try rounding weights by their effect on each layer's outputs; slow");
  Option split = command.add_flag_callback(
      "--split-outputs", [&how] { how.split_outputs = Choice::kOn; },
      "Every output that joins parts becomes one output per part (default: where their ranges differ much)");
  command
      .add_flag_callback(
          "--join-outputs", [&how] { how.split_outputs = Choice::kOff; },
          "Outputs stay as they are, also those that join boxes and scores at one scale")
      .excludes(split);
}

void add_verbose_option(Command& command, QuantizeArguments& arguments) {
  command.add_flag("-v,--verbose", arguments.verbose,
                   "List everything that was tried to keep accuracy, with its effect");
}

void add_threads_option(Command& command, QuantizeArguments& arguments) {
  int& threads = arguments.request.how.threads;
  threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  command.add_option("--threads", threads, "Threads; the result does not depend on it")
      .check(between(1, 256))
      .capture_default_str();
}

void PhaseProgress::show(std::string_view phase, std::int64_t done, std::int64_t all) {
  if (line_ == nullptr || phase != phase_) {
    phase_ = phase;
    line_.reset();
    line_ = std::make_unique<Progress>(phase == "trying" ? "or so ways to keep accuracy tried"
                                                         : fmt::format("samples, {}", phase));
  }
  line_->show(done, all);
}

namespace {

RangeMethod method_named(const std::string& name) {
  for (const RangeMethod method : {RangeMethod::kMinMax, RangeMethod::kMovingAverage, RangeMethod::kPercentile,
                                   RangeMethod::kEntropy, RangeMethod::kMse}) {
    if (quantize::name_of(method) == name) return method;
  }
  return RangeMethod::kMinMax;
}

}  // namespace

Status settle(QuantizeArguments& arguments) {
  quantize::QuantizeOptions& how = arguments.request.how;
  how.input_type = how.output_type = arguments.io;
  how.automatic_ranges = arguments.calibration == "auto";
  how.method = method_named(arguments.calibration);
  if (arguments.keep_structure) how.rewrite = Choice::kOff;
  if (arguments.no_equalization) how.equalize = Choice::kOff;
  if (arguments.no_bias_correction) how.correct_biases = Choice::kOff;
  if (arguments.no_float) how.keep_sensitive_float = Choice::kOff;
  if (arguments.adaptive_rounding) how.adaptive_rounding = Choice::kOn;
  REEF_ASSIGN_OR_RETURN(arguments.request.front_end, front_end_options(arguments.front_end));
  arguments.request.front_end.log = arguments.log;
  how.budget = arguments.request.front_end.budget = arguments.request.data.budget = budget_of(arguments.limits);
  return ok_status();
}

Result<compiler::QuantizeOutcome> quantize_with_progress(QuantizeArguments& arguments, bool shows_progress) {
  REEF_RETURN_IF_ERROR(settle(arguments));
  PhaseProgress progress;
  if (shows_progress) arguments.request.how.progress = progress.callback();
  Result<compiler::QuantizeOutcome> outcome = compiler::quantize_file(arguments.request);
  progress.finish();
  arguments.request.how.progress = {};
  if (!outcome.ok()) {
    const Status& status = outcome.status();
    const bool names_it = status.message().find(arguments.request.model) != std::string::npos;
    return names_it ? status : status.in(arguments.request.model);
  }
  return outcome;
}

}  // namespace reef::app
