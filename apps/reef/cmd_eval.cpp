// SPDX-License-Identifier: Apache-2.0
// reef eval: how good a model is on data, as one figure with its standard error.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "cluster_start.h"
#include "commands.h"
#include "compiler/float_subject.h"
#include "compiler/front_end.h"
#include "compiler/output_check.h"
#include "console.h"
#include "data/model_card.h"
#include "data/shard_files.h"
#include "data/subset.h"
#include "data_options.h"
#include "device_options.h"
#include "evaluate/drawing.h"
#include "evaluate/evaluation.h"
#include "evaluate/partial.h"
#include "evaluate/task.h"
#include "front_end_flags.h"
#include "json_output.h"
#include "limit_flags.h"
#include "progress.h"
#include "report/summary.h"
#include "usage.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct EvalArguments {
  std::string model;
  FrontEndFlags front_end;
  DataArguments data;
  std::string metric;
  evaluate::MetricOptions options;
  DeviceArguments device;
  std::string tflite_release = "current";
  bool fused_floats = false;
  int threads = 0;  // 0: as many as there are cores
  bool json = false;
  LimitFlags limits = LimitFlags::for_data();
  // Evaluations in parts.
  std::string partial;             // file for what is kept of the samples
  std::string sample_names;        // file with a name a line, for arrays that are pieces of larger ones
  std::vector<std::string> merge;  // parts, or a text file that lists them
  bool describes = false;
  std::string cluster, keep;
};

Json stages_json(const data::Dataset& dataset, const evaluate::RunnerReport& run) {
  const data::ReadCounters read = dataset.counters();
  return {{"kind", "measured"},           {"samples", read.samples}, {"read_s", read.reading},
          {"decode_s", read.decoding},    {"fit_s", read.fitting},   {"inference_s", run.inference_seconds},
          {"judge_s", run.answer_seconds}};
}

void print_evaluation(const EvalArguments& arguments, const data::Dataset& dataset, const evaluate::Evaluation& result,
                      const runtime::Placement& place, int threads) {
  const evaluate::Figure& figure = result.figure;
  Json json = {{"model", arguments.model},  {"data", arguments.data.dataset.path},
               {"samples", result.samples}, {"metric", figure.metric},
               {"value", figure.value},     {"standard_error", figure.standard_error}};
  if (!figure.unit.empty()) json["unit"] = figure.unit;
  for (const auto& [name, value] : figure.details) json["details"][name] = value;
  if (dataset.holds_pictures()) {
    json["preprocess"] = {{"text", data::to_string(dataset.preprocess().preprocess)},
                          {"origin", dataset.preprocess().origin}};
  }
  json["device"] = place.name;
  json["threads"] = threads;
  json["time"] = {{"kind", "measured"},
                  {"seconds", result.run.seconds},
                  {"mean_inference_ms", 1000 * result.run.inference_seconds / static_cast<double>(result.samples)}};
  if (place.replicas.size() > 1) json["replicas"] = shares_json(result.run.devices);
  if (arguments.data.is_verbose) json["stages"] = stages_json(dataset, result.run);
  json["notes"] = result.run.notes;
  print_json(json);
}

// Metrics of classes (top1, top5) say nothing about a detector: it finds several things in one picture.
Status check_metric(const EvalArguments& arguments, const ir::Model& model) {
  if (!arguments.metric.starts_with("top") || arguments.options.output != 0) return ok_status();
  const evaluate::TaskKind kind = evaluate::task_of(model).kind;
  const bool is_detector = kind == evaluate::TaskKind::kDetector, is_segmenter = kind == evaluate::TaskKind::kSegmenter;
  REEF_REQUIRE(!is_detector && !is_segmenter,
               "--metric {} counts classes of whole pictures, but this model {}: --metric {}", arguments.metric,
               is_detector ? "finds things in pictures" : "says what each pixel shows", is_detector ? "map50" : "miou");
  return ok_status();
}

// "class 3" by its name, where the model or a file of labels says it.
std::string detail_name(const std::string& detail, const std::vector<std::string>& names) {
  constexpr std::string_view kClass = "class ";
  if (!detail.starts_with(kClass)) return detail;
  return evaluate::class_name(std::atoi(detail.c_str() + kClass.size()), names);
}

