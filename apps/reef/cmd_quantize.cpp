// SPDX-License-Identifier: Apache-2.0
// reef quantize: a float model and samples in, an integer model out, with what was measured on the way.
#include <memory>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cluster_start.h"
#include "commands.h"
#include "compiler/output_check.h"
#include "compiler/quantize_json.h"
#include "console.h"
#include "data/subset.h"
#include "json_output.h"
#include "output_name.h"
#include "pass_report.h"
#include "quantize/calibration_part.h"
#include "quantize_arguments.h"
#include "quantize_report.h"
#include "usage.h"

namespace reef::app {
namespace {

struct Arguments {
  QuantizeArguments quantize;
  PassFlags passes;
  bool json = false, quiet = false;
  // Calibration in parts.
  std::string partial, cluster;
  std::vector<std::string> parts;
};

constexpr std::uint64_t kMostPartBytes = std::uint64_t{1} << 34;

// Calibrates with a part of the samples, writes that down and ends the command: the rest of quantizing is for the
// process that has all parts.
struct PartTaken {
  bool done = false;
  std::int64_t samples = 0, all = 0;
};
quantize::Calibrator part_taker(std::int64_t shard, std::int64_t shards, const std::string& path, PartTaken& taken) {
  return [=, &taken](const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                     std::span<const std::int64_t> samples,
                     const quantize::RunOptions& options) -> Result<quantize::Calibration> {
    const std::vector<std::int64_t> positions = data::every_nth(data::in_order(std::ssize(samples)), shard, shards);
    REEF_ASSIGN_OR_RETURN(const quantize::CalibrationPart part,
                          quantize::calibrate_part(model, source, samples, positions, options));
    REEF_RETURN_IF_ERROR(write_file(path, quantize::to_bytes(part)));
    taken = {true, std::ssize(positions), std::ssize(samples)};
    return make_error(StatusCode::kDeferred, "the other parts are missing");
  };
}

// Puts the parts together where they are of this model; a model that the quantizer changed on the way is calibrated
// here.
Result<quantize::Calibrator> part_merger(const std::vector<std::string>& paths) {
  auto parts = std::make_shared<std::vector<quantize::CalibrationPart>>();
  for (const std::string& path : paths) {
    REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMostPartBytes));
    auto part = quantize::read_part(file.span());
    if (!part.ok()) return part.status().in(path);
    parts->push_back(std::move(part).value());
  }
  auto is_first = std::make_shared<bool>(true);
  return quantize::Calibrator([parts, is_first](const std::shared_ptr<const ir::Model>& model,
                                                const data::SampleSource& source, std::span<const std::int64_t> samples,
                                                const quantize::RunOptions& options) -> Result<quantize::Calibration> {
    if (!*is_first) return quantize::calibrate(model, source, samples, options);
    *is_first = false;
    return quantize::merge_parts(*model, samples, *parts);
  });
}

Status quantize_part(QuantizeArguments arguments, const Arguments& given) {
  REEF_RETURN_IF_ERROR(
      compiler::check_files({{given.partial}, {arguments.request.model}, {arguments.request.data}, {}}));
  PartTaken taken;
  // The part is one of the samples that calibrate. Which these are, all processes settle from the whole set.
  data::DatasetOptions& data = arguments.request.data;
  arguments.request.calibrator = part_taker(data.shard, data.shards, given.partial, taken);
  data.shard = 0;
  data.shards = 1;
  arguments.request.output.clear();
  const auto outcome = quantize_with_progress(arguments, false);
  if (!taken.done) {
    return outcome.ok() ? invalid_input("--partial: this model is not calibrated, there is nothing to do in parts")
                        : outcome.status();
  }
  if (given.json) {
    print_json({{"partial", given.partial}, {"samples", taken.samples}, {"all_samples", taken.all}});
  } else {
    print_text(
        "calibrated with {} of {} samples, kept in {}\nreef quantize ... --calibration-parts with all parts goes on\n",
        taken.samples, taken.all, given.partial);
  }
  return ok_status();
}

// --stop-after: nothing is quantized, so that no samples are needed.
Status print_pass(QuantizeArguments& arguments, const std::string& pass) {
  REEF_RETURN_IF_ERROR(settle(arguments));
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult loaded,
                        compiler::load_any_model(arguments.request.model, arguments.request.front_end));
  REEF_RETURN_IF_ERROR(compiler::simplify_once(loaded).status());
  return print_graph(loaded.log, pass);
}

Ending run_quantize(const Arguments& given) {
  if (!given.cluster.empty()) return become_cluster("quantize", given.cluster);
  const PassFlags& passes = given.passes;
  const bool json = given.json, quiet = given.quiet;
  QuantizeArguments arguments = given.quantize;
  arguments.log = log_request(passes);
  if (!passes.stop_after.empty()) return print_pass(arguments, passes.stop_after);
  if (!given.partial.empty()) return quantize_part(arguments, given);
  if (!given.parts.empty()) {
    REEF_ASSIGN_OR_RETURN(arguments.request.calibrator, part_merger(given.parts));
  }
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
  command
      .add_option("-o,--output", how.request.output,
                  "File to write, or folder for it (needed unless --stop-after is given)")
      .writes(WritesByDefault::kHere);
  add_data_options(command, how);
  add_mode_option(command, how);
  add_quantizer_options(command, how);
  add_front_end_flags(command, how.front_end);
  add_threads_option(command, how);
  add_verbose_option(command, how);
  add_pass_flags(command, arguments->passes);
  add_limit_flags(command, how.limits);
  {
    const OptionGroup group(command, "In parts, in several processes (docs/cluster.md)");
    Option partial = command
                         .add_option("--partial", arguments->partial,
                                     "Write what was seen of the samples, or with --shard of some of those that "
                                     "calibrate, to this file, and stop")
                         .writes();
    command
        .add_option("--calibration-parts", arguments->parts,
                    "Go on from these files, which must hold every sample once")
        .option_text("FILE...")
        .excludes(partial);
    add_cluster_option(command, arguments->cluster);
  }
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
    const bool writes_no_model = !arguments->passes.stop_after.empty() || !arguments->partial.empty();
    if (arguments->quantize.request.output.empty() && !writes_no_model) refuse_missing("--output");
    action = [arguments] { return run_quantize(*arguments); };
  });
}

}  // namespace reef::app
