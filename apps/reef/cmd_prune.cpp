// SPDX-License-Identifier: Apache-2.0
// reef prune: a float model and samples in, a smaller float model out, with what was lost and gained.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/shell_word.h"
#include "chip/links.h"
#include "cluster_start.h"
#include "commands.h"
#include "compiler/prune_driver.h"
#include "console.h"
#include "data_options.h"
#include "front_end_flags.h"
#include "json_output.h"
#include "limit_flags.h"
#include "output_name.h"
#include "plan_options.h"
#include "progress.h"
#include "quantize_report.h"
#include "report/summary.h"
#include "usage.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct PruneArguments {
  compiler::PruneRequest request;
  DataArguments data;
  FrontEndFlags front_end;
  LimitFlags limits = LimitFlags::for_data();
  std::string latency, drop, link, heads = "within";
  std::string cluster, sweep;
  double params = 0, zeros = 0;
  bool json = false, no_simulation = false;
};

// "5ms", "0.005s", "5": milliseconds.
Result<double> milliseconds(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  REEF_REQUIRE(end != text.c_str() && (unit.empty() || unit == "ms" || unit == "s" || unit == "us") && value > 0,
               "--latency {}: give a time such as 5ms", text);
  return unit == "s" ? value * 1000 : unit == "us" ? value / 1000 : value;
}

// "1%", "0.01": a share of 1.
Result<double> share(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  REEF_REQUIRE(end != text.c_str() && (unit.empty() || unit == "%") && value >= 0 && std::isfinite(value),
               "--drop {}: give a share such as 1%", text);
  REEF_REQUIRE(unit == "%" || value < 1, "--drop {0}: is that {0}%? Write it with the sign, or as a share of 1", text);
  return unit == "%" ? value / 100 : value;
}

std::string size_text(double parameters) {
  return parameters >= 1e6 ? fmt::format("{:.2f} M", parameters / 1e6) : fmt::format("{:.1f} k", parameters / 1e3);
}

std::string accuracy_text(const compiler::PruneOutcome& outcome, const compiler::PrunePoint& point) {
  if (!point.accuracy) return "-";
  return outcome.metric_unit.empty() ? fmt::format("{:.2f} %", 100 * *point.accuracy)
                                     : fmt::format("{:.2f} {}", *point.accuracy, outcome.metric_unit);
}

std::string time_text(const std::optional<double>& ms) { return ms ? fmt::format("{:.3f}", *ms) : std::string("-"); }

std::string agreement_text(const compiler::PrunePoint& point) {
  std::string text = std::isfinite(point.agreement_db) && point.agreement_db < 119
                         ? fmt::format("{:.1f} dB", point.agreement_db)
                         : std::string("equal");
  if (point.top1_agreement) text += fmt::format(", {:.1f} %", 100 * *point.top1_agreement);
  return text;
}

void print_table(const compiler::PruneOutcome& outcome) {
  print_text("{:<12} {:>12} {:>12} {:>20} {:>12} {:>12} {:>14}\n", "", "parameters",
             outcome.metric.empty() ? "accuracy" : outcome.metric, "as the original", "estimated ms", "simulated ms",
             "streamed bytes");
  for (const compiler::PrunePoint& point : outcome.points) {
    print_text("{:<12} {:>12} {:>12} {:>20} {:>12} {:>12} {:>14}\n", point.what, point.parameters,
               accuracy_text(outcome, point), agreement_text(point), time_text(point.estimated_ms),
               time_text(point.simulated_ms), point.streamed_bytes);
  }
}