void print_figure(const evaluate::Evaluation& result, const std::vector<std::string>& names) {
  const evaluate::Figure& figure = result.figure;
  if (figure.unit.empty()) {
    print_text("{} {:.2f} % (standard error {:.2f} %, {} samples)\n", figure.metric, 100 * figure.value,
               100 * figure.standard_error, result.samples);
  } else {
    print_text("{} {:.3f} {} (standard error {:.3f} {}, {} samples)\n", figure.metric, figure.value, figure.unit,
               figure.standard_error, figure.unit, result.samples);
  }
  for (const auto& [name, value] : figure.details) {
    print_text("  {:<24} {:.6g}\n", detail_name(name, names), value);
  }
  print_text("{:.1f} s, {:.3f} ms an inference on one thread (measured)\n", result.run.seconds,
             1000 * result.run.inference_seconds / static_cast<double>(result.samples));
}

// "81.0 % (standard error 2.3 %)"
std::string figure_text(const evaluate::Figure& figure) {
  if (!figure.unit.empty()) {
    return fmt::format("{} {:.3f} {} (standard error {:.3f})", figure.metric, figure.value, figure.unit,
                       figure.standard_error);
  }
  return fmt::format("{} {:.2f} % (standard error {:.2f} %)", figure.metric, 100 * figure.value,
                     100 * figure.standard_error);
}

void print_eval_summary(const EvalArguments& arguments, const data::Dataset& dataset,
                        const evaluate::Evaluation& result, const runtime::Placement& place, bool is_compiled,
                        bool is_float) {
  report::Summary summary;
  summary.add("accuracy", fmt::format("{} on {} samples (measured)", figure_text(result.figure), result.samples));
  summary.add("where", place.description());
  if (dataset.holds_pictures()) {
    summary.add("pictures",
                fmt::format("{} ({})", data::to_string(dataset.preprocess().preprocess), dataset.preprocess().origin));
  }
  const std::string model = shell_word(arguments.model), data = shell_word(arguments.data.dataset.path);
  if (is_float) {
    summary.add("next", fmt::format("reef compile {} --data {}", model, data));
  } else if (!is_compiled) {
    summary.add("next", fmt::format("reef compile {}", model));
  }
  print_exact("{}", report::closing_lines(summary, has_colour()));
}

// Labels of 1000 classes and a model of 1001 are the classic way to measure 0 %.
void warn_about_offset(const EvalArguments& arguments, const evaluate::Evaluation& result) {
  if (arguments.options.label_offset != 0 || result.figure.value > 0.02 || arguments.metric.substr(0, 3) != "top")
    return;
  print_error(
      "reef: note: next to nothing is right. Usual causes: another preprocessing (--preprocess), or classes "
      "numbered otherwise (--label-offset 1 for models whose class 0 is background)\n");
}

