// SPDX-License-Identifier: Apache-2.0
// reef quantize: a float model and samples in, an integer model out, with what was measured on the way.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "commands.h"
#include "compiler/quantize_driver.h"
#include "compiler/quantize_json.h"
#include "ir/describe.h"
#include "quantize_report.h"
#include "running_progress.h"

namespace reef::app {
namespace {

using compiler::QuantizeRequest;
using quantize::Choice;
using quantize::IoType;
using quantize::Mode;
using quantize::RangeMethod;

struct QuantizeArguments {
  QuantizeRequest request;
  IoType io = IoType::kInt8;
  std::string calibration = "auto";
  std::vector<std::string> shapes;
  bool no_equalization = false, no_bias_correction = false, no_float = false, adaptive_rounding = false;
  bool json = false, quiet = false;
};

void add_data_options(CLI::App& command, QuantizeArguments& arguments) {
  data::DatasetOptions& data = arguments.request.data;
  data.use = data::Use::kCalibration;
  command.add_option(
      "--data", data.path,
      "Samples to calibrate with: a folder of pictures, an .npz or an .npy file. 100 to 500 typical ones");
  command.add_option("--array", data.arrays, "Array of the .npz to take (default: calib, images, x ... by name)");
  command.add_option("--preprocess", data.preprocess,
                     "How pictures become numbers, e.g. mean=127.5,std=127.5; stored in the result. Presets: " +
                         data::describe_presets());
  command.add_option("--limit", data.limit, "Use only so many samples")->check(CLI::PositiveNumber);
  command.add_option("--held-back", arguments.request.how.held_back,
                     "Samples kept from calibration to measure with (default: a fifth, 32 at most; 0: measure nothing, "
                     "choose nothing)");
}

void add_choice_options(CLI::App& command, QuantizeArguments& arguments) {
  quantize::QuantizeOptions& how = arguments.request.how;
  command.add_option("--mode", how.mode, "int8 (for the Edge TPU), int16x8, dynamic (weights only) or float16")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Mode>{{"int8", Mode::kInt8},
                                                                      {"int16x8", Mode::kInt16x8},
                                                                      {"dynamic", Mode::kDynamic},
                                                                      {"float16", Mode::kFloat16}}))
      ->option_text("MODE [int8]");
  command.add_option("--io", arguments.io, "Type of the model's inputs and outputs: int8, uint8 or float32")
      ->transform(CLI::CheckedTransformer(std::map<std::string, IoType>{
          {"int8", IoType::kInt8}, {"uint8", IoType::kUInt8}, {"float32", IoType::kFloat32}}))
      ->option_text("TYPE [int8]");
  command
      .add_option("--calibration", arguments.calibration,
                  "Ranges by auto (measured), minmax, moving-average, percentile, entropy or mse")
      ->check(CLI::IsMember({"auto", "minmax", "moving-average", "percentile", "entropy", "mse"}))
      ->capture_default_str();
  command.add_option("--percentile", how.percentile, "Share of values inside the range, for --calibration percentile")
      ->check(CLI::Range(50.0, 100.0))
      ->capture_default_str();
  command
      .add_option("--keep-float", how.keep_float,
                  "Operators that stay float: name of a result, * stands for anything; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--full-integer", how.full_integer, "Fail rather than leave an operator in float");
  command.add_flag(
      "--per-channel-dense", how.per_channel_fully_connected,
      "One scale per output of FULLY_CONNECTED: finer, but needs TFLite 2.17 and not for Google's compiler");
  command.add_flag("--no-equalization", arguments.no_equalization, "Do not try cross-layer equalization");
  command.add_flag("--no-bias-correction", arguments.no_bias_correction, "Do not try bias correction");
  command.add_flag("--no-automatic-float", arguments.no_float, "Do not try leaving sensitive operators in float");
  command.add_flag("--adaptive-rounding", arguments.adaptive_rounding,
                   "Also try rounding weights by their effect on each layer's outputs; slow");
  command.add_flag("--split-outputs", how.split_outputs,
                   "Outputs that are concatenations become one output per part, each with its own scale");
}

RangeMethod method_named(const std::string& name) {
  for (const RangeMethod method : {RangeMethod::kMinMax, RangeMethod::kMovingAverage, RangeMethod::kPercentile,
                                   RangeMethod::kEntropy, RangeMethod::kMse}) {
    if (quantize::name_of(method) == name) return method;
  }
  return RangeMethod::kMinMax;
}

Status run_quantize(QuantizeArguments arguments) {
  QuantizeRequest& request = arguments.request;
  quantize::QuantizeOptions& how = request.how;
  how.input_type = how.output_type = arguments.io;
  how.automatic_ranges = arguments.calibration == "auto";
  how.method = method_named(arguments.calibration);
  if (arguments.no_equalization) how.equalize = Choice::kOff;
  if (arguments.no_bias_correction) how.correct_biases = Choice::kOff;
  if (arguments.no_float) how.keep_sensitive_float = Choice::kOff;
  if (arguments.adaptive_rounding) how.adaptive_rounding = Choice::kOn;
  const bool needs_data = how.mode == Mode::kInt8 || how.mode == Mode::kInt16x8;
  if (request.output.empty()) return invalid_input("-o is missing: where shall the quantized model go?");
  RunningProgress progress(!arguments.quiet && !arguments.json);
  how.progress = [&](std::string_view phase, std::int64_t done, std::int64_t total) {
    progress.show(phase, done, total);
  };
  static_cast<void>(needs_data);
  const Result<compiler::QuantizeOutcome> outcome = compiler::quantize_file(request);
  progress.finish();
  if (!outcome.ok()) return outcome.status().in(request.model);
  if (arguments.json) {
    fmt::print("{}\n", compiler::quantize_json(request, *outcome));
  } else if (!arguments.quiet) {
    fmt::print("{}", quantize_text(request, *outcome));
  }
  print_quantize_warnings(*outcome);
  return ok_status();
}

}  // namespace

void add_quantize(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<QuantizeArguments>();
  CLI::App& command = *app.add_subcommand("quantize",
                                          "Make an integer model from a float one\n"
                                          "Example: reef quantize models/reef_creatures_float.tflite --data "
                                          "models/images --preprocess unit -o int8.tflite");
  command.add_option("model", arguments->request.model, "Float model (.tflite or .onnx)")->required();
  command.add_option("-o,--output", arguments->request.output, "File to write")->required();
  add_data_options(command, *arguments);
  add_choice_options(command, *arguments);
  arguments->request.how.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  command.add_option("--threads", arguments->request.how.threads, "Threads; the result does not depend on it")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_flag("--json", arguments->json, "Print one JSON object instead (documented in docs/json.md)");
  command.add_flag("--quiet", arguments->quiet, "Print nothing but errors and warnings");
  command.callback([arguments, &action] { action = [arguments] { return run_quantize(*arguments); }; });
}

}  // namespace reef::app