report::Summary summary_of(const compiler::PruneRequest& request, const compiler::PruneOutcome& outcome) {
  const compiler::PrunePoint &before = outcome.points.front(), &after = outcome.points.back();
  report::Summary summary;
  summary.tone = outcome.meets_goal ? report::Tone::kGood : report::Tone::kBad;
  const double left =
      static_cast<double>(after.parameters) / static_cast<double>(std::max<std::int64_t>(before.parameters, 1));
  if (!outcome.meets_goal) {
    summary.verdict = "The goal cannot be met, nothing was written: " + outcome.nearest;
  } else if (request.goal.zeros) {
    summary.verdict = fmt::format("{:.0f} % of the weights of {} layers are zero",
                                  100.0 * static_cast<double>(outcome.repair.zeros) /
                                      static_cast<double>(std::max<std::int64_t>(outcome.repair.weights, 1)),
                                  outcome.repair.repaired);
  } else {
    summary.verdict = fmt::format("{:.0f} % of the parameters stay: {} of {}", 100 * left,
                                  size_text(static_cast<double>(after.parameters)),
                                  size_text(static_cast<double>(before.parameters)));
  }
  if (after.accuracy) {
    summary.add("accuracy",
                fmt::format("{}, before {} ({}, float, measured on {} samples{})", accuracy_text(outcome, after),
                            accuracy_text(outcome, before), outcome.metric, outcome.judged_samples,
                            outcome.judged_apart ? " that nothing was fitted to" : ", the fitted ones"));
  }
  std::string outputs = fmt::format("{:.1f} dB from the original's", after.agreement_db);
  if (after.top1_agreement)
    outputs += fmt::format(", the same class for {:.1f} % of the samples", 100 * *after.top1_agreement);
  summary.add("outputs", outputs + " (measured)");
  if (after.simulated_ms && before.simulated_ms) {
    summary.add("time", fmt::format("{:.3f} ms, before {:.3f} ms (simulated; what stays on the CPU estimated)",
                                    *after.simulated_ms, *before.simulated_ms));
  } else if (after.estimated_ms && before.estimated_ms) {
    summary.add("time",
                fmt::format("{:.3f} ms, before {:.3f} ms (estimated)", *after.estimated_ms, *before.estimated_ms));
  } else if (!after.why_no_time.empty()) {
    summary.add("time", "not known: " + after.why_no_time);
  }
  if (before.streamed_bytes > 0 || after.streamed_bytes > 0) {
    summary.add("streaming", fmt::format("{} bytes of parameters are sent with every inference, before {}",
                                         after.streamed_bytes, before.streamed_bytes));
  }
  if (request.goal.zeros) {
    summary.add("note",
                "single zeros save neither time nor memory on the Edge TPU, which stores and multiplies them; "
                "--params, --fit and --latency remove whole channels");
  }
  if (outcome.meets_goal) {
    const std::string& preprocess = request.data.preprocess;
    summary.add("next",
                fmt::format("reef compile {} --data {}{}", shell_word(request.output), shell_word(request.data.path),
                            preprocess.empty() ? "" : " --preprocess " + shell_word(preprocess)));
  } else {
    summary.add("next", "ask for less, or allow --multiple 1 and a smaller --least-kept");
  }
  return summary;
}

Json outcome_json(const compiler::PruneRequest& request, const compiler::PruneOutcome& outcome) {
  Json points = Json::array();
  for (const compiler::PrunePoint& point : outcome.points) {
    Json row = {{"what", point.what}, {"parameters", point.parameters}};
    if (point.accuracy) row["accuracy"] = *point.accuracy;
    if (std::isfinite(point.agreement_db)) row["agreement_db"] = point.agreement_db;
    if (point.top1_agreement) row["top1_agreement"] = *point.top1_agreement;
    if (point.estimated_ms) row["estimated_ms"] = *point.estimated_ms;
    if (point.simulated_ms) row["simulated_ms"] = *point.simulated_ms;
    row["cached_bytes"] = point.cached_bytes;
    row["streamed_bytes"] = point.streamed_bytes;
    points.push_back(std::move(row));
  }
  return {{"model", request.model},
          {"output", outcome.meets_goal ? request.output : ""},
          {"meets_goal", outcome.meets_goal},
          {"nearest", outcome.nearest},
          {"metric", outcome.metric},
          {"fitted_samples", outcome.fitted_samples},
          {"judged_samples", outcome.judged_samples},
          {"layers_changed", outcome.layers.size()},
          {"points", points},
          {"notes", outcome.notes},
          {"seconds", outcome.seconds}};
}