// Lines of a text file.
Result<std::vector<std::string>> lines_of(const std::string& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMostBytes));
  std::vector<std::string> lines(1);
  for (const std::uint8_t byte : file.span()) {
    if (byte == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += static_cast<char>(byte);
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

// Names of samples that all processes agree on: of pictures the file, of arrays and shards the place in the whole set.
Result<std::vector<std::string>> keys_of(const EvalArguments& arguments, const data::Dataset& dataset,
                                         const std::vector<std::int64_t>& samples) {
  REEF_ASSIGN_OR_RETURN(const data::SampleFiles files, data::find_sample_files(arguments.data.dataset.path));
  const bool are_files = files.kind == data::SampleFiles::Kind::kFolder;
  std::vector<std::string> given, keys;
  if (!arguments.sample_names.empty()) {
    REEF_ASSIGN_OR_RETURN(given, lines_of(arguments.sample_names));
    REEF_REQUIRE(std::ssize(given) == dataset.stored_samples(), "{} has {} names for {} samples",
                 arguments.sample_names, given.size(), dataset.stored_samples());
  }
  for (const std::int64_t sample : samples) {
    const std::int64_t stored = dataset.stored_number(sample);
    keys.push_back(!given.empty() ? given[at(stored)]
                   : are_files    ? dataset.name_of(sample)
                                  : fmt::format("{}", stored));
  }
  return keys;
}

// All that decides what is kept of a sample.
Result<std::string> settings_of(const EvalArguments& arguments, const data::Dataset& dataset) {
  REEF_ASSIGN_OR_RETURN(const Bytes model, read_file(arguments.model, std::uint64_t{1} << 34));
  const evaluate::MetricOptions& options = arguments.options;
  std::string boxes;
  if (arguments.metric == "map50") {
    REEF_ASSIGN_OR_RETURN(boxes, evaluate::settled_boxes(options.boxes, dataset));
  }
  const Json json = {{"reef", REEF_VERSION},
                     {"model", sha256_hex(model.span())},
                     {"shapes", arguments.front_end.shapes},
                     {"values", arguments.front_end.values},
                     {"metric", arguments.metric},
                     {"output", options.output},
                     {"offset", options.label_offset},
                     {"score", options.score_threshold},
                     {"iou", options.nms_iou},
                     {"detector", options.detector},
                     {"anchors", options.anchors},
                     {"boxes", boxes},
                     {"ignored", options.ignored_label},
                     {"preprocess", data::to_string(dataset.preprocess().preprocess)},
                     {"device", arguments.device.device},
                     {"release", arguments.tflite_release},
                     {"fused", arguments.fused_floats}};
  return json.dump();
}

// Class numbers of samples that are not arrays, by which a piece of a set is labelled as the whole is: the number of a
// folder depends on which folders there are. Empty where what is right is something else.
Result<std::vector<std::int64_t>> classes_of(const data::Dataset& dataset) {
  std::vector<std::int64_t> classes;
  for (std::int64_t sample = 0; sample < dataset.size(); ++sample) {
    REEF_ASSIGN_OR_RETURN(const data::Truth truth, dataset.truth(sample));
    if (!truth.shape.empty() || truth.values.size() != 1) return std::vector<std::int64_t>();
    classes.push_back(static_cast<std::int64_t>(truth.values[0]));
  }
  return classes;
}

// Where the samples of shards lie: for each sample [file, member, first byte, bytes] of all that belongs to it.
Json shards_json(const data::SampleFiles& files, const data::Dataset& dataset) {
  Json samples = Json::array();
  for (std::int64_t sample = 0; sample < dataset.size(); ++sample) {
    Json pieces = Json::array();
    for (const data::FilePiece& piece : dataset.pieces_of(sample))
      pieces.push_back({piece.file, piece.name, piece.at, piece.bytes});
    samples.push_back(std::move(pieces));
  }
  const bool are_tar = files.kind == data::SampleFiles::Kind::kTar;
  return {{"form", are_tar ? "tar" : "tfrecord"}, {"samples", std::move(samples)}};
}

// For whoever cuts the samples into pieces: which there are, in which order, and what was settled by looking at all.
Status describe_samples(const EvalArguments& arguments, const data::Dataset& dataset) {
  std::string boxes;
  if (arguments.metric == "map50") {
    REEF_ASSIGN_OR_RETURN(boxes, evaluate::settled_boxes(arguments.options.boxes, dataset));
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        keys_of(arguments, dataset, data::in_order(dataset.size())));
  const data::DatasetOptions& given = arguments.data.dataset;
  using Kind = data::SampleFiles::Kind;
  REEF_ASSIGN_OR_RETURN(const data::SampleFiles files, data::find_sample_files(given.path));
  Json json = {{"samples", dataset.size()},
               {"stored_samples", dataset.stored_samples()},
               {"pictures_in_files", files.kind == Kind::kFolder},
               {"names", names},
               {"preprocess", dataset.holds_pictures() ? data::to_string(dataset.preprocess().preprocess) : ""},
               {"boxes", boxes},
               {"truth", given.truth},
               {"labels", given.labels}};
  if (files.kind == Kind::kFolder || files.kind == Kind::kTar) {
    REEF_ASSIGN_OR_RETURN(json["classes"], classes_of(dataset));
  }
  if (files.kind == Kind::kTar || files.kind == Kind::kRecords) json["shards"] = shards_json(files, dataset);
  print_json(json);
  return ok_status();
}

// Paths of the parts: those given, or those that a text file lists, beside it.
Result<std::vector<std::string>> parts_to_merge(const std::vector<std::string>& given) {
  if (given.size() != 1 || !given[0].ends_with(".txt")) return given;
  REEF_ASSIGN_OR_RETURN(std::vector<std::string> paths, lines_of(given[0]));
  for (std::string& path : paths) path = (std::filesystem::path(given[0]).parent_path() / path).string();
  return paths;
}

Result<evaluate::Evaluation> merged(const EvalArguments& arguments, const data::Dataset& dataset,
                                    evaluate::Metric& metric) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;
  metric.start(dataset.size());
  REEF_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                        keys_of(arguments, dataset, data::in_order(dataset.size())));
  REEF_ASSIGN_OR_RETURN(const std::string settings, settings_of(arguments, dataset));
  evaluate::PartialMerger merger(metric, settings, keys);
  REEF_ASSIGN_OR_RETURN(const std::vector<std::string> paths, parts_to_merge(arguments.merge));
  for (const std::string& path : paths) {
    REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMostBytes));
    REEF_RETURN_IF_ERROR(merger.add(std::string(file.span().begin(), file.span().end())).in(path));
  }
  REEF_RETURN_IF_ERROR(merger.check_complete());
  REEF_ASSIGN_OR_RETURN(evaluate::Figure figure, metric.finish());
  return evaluate::Evaluation{std::move(figure), dataset.size(), {}};
}

