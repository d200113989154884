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
#include "pass_report.h"
#include "quantize_arguments.h"
#include "quantize_report.h"

namespace reef::app {
namespace {

struct Arguments {
  QuantizeArguments quantize;
  PassFlags passes;
  bool json = false, quiet = false;
};

// --stop-after: nothing is quantized, so that no samples are needed.
Status print_pass(QuantizeArguments& arguments, const std::string& pass) {
  REEF_RETURN_IF_ERROR(settle(arguments));
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult loaded,
                        compiler::load_any_model(arguments.request.model, arguments.request.front_end));
  REEF_RETURN_IF_ERROR(compiler::simplify_once(loaded).status());
  return print_graph(loaded.log, pass);
}

Ending run_quantize(const Arguments& given) {
  const auto& [quantize, passes, json, quiet] = given;
  QuantizeArguments arguments = quantize;
  arguments.log = log_request(passes);
  if (!passes.stop_after.empty()) return print_pass(arguments, passes.stop_after);
  compiler::QuantizeRequest& request = arguments.request;
  request.output = output_file(request.output, request.model,
                               fmt::format("_{}.tflite", compiler::mode_name(arguments.request.how.mode)));
  request.report = output_file(request.report, request.model, "_report.html");
  const Result<compiler::QuantizeOutcome> outcome = quantize_with_progress(arguments, !quiet && !json);
  if (!outcome.ok()) return outcome.status();
  if (json) {
    nlohmann::ordered_json result = compiler::quantize_json(arguments.request, *outcome);
    if (passes.explain) result["passes"] = pass_json(outcome->log);
    print_json(result);
  } else if (!quiet) {
    print_quantize_report(arguments.request, *outcome, arguments.verbose);
  }
  print_quantize_warnings(*outcome);
  return {ok_status(), outcome->result.lost.empty() ? 0 : kExitNotUsable};
}

}  // namespace

void add_quantize(Command& app, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  QuantizeArguments& how = arguments->quantize;
  Command command = app.add_subcommand("quantize", "Make an integer model from a float one");
  command.add_option("model", how.request.model, "Float model (.tflite or .onnx)").required();
  command.add_option("-o,--output", how.request.output,
                     "File to write, or folder for it (needed unless --stop-after is given)");
  add_data_options(command, how);
  add_mode_option(command, how);
  add_quantizer_options(command, how);
  add_front_end_flags(command, how.front_end);
  add_threads_option(command, how);
  add_verbose_option(command, how);
  add_pass_flags(command, arguments->passes);
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
    if (arguments->quantize.request.output.empty() && arguments->passes.stop_after.empty()) refuse_missing("--output");
    action = [arguments] { return run_quantize(*arguments); };
  });
}

}  // namespace reef::app