Status settle(PruneArguments& arguments) {
  compiler::PruneRequest& request = arguments.request;
  REEF_ASSIGN_OR_RETURN(request.front_end, front_end_options(arguments.front_end));
  request.study.budget = request.front_end.budget = arguments.data.dataset.budget = budget_of(arguments.limits);
  request.data = arguments.data.dataset;
  if (arguments.params != 0) request.goal.parameters = arguments.params;
  if (arguments.zeros != 0) request.goal.zeros = arguments.zeros;
  if (!arguments.latency.empty()) {
    REEF_ASSIGN_OR_RETURN(request.goal.latency_ms, milliseconds(arguments.latency));
  }
  if (!arguments.drop.empty()) {
    REEF_ASSIGN_OR_RETURN(request.goal.drop, share(arguments.drop));
  }
  request.study.heads = arguments.heads == "whole" ? prune::HeadUnits::kWholeHeads : prune::HeadUnits::kWithinHeads;
  request.simulates = !arguments.no_simulation;
  if (!arguments.link.empty()) {
    request.link = chip::find_link(arguments.link);
    REEF_REQUIRE(request.link != nullptr, "{}", unknown_link(arguments.link));
  }
  if (request.output.empty()) {
    request.output = std::filesystem::path(request.model).stem().string() + "_pruned.tflite";
  }
  request.output = output_file(request.output, request.model, "_pruned.tflite");
  return ok_status();
}

Ending run_prune(PruneArguments arguments) {
  if (!arguments.cluster.empty()) return become_cluster("prune", arguments.cluster);
  REEF_REQUIRE(arguments.sweep.empty(), "--sweep makes several models at once: say where with --cluster local");
  REEF_RETURN_IF_ERROR(settle(arguments));
  std::string shown;
  std::unique_ptr<Progress> line;
  if (!arguments.json) {
    arguments.request.study.progress = [&](std::string_view phase, std::int64_t done, std::int64_t all) {
      if (line == nullptr || shown != phase) {
        shown = phase;
        line.reset();
        line = std::make_unique<Progress>(fmt::format("steps, {}", phase));
      }
      line->show(done, all);
    };
  }
  auto outcome = compiler::prune_file(arguments.request);
  line.reset();
  if (!outcome.ok()) return outcome.status().in(arguments.request.model);
  if (arguments.json) {
    print_json(outcome_json(arguments.request, *outcome));
  } else {
    const report::Summary summary = summary_of(arguments.request, *outcome);
    print_exact("{}\n", report::verdict_line(summary, has_colour()));
    print_table(*outcome);
    for (const std::string& note : outcome->notes) print_error("reef: note: {}\n", note);
    print_exact("{}", report::closing_lines(summary, has_colour()));
  }
  return {ok_status(), outcome->meets_goal ? 0 : kExitNotUsable};
}

void add_goals(Command& command, PruneArguments& arguments) {
  const OptionGroup group(command, "Goal (one of these)");
  command.add_option("--params", arguments.params, "Share of the parameters that stays, such as 0.5")
      .check(between(0.0, 1.0));
  command.add_flag("--fit", arguments.request.goal.fit,
                   "Make all parameters fit the Edge TPU's memory, so that none are sent with every inference");
  command.add_option("--latency", arguments.latency,
                     "Time of an inference on the Edge TPU, such as 5ms (looked for by estimates, then simulated)");
  command.add_option("--drop", arguments.drop,
                     "Smallest model that loses no more accuracy than this, such as 1%: points of the metric, or of "
                     "agreement with the original where the samples do not say what is right");
  command
      .add_option("--zeros", arguments.zeros,
                  "Set this share of single weights to zero instead. Saves nothing on the Edge TPU")
      .check(between(0.0, 1.0));
}

}  // namespace