// Measures some of the samples and writes what the metric keeps of them.
Status write_partial(const EvalArguments& arguments, const std::shared_ptr<const ir::Model>& model,
                     const std::shared_ptr<const data::Dataset>& dataset, evaluate::Metric& metric,
                     const evaluate::RunnerOptions& run) {
  const std::vector<std::int64_t> samples = data::in_order(dataset->size());
  metric.start(std::ssize(samples));
  REEF_ASSIGN_OR_RETURN(const evaluate::RunnerReport report,
                        evaluate::answer_samples(model, dataset, samples, metric, run));
  REEF_ASSIGN_OR_RETURN(const std::string settings, settings_of(arguments, *dataset));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::string> keys, keys_of(arguments, *dataset, samples));
  REEF_RETURN_IF_ERROR(write_file(arguments.partial, evaluate::partial_text(metric, settings, keys)));
  if (arguments.json) {
    print_json({{"partial", arguments.partial}, {"samples", samples.size()}, {"seconds", report.seconds}});
  } else {
    print_text("{} samples measured, kept in {}\nreef eval ... --merge with all parts gives the figure\n",
               samples.size(), arguments.partial);
  }
  return ok_status();
}

Status eval(EvalArguments arguments) {
  if (!arguments.cluster.empty()) return become_cluster("eval", arguments.cluster);
  REEF_RETURN_IF_ERROR(compiler::check_files({{arguments.partial}, {arguments.model}, {arguments.data.dataset}, {}}));
  const Budget budget = budget_of(arguments.limits);
  arguments.data.dataset.budget = budget;
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndOptions front_end, front_end_options(arguments.front_end));
  front_end.budget = budget;
  auto loaded = compiler::load_any_model(arguments.model, front_end);
  if (!loaded.ok()) return loaded.status();
  const auto model = std::make_shared<const ir::Model>(std::move(loaded->model));
  REEF_ASSIGN_OR_RETURN(const auto dataset, open_data(arguments.data, data::Use::kEvaluation, *model, arguments.json));
  REEF_REQUIRE(dataset->has_truth(), "'{}' does not say what is right: {}", arguments.data.dataset.path,
               arguments.metric == "map50"
                   ? "put boxes into a .txt file beside each picture, or into a folder 'labels' beside 'images', with "
                     "lines 'class cx cy w h' in fractions of the picture"
                   : "name an array or file with --truth, or put pictures into a sub-folder for each class");
  REEF_RETURN_IF_ERROR(check_metric(arguments, *model));
  arguments.options.input = data::input_spec(*model, 0);
  arguments.options.preprocess = dataset->preprocess().preprocess;
  if (arguments.describes) return describe_samples(arguments, *dataset);
  REEF_ASSIGN_OR_RETURN(const auto metric, evaluate::make_metric(arguments.metric, arguments.options, *dataset));
  Progress progress("samples");
  evaluate::RunnerOptions run;
  run.threads = arguments.threads > 0 ? arguments.threads : static_cast<int>(std::thread::hardware_concurrency());
  run.budget = budget;
  REEF_ASSIGN_OR_RETURN(const ChosenDevice chosen, ChosenDevice::choose(settled_for(*model, arguments.device)));
  run.place = chosen.place();
  run.tflite_release = arguments.tflite_release == "2.9" ? ops::TfliteRelease::k2_9 : ops::TfliteRelease::kCurrent;
  run.float_sums = arguments.fused_floats ? ops::FloatSums::kFused : ops::FloatSums::kAsTflite;
  run.progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
  if (!arguments.partial.empty()) return write_partial(arguments, model, dataset, *metric, run);
  auto result = arguments.merge.empty() ? evaluate::evaluate(model, *dataset, *metric, run)
                                        : merged(arguments, *dataset, *metric);
  if (!result.ok()) return result.status().in(arguments.model);
  if (arguments.json) {
    print_evaluation(arguments, *dataset, *result, run.place, run.threads);
  } else {
    REEF_ASSIGN_OR_RETURN(const data::FoundNames found,
                          data::find_class_names(arguments.data.dataset.labels, arguments.model, *model));
    print_figure(*result, found.names);
    print_shares(result->run.devices, arguments.data.is_verbose);
    if (arguments.data.is_verbose) {
      print_read_counters(dataset->counters());
      print_error("reef: inference {:.3f} s, judging {:.3f} s, on all threads together (measured)\n",
                  result->run.inference_seconds, result->run.answer_seconds);
    }
    for (const std::string& note : result->run.devices.notes) print_error("reef: note: {}\n", note);
    warn_about_offset(arguments, *result);
    const bool is_float =
        data::input_spec(*model, 0).type == ir::DataType::kFloat32 && !compiler::computes_in_bytes(*model);
    print_eval_summary(arguments, *dataset, *result, run.place, is_compiled(*model), is_float);
  }
  return ok_status();
}

}  // namespace

