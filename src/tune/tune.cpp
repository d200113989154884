// SPDX-License-Identifier: Apache-2.0
#include "tune/tune.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/output_place.h"
#include "data/dataset_files.h"
#include "formats/onnx/external_data.h"
#include "report/scatter_plot.h"

namespace reef::tune {
namespace {

std::vector<std::string> model_files(const std::string& model) {
  std::vector<std::string> files = {model};
  if (const auto external = onnx::external_files(model); external.ok())
    files.insert(files.end(), external->begin(), external->end());
  return files;
}

std::vector<std::string> sorted_data_files(const data::DatasetOptions& data) {
  std::vector<std::string> files = data::dataset_files(data);
  std::error_code error;
  std::erase_if(files, [&](const std::string& file) { return !std::filesystem::is_regular_file(file, error); });
  std::sort(files.begin(), files.end());
  return files;
}

// Everything that decides results, but for the choices of a task.
Status set_context(const TuneRequest& request, Store& store) {
  const Subject& subject = request.subject;
  const compiler::FrontEndOptions& front_end = subject.front_end;
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(subject.data.path, error);
  REEF_ASSIGN_OR_RETURN(const std::string file, program_file());
  REEF_ASSIGN_OR_RETURN(const std::string program, store.hash_of_files({file}, ""));
  REEF_ASSIGN_OR_RETURN(const std::string model, store.hash_of_files(model_files(subject.model), ""));
  REEF_ASSIGN_OR_RETURN(const std::string data,
                        store.hash_of_files(sorted_data_files(subject.data), is_folder ? subject.data.path : ""));
  const Json options = {{"program", program.substr(0, 16)},
                        {"model", model},
                        {"name", std::filesystem::path(subject.model).filename().string()},
                        {"data", data},
                        {"arrays", subject.data.arrays},
                        {"truth", std::filesystem::path(subject.data.truth).filename().string()},
                        {"preprocess", subject.data.preprocess},
                        {"limit", subject.data.limit},
                        {"shard", {subject.data.shard, subject.data.shards}},
                        {"shuffle", subject.data.shuffle_seed ? Json(*subject.data.shuffle_seed) : Json()},
                        {"shapes", front_end.input_shapes},
                        {"values", front_end.input_values},
                        {"nchw", front_end.keep_nchw},
                        {"flags", {front_end.pad_selections, front_end.unroll, front_end.simplify}},
                        {"metric", subject.metric},
                        {"link", subject.link == nullptr ? "" : std::string(subject.link->name)},
                        {"assumed", subject.host_is_assumed},
                        {"samples", {subject.fit_samples, subject.judge_samples}},
                        {"cuts", subject.cuts}};
  store.set_context(options.dump());
  return ok_status();
}

// The files must not be the user's own, and there must be something to read.
Status check_request(const TuneRequest& request) {
  REEF_RETURN_IF_ERROR(check_output_folder(request.output));
  REEF_REQUIRE(request.search.points >= 1, "--points must be 1 or more");
  std::error_code error;
  const std::filesystem::path output = std::filesystem::weakly_canonical(request.output, error);
  const std::filesystem::path data = std::filesystem::weakly_canonical(request.subject.data.path, error);
  REEF_REQUIRE(output != data, "the output folder {} holds the samples; give another one with -o", request.output);
  return ok_status();
}

const Point* most_useful(const TuneOutcome& outcome) {
  return outcome.chosen < 0 ? nullptr : &outcome.points[at(outcome.chosen)];
}

std::string plot(const TuneRequest& request, const TuneOutcome& outcome) {
  const double factor = outcome.survey.is_share() ? 100 : 1;
  report::ScatterPlot plot{
      fmt::format("{}, {} (measured, {} samples that did not choose)", outcome.survey.metric,
                  outcome.survey.is_share() ? "%" : outcome.survey.unit, outcome.survey.reporting_samples),
      "time of an inference, ms (simulated)",
      {}};
  for (const Point& point : outcome.points) {
    plot.points.push_back({point.simulated_ms, factor * point.report_accuracy.value_or(point.accuracy),
                           tag_of(point.choices), !point.is_on_front});
  }
  return report::scatter_svg("reef tune " + std::filesystem::path(request.subject.model).filename().string(), plot);
}

Json point_json(const TuneRequest& request, const Point& point) {
  Json files = Json::array();
  for (const std::string& file : point.files) files.push_back((std::filesystem::path(request.output) / file).string());
  Json row = {{"name", tag_of(point.choices)},
              {"choices", to_text(point.choices)},
              {"files", files},
              {"int8", (std::filesystem::path(request.output) / point.int8).string()},
              {"on_front", point.is_on_front},
              {"simulated_ms", point.simulated_ms},
              {"estimated_ms", point.estimated_ms},
              {"accuracy_chosen_by", point.accuracy},
              {"parameters", point.parameters},
              {"cached_bytes", point.cached_bytes},
              {"streamed_bytes", point.streamed_bytes},
              {"operators", point.operators},
              {"operators_on_edgetpu", point.operators_on_edgetpu}};
  if (point.report_accuracy) row["accuracy"] = *point.report_accuracy;
  if (point.report_error) row["standard_error"] = *point.report_error;
  return row;
}

}  // namespace

Json outcome_json(const TuneRequest& request, const TuneOutcome& outcome) {
  Json points = Json::array(), refused = Json::array();
  for (const Point& point : outcome.points) points.push_back(point_json(request, point));
  for (const Refused& one : outcome.refused) refused.push_back({{"task", one.what}, {"why", one.why}});
  Json json = {{"model", request.subject.model},
               {"data", request.subject.data.path},
               {"output", request.output},
               {"link", std::string(request.subject.link->name)},
               {"metric", outcome.survey.metric},
               {"samples",
                {{"fitted", outcome.survey.fitted_samples},
                 {"choosing", outcome.survey.choosing_samples},
                 {"reporting", outcome.survey.reporting_samples}}},
               {"float_accuracy_chosen_by", outcome.survey.float_accuracy}};
  if (!outcome.survey.unit.empty()) json["unit"] = outcome.survey.unit;
  if (outcome.survey.float_report) json["float_accuracy"] = *outcome.survey.float_report;
  if (const Point* point = most_useful(outcome)) json["chosen"] = tag_of(point->choices);
  json["meets_goal"] = outcome.missed.empty();
  if (!outcome.missed.empty()) json["nearest"] = outcome.missed;
  json["points"] = points;
  json["refused"] = refused;
  json["ended_by_time_limit"] = outcome.ran_out;
  return json;
}

Result<TuneOutcome> tune(const TuneRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  REEF_RETURN_IF_ERROR(check_request(request));
  Store store(request.output);
  REEF_RETURN_IF_ERROR(set_context(request, store));
  Search search(request.search, store);
  Workbench bench(request.subject, store);
  TuneOutcome outcome;
  const auto is_late = [&] { return request.time_limit_s > 0 && seconds() >= request.time_limit_s; };
  while (true) {
    outcome.ran_out = outcome.ran_out || is_late();
    REEF_ASSIGN_OR_RETURN(const std::vector<Task> tasks, search.next(outcome.ran_out));
    if (tasks.empty()) break;
    for (const Task& task : tasks) {
      if (task.kind != TaskKind::kReport && task.kind != TaskKind::kSurvey && is_late()) break;
      const int done = store.saved() + store.found();
      if (request.progress) request.progress(task, done, std::max(done + 1, search.expected_tasks()));
      REEF_RETURN_IF_ERROR(bench.run(task));
    }
  }
  outcome.survey = search.survey();
  outcome.points = search.points();
  outcome.refused = search.refused();
  REEF_REQUIRE(!outcome.points.empty(),
               "the time limit ended before the first point was built; the same command goes on");
  outcome.chosen = search.chosen();
  const Point& chosen = outcome.points[at(outcome.chosen)];
  outcome.missed = describe_miss(request.search.goal, search.figures_of(chosen));
  outcome.done = store.saved();
  outcome.found = store.found();
  outcome.seconds = seconds();
  REEF_RETURN_IF_ERROR(write_file(request.output + "/tune.svg", plot(request, outcome)));
  REEF_RETURN_IF_ERROR(write_file(request.output + "/tune.json", outcome_json(request, outcome).dump(1) + "\n"));
  return outcome;
}

Result<Pending> pending_tasks(const TuneRequest& request, bool only_reports) {
  REEF_RETURN_IF_ERROR(check_request(request));
  Store store(request.output);
  REEF_RETURN_IF_ERROR(set_context(request, store));
  Search search(request.search, store);
  REEF_ASSIGN_OR_RETURN(const std::vector<Task> tasks, search.next(only_reports));
  Pending pending;
  pending.model_files = model_files(request.subject.model);
  pending.data_files = sorted_data_files(request.subject.data);
  pending.done = store.found();
  pending.expected = std::max(pending.done + static_cast<int>(tasks.size()), search.expected_tasks());
  for (const Task& one : tasks) {
    PendingTask row{to_text(one), {}, store.record_name(to_text(one))};
    const auto add_needs = [&](TaskKind kind) {
      for (std::string& name : store.files_of(to_text(task(kind, one.choices)))) row.needs.push_back(std::move(name));
    };
    const bool is_pruned = one.choices.cut > 0;
    const bool reads_int8 =
        one.kind == TaskKind::kCompile || (one.kind == TaskKind::kReport && one.choices.quantizer != kFloatModel);
    if (reads_int8) {
      add_needs(TaskKind::kQuantize);
    } else if (is_pruned) {
      add_needs(TaskKind::kStudy);
    }
    pending.tasks.push_back(std::move(row));
  }
  return pending;
}

Result<std::vector<std::string>> do_task(const TuneRequest& request, const std::string& text) {
  REEF_RETURN_IF_ERROR(check_request(request));
  REEF_ASSIGN_OR_RETURN(const Task task, parse_task(text));
  Store store(request.output);
  REEF_RETURN_IF_ERROR(set_context(request, store));
  if (!store.find(to_text(task))) REEF_RETURN_IF_ERROR(Workbench(request.subject, store).run(task));
  return store.files_of(to_text(task));
}

}  // namespace reef::tune
