// SPDX-License-Identifier: Apache-2.0
// reef tune: a float model and samples in, a front of compiled files out.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/shell_word.h"
#include "chip/links.h"
#include "cluster_start.h"
#include "commands.h"
#include "console.h"
#include "data_options.h"
#include "front_end_flags.h"
#include "json_output.h"
#include "limit_flags.h"
#include "plan_options.h"
#include "progress.h"
#include "report/summary.h"
#include "tune/tune.h"
#include "usage.h"

namespace reef::app {
namespace {

constexpr int kExitGoalMissed = 3;
constexpr double kMib = 1 << 20;

struct TuneArguments {
  tune::TuneRequest request;
  DataArguments data;
  FrontEndFlags front_end;
  std::string goal, link, cluster;
  std::string task;     // do this one; for reef.cluster
  std::string pending;  // "", "all", "reports": tell which tasks are missing; for reef.cluster
  double memory_mib = most_mib();
  bool json = false;
};

std::string figure_text(const tune::Survey& survey, double value) {
  return survey.is_share() ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.2f} {}", value, survey.unit);
}

void print_table(const tune::TuneOutcome& outcome) {
  const tune::Survey& survey = outcome.survey;
  print_text("  {:<26} {:>10} {:>14} {:>14} {:>12} {:>12} {:>10}\n", "point", "ms", survey.metric, "chosen by",
             "parameters", "streamed", "on chip");
  print_text("  {:<26} {:>10} {:>14} {:>14}\n", "float model", "-",
             survey.float_report ? figure_text(survey, *survey.float_report) : "-",
             figure_text(survey, survey.float_accuracy));
  for (std::size_t i = 0; i < outcome.points.size(); ++i) {
    const tune::Point& point = outcome.points[i];
    const char* const mark = static_cast<int>(i) == outcome.chosen ? ">" : point.is_on_front ? "*" : " ";
    print_text("{} {:<26} {:>10.3f} {:>14} {:>14} {:>12} {:>12} {:>10}\n", mark, tag_of(point.choices),
               point.simulated_ms, point.report_accuracy ? figure_text(survey, *point.report_accuracy) : "-",
               figure_text(survey, point.accuracy), point.parameters, point.streamed_bytes,
               fmt::format("{}/{}", point.operators_on_edgetpu, point.operators));
  }
  print_text(
      "> chosen, * on the front: nothing is as fast and more accurate. Times are simulated; {} is measured on {} "
      "samples "
      "that did not choose, \"chosen by\" on {} others.\n",
      survey.metric, survey.reporting_samples, survey.choosing_samples);
}

report::Summary summary_of(const tune::TuneRequest& request, const tune::TuneOutcome& outcome) {
  const tune::Point& chosen = outcome.points[at(outcome.chosen)];
  const auto usual = std::find_if(outcome.points.begin(), outcome.points.end(),
                                  [](const tune::Point& point) { return point.choices == tune::Choices(); });
  report::Summary summary;
  summary.tone = outcome.missed.empty() ? report::Tone::kGood : report::Tone::kBad;
  if (!outcome.missed.empty()) {
    summary.verdict = fmt::format("The goal is not met; nearest is '{}': {}", tag_of(chosen.choices), outcome.missed);
  } else {
    const auto on_front = std::count_if(outcome.points.begin(), outcome.points.end(),
                                        [](const auto& point) { return point.is_on_front; });
    summary.verdict = fmt::format("{} of {} points are on the front; '{}' is chosen", on_front, outcome.points.size(),
                                  tag_of(chosen.choices));
  }
  const auto line = [&](const tune::Point& point) {
    return fmt::format("{:.3f} ms (simulated), {} {} (measured, {} samples that did not choose)", point.simulated_ms,
                       outcome.survey.metric,
                       figure_text(outcome.survey, point.report_accuracy.value_or(point.accuracy)),
                       outcome.survey.reporting_samples);
  };
  summary.add("chosen", line(chosen));
  if (usual != outcome.points.end()) summary.add("default", line(*usual));
  summary.add("verified", "every point, on the virtual Edge TPU, bit for bit. Not run on silicon");
  summary.add(
      "work",
      fmt::format("{} pieces done in {:.1f} s, {} were there already (measured){}", outcome.done, outcome.seconds,
                  outcome.found, outcome.ran_out ? "; the time limit ended the search, the same command goes on" : ""));
  summary.add("files", fmt::format("in {}, tune.svg, tune.json", request.output));
  const std::string file = (std::filesystem::path(request.output) / chosen.files.front()).string();
  summary.add("next", fmt::format("reef inspect {}", shell_word(file)));
  return summary;
}

Status settle(TuneArguments& arguments) {
  tune::TuneRequest& request = arguments.request;
  tune::Subject& subject = request.subject;
  REEF_ASSIGN_OR_RETURN(subject.front_end, front_end_options(arguments.front_end));
  BudgetLimits limits;
  limits.bytes = static_cast<std::int64_t>(std::ceil(arguments.memory_mib * kMib));
  subject.budget = subject.front_end.budget = arguments.data.dataset.budget = Budget(limits);
  subject.data = arguments.data.dataset;
  REEF_ASSIGN_OR_RETURN(request.search.goal, tune::parse_goal(arguments.goal));
  subject.link = chip::link_profiles().data();
  subject.host_is_assumed = arguments.link.empty();
  if (!arguments.link.empty()) subject.link = chip::find_link(arguments.link);
  REEF_REQUIRE(subject.link != nullptr, "{}", unknown_link(arguments.link));
  if (request.output.empty()) request.output = std::filesystem::path(subject.model).stem().string() + "_tuned";
  return ok_status();
}

Status tell_pending(const TuneArguments& arguments) {
  REEF_ASSIGN_OR_RETURN(const tune::Pending pending,
                        tune::pending_tasks(arguments.request, arguments.pending == "reports"));
  tune::Json tasks = tune::Json::array();
  for (const tune::PendingTask& task : pending.tasks) {
    tasks.push_back({{"task", task.task}, {"needs", task.needs}, {"record", task.record}});
  }
  print_json({{"pending", tasks},
              {"model_files", pending.model_files},
              {"data_files", pending.data_files},
              {"output", arguments.request.output},
              {"done", pending.done},
              {"expected", pending.expected}});
  return ok_status();
}

Ending run_tune(TuneArguments arguments) {
  if (!arguments.cluster.empty()) return become_cluster("tune", arguments.cluster);
  REEF_RETURN_IF_ERROR(settle(arguments));
  if (!arguments.pending.empty()) return tell_pending(arguments);
  if (!arguments.task.empty()) {
    REEF_ASSIGN_OR_RETURN(const std::vector<std::string> files, tune::do_task(arguments.request, arguments.task));
    print_json({{"files", files}});
    return ok_status();
  }
  std::unique_ptr<Progress> line;
  int done = 0, expected = 1;
  if (!arguments.json) {
    line = std::make_unique<Progress>("pieces of work");
    arguments.request.progress = [&](const tune::Task&, int so_far, int all) {
      done = so_far;
      expected = all;
      line->show(done, expected);
    };
    arguments.request.subject.progress = [&](std::string_view, std::int64_t, std::int64_t) {
      line->show(done, expected);
    };
  }
  auto outcome = tune::tune(arguments.request);
  line.reset();
  if (!outcome.ok()) return outcome.status().in(arguments.request.subject.model);
  if (arguments.json) {
    tune::Json json = tune::outcome_json(arguments.request, *outcome);
    json["work"] = {{"done", outcome->done}, {"found", outcome->found}, {"seconds", outcome->seconds}};
    print_json(json);
  } else {
    const report::Summary summary = summary_of(arguments.request, *outcome);
    print_exact("{}\n", report::verdict_line(summary, has_colour()));
    print_table(*outcome);
    for (const tune::Refused& one : outcome->refused) print_error("reef: note: not built: {}: {}\n", one.what, one.why);
    print_exact("{}", report::closing_lines(summary, has_colour()));
  }
  return {ok_status(), outcome->missed.empty() ? 0 : kExitGoalMissed};
}

void add_search_options(Command& command, TuneArguments& arguments) {
  const OptionGroup group(command, "Search");
  command
      .add_option("--goal", arguments.goal,
                  "latency<5ms, drop<1% (of accuracy, against the float model), accuracy>80%, fit (all parameters on "
                  "the chip), or several with commas. Default: the whole front")
      .option_text("GOAL");
  command.add_option("--points", arguments.request.search.points, "Files to build, at most")
      .check(between(1, 1000))
      .capture_default_str();
  command
      .add_option("--time-limit", arguments.request.time_limit_s,
                  "Begin no further file after so many seconds; the same command goes on later")
      .check(not_negative())
      .option_text("SECONDS [none]");
  command
      .add_option("--devices", arguments.request.search.devices,
                  "Edge TPUs there are: models that stream may be cut into so many segments")
      .check(between(1, 16))
      .capture_default_str();
  command.add_option("--link", arguments.link, "Host and link that times are for (`reef check --help` lists them)");
  command
      .add_option("--metric", arguments.request.subject.metric, "Accuracy to measure (default: what suits the model)")
      .transform(one_of({"top1", "top5", "map50", "psnr", "miou"}));
  command
      .add_option("--fit-samples", arguments.request.subject.fit_samples, "Samples to fit and calibrate with, at most")
      .check(positive())
      .capture_default_str();
  command
      .add_option("--judge-samples", arguments.request.subject.judge_samples,
                  "Samples to measure with, at most: one half chooses, the other is reported on")
      .check(positive())
      .capture_default_str();
  add_cluster_option(command, arguments.cluster);
}

}  // namespace