void add_eval(Command& app, Action& action) {
  auto arguments = std::make_shared<EvalArguments>();
  Command command = app.add_subcommand("eval", "Measure a model on data: share of right answers, mAP, PSNR, IoU");
  command.add_option("model", arguments->model, "A model file: float, quantized, or compiled for the Edge TPU")
      .required();
  add_front_end_flags(command, arguments->front_end);
  add_data_options(command, arguments->data, /*is_required=*/true);
  add_stages_option(command, arguments->data);
  command.add_option("--metric", arguments->metric, "What to measure")
      .required()
      .transform(one_of({"top1", "top5", "map50", "psnr", "miou"}));
  evaluate::MetricOptions& options = arguments->options;
  command.add_option("--output", options.output, "Number of the output to judge").check(not_negative());
  command.add_option("--label-offset", options.label_offset,
                     "The model's class is the label plus this: 1 where class 0 is background");
  command.add_option("--score-threshold", options.score_threshold, "map50: boxes of lower scores do not count")
      .capture_default_str();
  command.add_option("--nms-iou", options.nms_iou, "map50: of boxes that overlap more, the better one counts")
      .check(between(0.0, 1.0))
      .capture_default_str();
  command.add_option("--detector", options.detector, "map50: form of the outputs (docs/evaluate.md)")
      .transform(one_of({"auto", "ssd", "yolo5", "yolo8"}))
      .capture_default_str();
  add_anchors_option(command, options.anchors);
  command
      .add_option("--boxes", options.boxes,
                  "map50: form of the truth: cxcywh, xywh, xyxy or yxyx, with class+ before or +class after it, then "
                  ",pixels or ,fractions; auto: told from the numbers")
      .option_text("FORM")
      .capture_default_str();
  command.add_option("--ignore-label", options.ignored_label, "miou: pixels of this label do not count")
      .capture_default_str();
  add_device_options(command, arguments->device);
  add_devices_option(command, arguments->device);
  command.add_option("--threads", arguments->threads, "Threads; results do not depend on it. Default: all cores")
      .check(between(1, 256));
  command
      .add_option("--tflite", arguments->tflite_release,
                  "Release whose reference kernels to equal where releases differ (docs/numerics.md)")
      .transform(one_of({"2.9", "current"}))
      .capture_default_str();
  command.add_flag("--fused-floats", arguments->fused_floats,
                   "Add float products with one rounding: faster on most CPUs, not TFLite's bits (docs/numerics.md)");
  command.add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  add_limit_flags(command, arguments->limits);
  {
    const OptionGroup group(command, "In parts, in several processes (docs/cluster.md)");
    Option partial = command
                         .add_option("--partial", arguments->partial,
                                     "Write what is kept of the samples to this file, for --merge (JSON)")
                         .writes();
    command
        .add_option("--merge", arguments->merge,
                    "Compute the figure of these files, or of those that a .txt file lists; they must hold every "
                    "sample once")
        .option_text("FILE...")
        .excludes(partial);
    command
        .add_option(
            "--sample-names", arguments->sample_names,
            "Text file with a name a line: what the samples of these arrays are called in --partial, where they "
            "are a piece of larger arrays (default: their places)")
        .option_text("FILE");
    command.add_flag("--describe-samples", arguments->describes,
                     "Only print the samples' names and what was told from all of them, as JSON");
    command
        .add_option("--keep", arguments->keep,
                    "Folder for what is kept of each part with --cluster; a run that was killed goes on from there")
        .writes();
    add_cluster_option(command, arguments->cluster);
  }
  command.footer(
      "Examples:\n  reef eval models/reef_creatures_int8.tflite --data models/images --labels "
      "models/reef_creatures_labels.txt "
      "--metric top1\n"
      "  reef eval cifar.tflite --data cifar10_eval.npz --preprocess mean=127.5,std=127.5 --metric top1 --limit 500\n"
      "  reef eval compiled_edgetpu.tflite --data pictures --metric top1 --label-offset 1 --device virtual\n"
      "  reef eval compiled_edgetpu.tflite --data shards/*.tar --metric top1 --device virtual --devices 4\n"
      "  reef eval model.tflite --data pictures --metric top1 --cluster local:4");
  command.callback([arguments, &action] { action = [arguments] { return eval(*arguments); }; });
}

}  // namespace reef::app