void add_prune(Command& app, Action& action) {
  auto arguments = std::make_shared<PruneArguments>();
  compiler::PruneRequest& request = arguments->request;
  Command command =
      app.add_subcommand("prune", "Make a float model smaller without training: remove channels, fit the rest");
  command.add_option("model", request.model, "Float model (.tflite or .onnx)").required();
  command
      .add_option("-o,--output", request.output,
                  "File to write, or folder for it (default: the model's name with _pruned.tflite)")
      .writes(WritesByDefault::kHere);
  add_goals(command, *arguments);
  add_data_options(command, arguments->data, /*is_required=*/true);
  command.add_option("--fit-samples", request.fit_samples, "Samples to fit weights to, at most")
      .check(positive())
      .capture_default_str();
  command.add_option("--metric", request.metric, "Accuracy to measure (default: what suits the model)")
      .transform(one_of({"top1", "top5", "map50", "psnr", "miou"}));
  {
    const OptionGroup group(command, "Pruning");
    command
        .add_option(
            "--multiple", request.study.multiple,
            "Channels that stay are a multiple of this where there are enough; the Edge TPU computes four at a time")
        .check(between(1, 256))
        .capture_default_str();
    command.add_option("--least-kept", request.study.least_kept, "Share of each group of channels that always stays")
        .check(between(0.0, 1.0))
        .capture_default_str();
    command
        .add_option("--heads", arguments->heads,
                    "Attention: take the same number of units from within every head, or whole heads")
        .transform(one_of({"within", "whole"}))
        .capture_default_str();
    command.add_flag("--blocks", request.study.blocks,
                     "Whole residual blocks may go, too: faster models of the same size, mostly less accurate ones");
    command.add_option("--link", arguments->link, "Host and link that times are for (`reef check --help` lists them)");
    command.add_option("--points", request.points, "Rows of the table beside the original")
        .check(between(1, 32))
        .capture_default_str();
    command.add_flag("--no-simulation", arguments->no_simulation,
                     "Estimate times only; do not compile every row of the table");
  }
  {
    const OptionGroup group(command, "Further files");
    command.add_option("--masks", request.masks, "Write which channels (or weights) stay to this .npz").writes();
    command
        .add_option("--map", request.map, "Write the same with names of ONNX initializers and PyTorch modules (JSON)")
        .writes();
    command.add_option("--plot", request.plot, "Write a page (HTML) with accuracy against time and size").writes();
    command.add_option("--int8", request.int8, "Also write the pruned model quantized to int8").writes();
  }
  {
    const OptionGroup group(command, "In several processes (docs/cluster.md)");
    command
        .add_option("--sweep", arguments->sweep,
                    "Make a model for each of several values of a goal: params=0.7,0.5 or zeros=, latency=, drop=; "
                    "needs --cluster")
        .option_text("GOAL=VALUES");
    add_cluster_option(command, arguments->cluster);
  }
  add_front_end_flags(command, arguments->front_end);
  int& threads = request.study.threads;
  threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  command.add_option("--threads", threads, "Threads; the result does not depend on it")
      .check(between(1, 256))
      .capture_default_str();
  command.add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  add_limit_flags(command, arguments->limits);
  command.footer(
      "Examples:\n  reef prune models/reef_creatures_float.tflite --data models/images --preprocess unit --params 0.5 "
      "-o small.tflite\n"
      "  reef prune model.onnx --data cifar10_eval.npz --preprocess mean=127.5,std=127.5 --drop 1% --plot curve.html");
  command.callback([arguments, &action] { action = [arguments] { return run_prune(*arguments); }; });
}

}  // namespace reef::app