void add_tune(Command& app, Action& action) {
  auto arguments = std::make_shared<TuneArguments>();
  tune::Subject& subject = arguments->request.subject;
  Command command = app.add_subcommand(
      "tune", "Search sizes, pruning, quantization and code for the best trades of accuracy and time");
  command.add_option("model", subject.model, "Float model (.tflite or .onnx)").required();
  command
      .add_option("-o,--output", arguments->request.output,
                  "Folder for the files and for what was measured (default: the model's name with _tuned)")
      .writes(WritesByDefault::kHere);
  add_data_options(command, arguments->data, /*is_required=*/true);
  add_search_options(command, *arguments);
  add_front_end_flags(command, arguments->front_end);
  subject.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  command.add_option("--threads", subject.threads, "Threads; results do not depend on it")
      .check(between(1, 256))
      .capture_default_str();
  command
      .add_option("--memory-limit", arguments->memory_mib,
                  "MiB that tensors and decoded data may take together; 0: no limit")
      .check(not_negative())
      .option_text("MIB");
  command.add_option("--pending", arguments->pending, "Print the tasks that are missing, as JSON (docs/cluster.md)")
      .transform(one_of({"all", "reports"}));
  command.add_option("--task", arguments->task, "Do one of these (docs/cluster.md)");
  command.add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  command.footer(
      "Examples:\n  reef tune model.onnx --data eval.npz --preprocess mean=127.5,std=127.5 -o tuned\n"
      "  reef tune model.onnx --data photos --goal \"latency<5ms\" --link usb3-rpi4 -o tuned\n"
      "  reef tune model.onnx --data photos --goal \"drop<1%\" --points 20 --cluster local:4 -o tuned");
  command.callback([arguments, &action] { action = [arguments] { return run_tune(*arguments); }; });
}

}  // namespace reef::app
