// SPDX-License-Identifier: Apache-2.0
// reef quantize: a float model and samples in, an integer model out, with what was measured on the way.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "compiler/quantize_json.h"
#include "console.h"
#include "json_output.h"
#include "output_name.h"
#include "quantize_arguments.h"
#include "quantize_report.h"

namespace reef::app {
namespace {

Ending run_quantize(QuantizeArguments arguments, bool json, bool quiet) {
  compiler::QuantizeRequest& request = arguments.request;
  request.output = output_file(request.output, request.model,
                               fmt::format("_{}.tflite", compiler::mode_name(arguments.request.how.mode)));
  request.report = output_file(request.report, request.model, "_report.html");
  const Result<compiler::QuantizeOutcome> outcome = quantize_with_progress(arguments, !quiet && !json);
  if (!outcome.ok()) return outcome.status();
  if (json) {
    print_json(compiler::quantize_json(arguments.request, *outcome));
  } else if (!quiet) {
    print_quantize_report(arguments.request, *outcome, arguments.verbose);
  }
  print_quantize_warnings(*outcome);
  return {ok_status(), outcome->result.lost.empty() ? 0 : kExitNotUsable};
}

}  // namespace

void add_quantize(Command& app, Action& action) {
  struct Arguments {
    QuantizeArguments quantize;
    bool json = false, quiet = false;
  };
  auto arguments = std::make_shared<Arguments>();
  QuantizeArguments& how = arguments->quantize;
  Command command = app.add_subcommand("quantize", "Make an integer model from a float one");
  command.add_option("model", how.request.model, "Float model (.tflite or .onnx)").required();
  command.add_option("-o,--output", how.request.output, "File to write, or folder for it").required();
  add_data_options(command, how);
  add_mode_option(command, how);
  add_quantizer_options(command, how);
  add_front_end_flags(command, how.front_end);
  add_threads_option(command, how);
  add_verbose_option(command, how);
  add_limit_flags(command, how.limits);
  command.add_option(
      "--report", how.request.report,
      "Also write a page (HTML) on which every layer's error is measured, worst first; see reef compare");
  command.add_flag("--json", arguments->json, "Print one JSON object instead (documented in docs/json.md)");
  command.add_flag("--quiet", arguments->quiet, "Print nothing but errors and warnings");
  command.footer(
      "Examples:\n  reef quantize models/reef_creatures_float.tflite --data models/images --preprocess unit -o "
      "int8.tflite\n"
      "  reef quantize yolo.onnx --data pictures --preprocess yolo -o yolo_int8.tflite");
  command.callback([arguments, &action] {
    action = [arguments] { return run_quantize(arguments->quantize, arguments->json, arguments->quiet); };
  });
}

}  // namespace reef::app
