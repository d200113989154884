// SPDX-License-Identifier: Apache-2.0
#include "compiler/quantize_driver.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/attached_files.h"
#include "compiler/float_subject.h"
#include "compiler/graph_files.h"
#include "compiler/output_check.h"
#include "data/preprocess.h"
#include "data/subset.h"
#include "evaluate/compare.h"
#include "evaluate/evaluation.h"
#include "evaluate/preprocess_probe.h"
#include "evaluate/task.h"
#include "execute/cpu/evaluate.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/describe.h"
#include "ir/verify.h"
#include "quantize/calibration_checks.h"

namespace reef::compiler {
namespace {

// The bytes to be written are a sound model that runs.
Status try_out(const Bytes& file, const data::SampleSource* source) {
  REEF_ASSIGN_OR_RETURN(ir::Model model, tflite::read_model(file));
  REEF_RETURN_IF_ERROR(ir::verify(model));
  const auto shared = std::make_shared<const ir::Model>(std::move(model));
  REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::prepared(shared));
  for (int i = 0; source != nullptr && i < interpreter->input_count(); ++i) {
    REEF_RETURN_IF_ERROR(source->read(0, data::input_spec(*shared, i), interpreter->input_bytes(i)));
  }
  return interpreter->invoke();
}

constexpr std::int64_t kReportSamples = 32, kFaultSamples = 8;
constexpr std::size_t kWorstLayers = 3;

// The debugger's findings on so many samples, and its sentences on the worst layers.
Result<evaluate::Comparison> compare_layers(const QuantizeRequest& request,
                                            const std::shared_ptr<const data::SampleSource>& source,
                                            std::int64_t samples, QuantizeOutcome& outcome) {
  evaluate::CompareOptions options;
  options.threads = request.how.threads;
  options.budget = request.how.budget;
  for (const quantize::TensorPair& pair : outcome.result.names) {
    options.names.push_back({pair.float_name, pair.quantized_name});
  }
  if (request.how.progress) {
    options.progress = [&](std::int64_t done, std::int64_t all) {
      request.how.progress("measuring layers", done, all);
    };
  }
  const std::int64_t count = std::min(source->size(), samples);
  REEF_ASSIGN_OR_RETURN(evaluate::Comparison comparison,
                        evaluate::compare(std::make_shared<const ir::Model>(outcome.result.float_model),
                                          std::make_shared<const ir::Model>(outcome.result.model),
                                          data::Subset(source, data::in_order(count)), options));
  for (std::size_t i = 0; i < std::min(kWorstLayers, comparison.ranking.size()); ++i) {
    const evaluate::LayerReport& layer = comparison.layers[comparison.ranking[i]];
    outcome.worst_layers.push_back(fmt::format("{} '{}': {:.0f} % of the layers' effect on the outputs{}", layer.type,
                                               ir::describe_name(layer.name), 100 * layer.share,
                                               layer.advice.empty() ? "" : "; " + layer.advice[0]));
  }
  return comparison;
}

// What the file calls the tensors of the result, which were made from those of the model as loaded.
std::vector<TensorOrigin> origins_of(const std::vector<TensorOrigin>& loaded,
                                     const std::vector<quantize::TensorPair>& pairs) {
  std::map<std::string, std::string> names;
  for (const TensorOrigin& origin : loaded) names[origin.tensor] = origin.name;
  std::vector<TensorOrigin> result;
  for (const quantize::TensorPair& pair : pairs) {
    if (const auto found = names.find(pair.float_name); found != names.end()) {
      result.push_back({pair.quantized_name, found->second});
    }
  }
  return result;
}

evaluate::RunnerOptions runner_options(const QuantizeRequest& request) {
  evaluate::RunnerOptions run;
  run.threads = request.how.threads;
  run.budget = request.how.budget;
  return run;
}

// Compares the preprocessing with the usual ones on some samples. If nobody named it, one that is clearly better is
// taken, and the result is true. If somebody did, a better one is only reported. What cannot be compared is no failure.
bool takes_better_preprocess(const ir::Model& model, QuantizeRequest& request, QuantizeOutcome& outcome) {
  constexpr std::int64_t kSamplesForGuess = 48, kSamplesForDoubt = 16;
  if (outcome.preprocess.empty()) return false;
  const auto probe = evaluate::probe_preprocess(std::make_shared<const ir::Model>(model), request.data,
                                                outcome.preprocess_is_guess ? kSamplesForGuess : kSamplesForDoubt,
                                                runner_options(request));
  if (!probe.ok() || probe->better.empty()) return false;
  outcome.better_preprocess = probe->better;
  outcome.better_preprocess_why =
      fmt::format("{} {:.2f} instead of {:.2f}", probe->measure, probe->presets.front().figure, probe->chosen);
  if (outcome.preprocess_is_guess) request.data.preprocess = probe->better;
  return outcome.preprocess_is_guess;
}

// A detector is judged by its boxes, on samples that calibration may have seen: few pictures have things in them.
void compare_detections(const QuantizeRequest& request, const ir::Model& float_model,
                        const std::shared_ptr<const data::SampleSource>& source, QuantizeOutcome& outcome) {
  constexpr std::int64_t kBoxSamples = 16;
  if (source == nullptr || request.how.held_back == 0) return;  // nothing is to be measured
  if (evaluate::task_of(float_model).kind != evaluate::TaskKind::kDetector) return;
  auto agreement = evaluate::compare_boxes(std::make_shared<const ir::Model>(float_model),
                                           std::make_shared<const ir::Model>(outcome.result.model), source, kBoxSamples,
                                           runner_options(request));
  if (agreement.ok()) outcome.boxes = std::move(agreement).value();
}

// What the samples' truth measures: boxes beside pictures mAP, classes top-1. Empty: nothing that fits the model.
std::string metric_of_truth(const ir::Model& model, const data::Dataset& samples) {
  const auto truth = samples.truth(0);
  if (!truth.ok()) return "";
  const std::string usual = usual_metric(model);
  const bool fits = usual == "map50" ? truth->shape.size() == 2 : usual == "top1" && truth->shape.empty();
  return fits ? usual : "";
}

// A float model that is not better than chance has classes in another order than the samples: that measures nothing.
bool knows_the_classes(double of_float, const ir::Model& model) {
  constexpr double kAboveChance = 1.5;
  const ir::Subgraph& graph = model.subgraphs[0];
  const auto& shape = graph.tensors[at(graph.outputs[0])].shape;
  return of_float * static_cast<double>(shape.elements()) > kAboveChance;
}

// Where the samples say what is right, both models are measured with them. What cannot be measured is no failure.
void measure_by_truth(const QuantizeRequest& request, const ir::Model& float_model, const data::Dataset& samples,
                      QuantizeOutcome& outcome) {
  constexpr std::int64_t kMostPictures = 32, kMostOfClasses = 100;
  if (!samples.has_truth() || request.how.held_back == 0) return;
  const std::string metric = metric_of_truth(float_model, samples);
  if (metric.empty() || (metric == "map50" && !outcome.boxes)) return;
  const std::int64_t most = metric == "map50" ? kMostPictures : kMostOfClasses;
  data::DatasetOptions few = request.data;
  few.limit = few.limit > 0 ? std::min(few.limit, most) : most;
  few.preprocess = data::to_string(samples.preprocess().preprocess);
  const auto dataset = data::Dataset::open(few, float_model);
  if (!dataset.ok()) return;
  const std::shared_ptr<const data::Dataset> pictures = *dataset;
  const auto figure_of = [&](const ir::Model& model) {
    return measure_accuracy(metric, std::make_shared<const ir::Model>(model), float_model, pictures,
                            data::in_order(pictures->size()), request.how.threads, request.how.budget);
  };
  const auto of_float = figure_of(float_model);
  if (!of_float.ok() || (metric == "top1" && !knows_the_classes(of_float->value, float_model))) return;
  const auto of_quantized = figure_of(outcome.result.model);
  if (of_quantized.ok()) outcome.accuracy = {metric, of_float->value, of_quantized->value, pictures->size()};
}

std::int64_t file_size(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

}  // namespace

namespace {

Result<std::shared_ptr<const data::Dataset>> open_samples(const QuantizeRequest& request, const ir::Model& model,
                                                          QuantizeOutcome& outcome) {
  std::shared_ptr<const data::Dataset> samples;
  if (request.data.path.empty()) return samples;
  REEF_ASSIGN_OR_RETURN(samples, data::Dataset::open(request.data, model));
  outcome.data = samples->describe();
  if (samples->holds_pictures()) {
    outcome.preprocess = data::to_string(samples->preprocess().preprocess);
    outcome.preprocess_from = samples->preprocess().origin;
    outcome.preprocess_is_guess = samples->preprocess().is_guess;
  }
  return samples;
}

// Where nobody said how pixels become numbers and the model shows it, that is taken. Returns how it is known.
std::string take_seen_preprocess(const ir::Model& model, QuantizeRequest& request) {
  if (!request.data.preprocess.empty() || request.data.path.empty()) return "";
  const auto chosen = data::choose_preprocess("", model, 0);
  if (!chosen.ok() || chosen->is_guess) return "";
  request.data.preprocess = data::to_string(chosen->preprocess);
  return chosen->origin;
}

// The page that was asked for, or, where an output is lost, which layers are at fault.
Status explain_error(const QuantizeRequest& request, const std::shared_ptr<const data::Dataset>& samples,
                     QuantizeOutcome& outcome) {
  if (!request.report.empty()) {
    REEF_REQUIRE(samples != nullptr, "--report needs samples: give --data");
    REEF_ASSIGN_OR_RETURN(const evaluate::Comparison comparison,
                          compare_layers(request, samples, kReportSamples, outcome));
    outcome.report_page = evaluate::comparison_html(comparison, request.model, request.output);
  } else if (!outcome.result.lost.empty()) {
    // Which layers are at fault is told without being asked for. If that cannot be found out, the verdict stands alone.
    (void)compare_layers(request, samples, kFaultSamples, outcome);
  }
  return ok_status();
}

}  // namespace

Result<QuantizeOutcome> quantize_loaded(const QuantizeRequest& given, FrontEndResult loaded) {
  const auto begin = std::chrono::steady_clock::now();
  QuantizeRequest request = given;
  QuantizeOutcome outcome;
  outcome.notes = std::move(loaded.notes);
  const std::string seen = take_seen_preprocess(loaded.model, request);
  REEF_ASSIGN_OR_RETURN(const passes::SimplifyReport simplified, simplify_once(loaded));
  if (simplified.is_changed) {
    outcome.notes.push_back(
        fmt::format("simplified: {} operators became {}", simplified.operators_before, simplified.operators_after));
  }
  outcome.log = std::move(loaded.log);
  REEF_ASSIGN_OR_RETURN(std::shared_ptr<const data::Dataset> samples, open_samples(request, loaded.model, outcome));
  if (!seen.empty() && !outcome.preprocess.empty()) outcome.preprocess_from = seen;
  if (takes_better_preprocess(loaded.model, request, outcome)) {
    REEF_ASSIGN_OR_RETURN(samples, open_samples(request, loaded.model, outcome));
    outcome.preprocess_from =
        fmt::format("chosen because the float model does better with it: {}, measured", outcome.better_preprocess_why);
    outcome.preprocess_is_guess = true;
  }
  REEF_ASSIGN_OR_RETURN(outcome.result,
                        quantize::quantize(loaded.model, samples.get(), request.how, request.calibrator));
  if (!seen.empty()) {
    std::erase_if(outcome.result.warnings, [](const std::string& warning) {
      return warning.find(quantize::kLooksLikePixels) != std::string::npos;
    });
  }
  compare_detections(request, loaded.model, samples, outcome);
  if (samples != nullptr) measure_by_truth(request, loaded.model, *samples, outcome);
  outcome.origins = origins_of(loaded.origins, outcome.result.names);
  ir::Model& model = outcome.result.model;
  if (samples != nullptr && samples->holds_pictures()) {
    data::store_preprocess(samples->preprocess().preprocess, model);
  }
  REEF_ASSIGN_OR_RETURN(outcome.file, tflite::write_bytes(model));
  REEF_RETURN_IF_ERROR(try_out(outcome.file, samples.get())
                           .in("the quantized model does not run, nothing was written (a defect in Reef)"));
  REEF_ASSIGN_OR_RETURN(outcome.file, with_attached_files(outcome.file.span(), request.model, request.attached));
  outcome.model_bytes = file_size(request.model);
  outcome.output_bytes = static_cast<std::int64_t>(outcome.file.size());
  REEF_RETURN_IF_ERROR(explain_error(request, samples, outcome));
  if (samples != nullptr) outcome.fetched = samples->counters();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

Result<QuantizeOutcome> quantize_file(const QuantizeRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> written = {request.output, request.report};
  for (const std::string& name : request.front_end.log.graphs) {
    if (!request.output.empty()) written.push_back(graph_path(request.output, name));
  }
  REEF_RETURN_IF_ERROR(check_files({written, {request.model}, {request.data}, {}}));
  REEF_RETURN_IF_ERROR(check_ending(request.output, Content::kModel));
  REEF_RETURN_IF_ERROR(check_ending(request.report, Content::kPage));
  REEF_ASSIGN_OR_RETURN(FrontEndResult loaded, load_any_model(request.model, request.front_end));
  REEF_ASSIGN_OR_RETURN(QuantizeOutcome outcome, quantize_loaded(request, std::move(loaded)));
  std::vector<FileContent> files;
  if (!request.output.empty()) files.push_back({request.output, outcome.file.span()});
  if (!request.report.empty()) files.push_back({request.report, bytes_of(outcome.report_page)});
  REEF_ASSIGN_OR_RETURN(const std::vector<FileBeside> graphs, graph_files(outcome.log, request.output));
  for (const FileBeside& file : graphs) files.push_back({file.path, bytes_of(file.text)});
  REEF_RETURN_IF_ERROR(write_files(files));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

}  // namespace reef::compiler
