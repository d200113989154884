// SPDX-License-Identifier: Apache-2.0
#include "tune/workbench.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/sha256.h"
#include "compiler/chip_time.h"
#include "compiler/compile_names.h"
#include "compiler/quantize_driver.h"
#include "evaluate/preprocess_probe.h"
#include "evaluate/task.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "prune/study.h"
#include "quantize/measure.h"

namespace reef::tune {
namespace {

constexpr std::int64_t kLeastJudged = 8;
constexpr std::int64_t kAgreementSamples = 256;  // at most; all outputs of them are kept in memory
constexpr std::int64_t kProbeSamples = 48;
constexpr double kNoTimeout = 1e9;  // seconds; the budget limits the whole search
constexpr double kSizes[] = {0.875, 0.75, 0.625, 0.5};

std::vector<std::uint8_t> content_of(const Bytes& bytes) { return {bytes.span().begin(), bytes.span().end()}; }

}  // namespace

std::string Workbench::stem() const { return std::filesystem::path(subject_.model).stem().string(); }

std::span<const std::int64_t> Workbench::samples_to_choose() const {
  return std::span(parts_.judge_samples).first(parts_.judge_samples.size() / 2);
}
std::span<const std::int64_t> Workbench::samples_to_report() const {
  return std::span(parts_.judge_samples).subspan(parts_.judge_samples.size() / 2);
}

Status Workbench::open() {
  if (model_ != nullptr) return ok_status();
  REEF_ASSIGN_OR_RETURN(original_, compiler::load_float_model(subject_.model, subject_.front_end));
  const auto model = std::make_shared<const ir::Model>(original_.model);
  data_ = subject_.data;
  REEF_ASSIGN_OR_RETURN(parts_, compiler::part_samples(data_, *model, subject_.fit_samples, subject_.judge_samples));
  if (parts_.judge->holds_pictures() && parts_.judge->preprocess().is_guess) {
    evaluate::RunnerOptions run;
    run.threads = subject_.threads;
    run.budget = subject_.budget;
    const auto probe = evaluate::probe_preprocess(model, data_, kProbeSamples, run);
    if (probe.ok() && !probe->better.empty()) data_.preprocess = probe->better;
  }
  if (parts_.judge->holds_pictures()) {  // settled once: every point gets its pictures in the same way
    if (data_.preprocess.empty()) data_.preprocess = data::to_string(parts_.judge->preprocess().preprocess);
    REEF_ASSIGN_OR_RETURN(parts_, compiler::part_samples(data_, *model, subject_.fit_samples, subject_.judge_samples));
  }
  REEF_REQUIRE(
      std::ssize(parts_.judge_samples) >= kLeastJudged && parts_.judged_apart,
      "'{}' has {} samples to judge with beside those that are fitted to; reef tune needs {} or more, because it "
      "chooses by one half and reports on the other",
      data_.path, parts_.judged_apart ? parts_.judge_samples.size() : 0, kLeastJudged);
  if (parts_.judge->has_truth()) metric_ = subject_.metric.empty() ? compiler::usual_metric(*model) : subject_.metric;
  REEF_REQUIRE(subject_.metric.empty() || parts_.judge->has_truth(),
               "--metric {}: '{}' does not say what is right (--truth, or sub-folders for classes)", subject_.metric,
               data_.path);
  model_ = model;
  return ok_status();
}

Status Workbench::run(const Task& task) {
  auto made = make(task);
  if (!made.ok()) {
    const StatusCode code = made.status().code();
    const bool ends_all = task.kind == TaskKind::kSurvey || code == StatusCode::kResourceExhausted ||
                          code == StatusCode::kInternal || code == StatusCode::kIoError;
    if (ends_all) return made.status();
    return store_.save(to_text(task), {{"error", made.status().message()}}, {});
  }
  return store_.save(to_text(task), std::move(made->result), std::move(made->files));
}

Result<Workbench::Made> Workbench::make(const Task& task) {
  REEF_RETURN_IF_ERROR(open());
  switch (task.kind) {
    case TaskKind::kSurvey:
      return survey();
    case TaskKind::kFloat:
      return try_float(task.choices);
    case TaskKind::kStudy:
      return study(task.choices);
    case TaskKind::kBody:
      return body(task.choices);
    case TaskKind::kQuantize:
      return quantize(task.choices);
    case TaskKind::kCompile:
      return compile(task);
    case TaskKind::kReport:
      return report(task.choices);
  }
  return internal_error("an unknown task");
}

// Smaller pictures, in steps that pooling and strides usually divide.
std::vector<std::pair<int, int>> Workbench::sizes_to_try() const {
  std::vector<std::pair<int, int>> sizes;
  const evaluate::PictureSize given = evaluate::input_picture(*model_);
  const bool makes_pictures = metric_ == "psnr" || evaluate::task_of(*model_).kind == evaluate::TaskKind::kPicture;
  if (given.width < 16 || given.height < 16 || makes_pictures || !parts_.judge->holds_pictures()) return sizes;
  const double smaller = std::min(given.width, given.height);
  const int step = smaller >= 256 ? 32 : smaller >= 128 ? 16 : smaller >= 64 ? 8 : 4;
  for (const double factor : kSizes) {
    const auto rounded = [&](double size) { return static_cast<int>(std::lround(size * factor / step)) * step; };
    const std::pair<int, int> size(rounded(given.height), rounded(given.width));
    if (size.first >= step && size.first < given.height && (sizes.empty() || sizes.back() != size))
      sizes.push_back(size);
  }
  return sizes;
}

Result<Workbench::Made> Workbench::survey() {
  Json sizes = Json::array();
  for (const auto& [height, width] : sizes_to_try()) sizes.push_back({height, width});
  REEF_ASSIGN_OR_RETURN(const Measured figure, accuracy(model_, samples_to_choose()));
  Json result = {{"metric", metric_},
                 {"unit", unit_},
                 {"sizes", sizes},
                 {"fitted_samples", parts_.fit_samples.size()},
                 {"choosing_samples", samples_to_choose().size()},
                 {"reporting_samples", samples_to_report().size()},
                 {"data", parts_.judge->describe()},
                 {"preprocess", parts_.judge->holds_pictures() ? data_.preprocess : ""},
                 {"float_accuracy", figure.value},
                 {"float_standard_error", figure.standard_error}};
  return Made{std::move(result), {}};
}

// Outputs mean the same as the original's: there are as many, and classes are as many.
Status Workbench::check_outputs_alike(const ir::Model& model) const {
  const ir::Subgraph &a = model_->subgraphs[0], &b = model.subgraphs[0];
  REEF_REQUIRE(a.outputs.size() == b.outputs.size(), "with this size the model has another number of outputs");
  const bool are_places = metric_ == "map50" || metric_ == "miou";
  for (std::size_t i = 0; i < a.outputs.size() && !are_places; ++i) {
    const ir::Shape &before = a.tensors[at(a.outputs[i])].shape, &after = b.tensors[at(b.outputs[i])].shape;
    REEF_REQUIRE(before == after, "with this size output {} is {} instead of {}", i, after.to_string(),
                 before.to_string());
  }
  return ok_status();
}

Result<compiler::FrontEndResult> Workbench::load(const Choices& choices) {
  if (choices.height == 0) return original_;
  REEF_REQUIRE(model_->subgraphs[0].inputs.size() == 1, "only models with one input are tried with other sizes");
  compiler::FrontEndOptions options = subject_.front_end;
  const data::InputSpec input = data::input_spec(*model_, 0);
  REEF_REQUIRE(input.shape.rank() == 4, "only pictures have another size");
  const std::int64_t channels = input.shape[3];
  // ONNX files mostly have channels first; what is loaded has them last, unless it was asked to keep them.
  Status why;
  for (const bool is_first : {original_.format == compiler::ModelFormat::kOnnx, false}) {
    options.input_shapes[""] = is_first ? std::vector<std::int64_t>{1, channels, choices.height, choices.width}
                                        : std::vector<std::int64_t>{1, choices.height, choices.width, channels};
    auto loaded = compiler::load_float_model(subject_.model, options);
    if (!loaded.ok()) {
      if (why.ok()) why = loaded.status();
      continue;
    }
    const evaluate::PictureSize size = evaluate::input_picture(loaded->model);
    if (static_cast<int>(size.height) != choices.height || static_cast<int>(size.width) != choices.width) continue;
    REEF_RETURN_IF_ERROR(check_outputs_alike(loaded->model));
    return loaded;
  }
  return why.ok() ? invalid_input("the model's input does not take this size") : why;
}

Result<compiler::FrontEndResult> Workbench::load_body(const Choices& choices) {
  if (choices.cut == 0) return load(choices);
  const auto study = store_.find(to_text(task(TaskKind::kStudy, choices)));
  REEF_REQUIRE(study, "the pruned models of this size are missing");
  for (const Json& row : study->value("bodies", Json::array())) {
    if (std::abs(row.value("cut", 0.0) - choices.cut) > 1e-9) continue;
    REEF_ASSIGN_OR_RETURN(const Bytes file, store_.read(row.value("file", "")));
    return compiler::read_tflite_model(file);
  }
  return invalid_input("there is no such pruned model");
}

Result<Workbench::Measured> Workbench::agreement(const Model& model, std::span<const std::int64_t> samples) {
  samples = samples.first(std::min<std::size_t>(samples.size(), kAgreementSamples));
  quantize::RunOptions run;
  run.threads = subject_.threads;
  run.budget = subject_.budget;
  quantize::Outputs& reference = outputs_[samples.front()];
  if (reference.empty()) {
    REEF_ASSIGN_OR_RETURN(reference, quantize::run_outputs(model_, *parts_.judge, samples, run));
  }
  REEF_ASSIGN_OR_RETURN(const quantize::Outputs outputs, quantize::run_outputs(model, *parts_.judge, samples, run));
  const quantize::OutputError error =
      quantize::compare_outputs(reference, outputs, quantize::views_of(*model_, reference));
  if (error.top1_agreement >= 0) {
    metric_ = "agreement";
    const double share = error.top1_agreement;
    return Measured{share, std::sqrt(share * (1 - share) / static_cast<double>(samples.size()))};
  }
  metric_ = "outputs";
  unit_ = "dB";
  return Measured{std::min(error.mean_sqnr_db, 99.0), 0};
}

Result<Workbench::Measured> Workbench::accuracy(const Model& model, std::span<const std::int64_t> samples) {
  if (!parts_.judge->has_truth() || metric_.empty()) return agreement(model, samples);
  REEF_ASSIGN_OR_RETURN(const evaluate::Figure figure, compiler::measure_accuracy(metric_, model, *model_, parts_.judge,
                                                                                  {samples.begin(), samples.end()},
                                                                                  subject_.threads, subject_.budget));
  unit_ = figure.unit;
  return Measured{figure.value, figure.standard_error};
}

Result<Workbench::Made> Workbench::try_float(const Choices& choices) {
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult loaded, load(choices));
  const auto model = std::make_shared<const ir::Model>(loaded.model);
  REEF_ASSIGN_OR_RETURN(const compiler::ChipTime time, compiler::estimate_time(*model, subject_.link, subject_.budget));
  REEF_ASSIGN_OR_RETURN(const Measured figure, accuracy(model, samples_to_choose()));
  return Made{{{"estimated_ms", time.ms},
               {"streamed_bytes", time.streamed_bytes},
               {"parameters", prune::parameter_count(*model)},
               {"accuracy", figure.value},
               {"standard_error", figure.standard_error}},
              {}};
}

// One model for each cut: the first point of the ladder that saves that share of what can be saved.
Result<Workbench::Made> Workbench::study(const Choices& choices) {
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult loaded, load(choices));
  const auto estimate = [this](const ir::Model& model) -> Result<double> {
    REEF_ASSIGN_OR_RETURN(const compiler::ChipTime time,
                          compiler::estimate_time(model, subject_.link, subject_.budget));
    return time.ms;
  };
  prune::StudyOptions options;
  options.threads = subject_.threads;
  options.budget = subject_.budget;
  options.progress = subject_.progress;
  REEF_ASSIGN_OR_RETURN(const auto study,
                        prune::Study::make(loaded.model, parts_.fit, parts_.fit_samples, options, estimate));
  Made made{{{"bodies", Json::array()}}, {}};
  if (study->steps() == 0) return made;
  const auto time_at = [&](std::size_t point) -> Result<double> {
    REEF_ASSIGN_OR_RETURN(const ir::Model model, study->cut(point));
    return estimate(model);
  };
  REEF_ASSIGN_OR_RETURN(const double most, time_at(0));
  REEF_ASSIGN_OR_RETURN(const double least, time_at(study->steps()));
  std::size_t before = 0;
  for (const double cut : subject_.cuts) {
    const double wanted = most - cut * (most - least);
    std::size_t low = before, high = study->steps();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      REEF_ASSIGN_OR_RETURN(const double ms, time_at(middle));
      if (ms <= wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low == before) continue;  // the same model as the cut before
    before = low;
    REEF_ASSIGN_OR_RETURN(const prune::Study::Pruned pruned, study->repaired(low));
    REEF_ASSIGN_OR_RETURN(const Bytes file, tflite::write_bytes(pruned.model));
    REEF_ASSIGN_OR_RETURN(const compiler::ChipTime time,
                          compiler::estimate_time(pruned.model, subject_.link, subject_.budget));
    Choices body = choices;
    body.cut = cut;
    const std::string name = fmt::format("{}_{}_float.tflite", stem(), tag_of(body));
    made.result["bodies"].push_back({{"cut", cut},
                                     {"file", name},
                                     {"estimated_ms", time.ms},
                                     {"streamed_bytes", time.streamed_bytes},
                                     {"parameters", prune::parameter_count(pruned.model)}});
    made.files.push_back({name, content_of(file)});
  }
  return made;
}

Result<Workbench::Made> Workbench::body(const Choices& choices) {
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult loaded, load_body(choices));
  REEF_ASSIGN_OR_RETURN(const Measured figure,
                        accuracy(std::make_shared<const ir::Model>(loaded.model), samples_to_choose()));
  return Made{{{"accuracy", figure.value}, {"standard_error", figure.standard_error}}, {}};
}

Result<Workbench::Made> Workbench::quantize(const Choices& choices) {
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult loaded, load_body(choices));
  compiler::QuantizeRequest request;
  request.model = subject_.model;
  request.data = data_;
  request.data.use = data::Use::kCalibration;
  if (parts_.is_one_set) {  // those that come first when it is mixed; the others judge
    request.data.shuffle_seed = compiler::kSplitSeed;
    request.data.limit = std::ssize(parts_.fit_samples);
  }
  request.how.threads = subject_.threads;
  request.how.budget = subject_.budget;
  request.how.progress = subject_.progress;
  const QuantizerChoice* quantizer = find_quantizer(choices.quantizer);
  REEF_REQUIRE(quantizer != nullptr, "there is no quantizer '{}'", choices.quantizer);
  quantizer->apply(request.how);
  REEF_ASSIGN_OR_RETURN(const compiler::QuantizeOutcome outcome, compiler::quantize_loaded(request, std::move(loaded)));
  ir::Model model = outcome.result.model;
  REEF_RETURN_IF_ERROR(compiler::admit_model(model).status());
  REEF_ASSIGN_OR_RETURN(const Measured figure,
                        accuracy(std::make_shared<const ir::Model>(std::move(model)), samples_to_choose()));
  const std::string name = fmt::format("{}_{}_int8.tflite", stem(), tag_of(choices));
  return Made{{{"file", name},
               {"hash", sha256_hex(outcome.file.span())},
               {"accuracy", figure.value},
               {"standard_error", figure.standard_error},
               {"float_operators", outcome.result.float_ops.size()},
               {"splittable", outcome.result.parts.size() > outcome.result.model.subgraphs[0].outputs.size()},
               {"lost", outcome.result.lost}},
              {{name, content_of(outcome.file)}}};
}

Result<Workbench::Model> Workbench::load_quantized(const Choices& choices) {
  const auto quantized = store_.find(to_text(task(TaskKind::kQuantize, choices)));
  REEF_REQUIRE(quantized && quantized->contains("file"), "the quantized model is missing");
  REEF_ASSIGN_OR_RETURN(const Bytes file, store_.read(quantized->value("file", "")));
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult loaded, compiler::read_tflite_model(file));
  return std::make_shared<const ir::Model>(std::move(loaded.model));
}

Result<Workbench::Made> Workbench::compile(const Task& task) {
  const Choices& choices = task.choices;
  const auto quantized = store_.find(to_text(tune::task(TaskKind::kQuantize, choices)));
  REEF_REQUIRE(quantized && quantized->contains("file"), "the quantized model is missing");
  const std::string name = fmt::format("{}_{}.tflite", stem(), tag_of(choices));
  compiler::CompileOptions options;
  options.models = {name};
  REEF_ASSIGN_OR_RETURN(options.in_memory[name].file, store_.read(quantized->value("file", "")));
  options.write = false;
  options.verify = compiler::Verify::kAlways;
  options.timeout_seconds = kNoTimeout;
  options.segments = choices.segments;
  options.level = static_cast<tiled::Level>(choices.level);
  options.plan.costs.link = subject_.link;
  options.plan.costs.cache_policy = partition::CachePolicy::kLeastTime;
  options.plan.host_is_assumed = subject_.host_is_assumed;
  options.plan.all_rewrites = choices.rewrites == "all";
  options.plan.rewrites.none = choices.rewrites == "none";
  options.plan.partition.explain = false;
  options.plan.budget = options.budget = subject_.budget;
  if (subject_.progress) {
    options.progress = [this](std::string_view stage, std::string_view, double done) {
      subject_.progress(stage, static_cast<std::int64_t>(100 * done), 100);
    };
  }
  const compiler::CompileResult compiled = compiler::compile(options);
  REEF_REQUIRE(compiled.ok(), "{}", compiled.refusals.front().explanation);
  REEF_ASSIGN_OR_RETURN(const compiler::ChipTime time, compiler::simulate_time(compiled, subject_.link));
  Made made{{{"simulated_ms", time.ms},
             {"cached_bytes", time.cached_bytes},
             {"streamed_bytes", time.streamed_bytes},
             {"files", Json::array()}},
            {}};
  std::int64_t operators = 0, on_chip = 0, rewrites = 0;
  for (const compiler::CompileRun& run : compiled.runs) {
    for (const compiler::CompiledFile& file : run.files) {
      REEF_REQUIRE(file.verified.done, "the compiled file could not be verified: {}", file.verified.why_not);
      const std::string output = std::filesystem::path(file.output).filename().string();
      made.result["files"].push_back(output);
      made.files.push_back({output, *file.content});
      operators += std::ssize(file.plan.partition.ops);
      on_chip += file.plan.partition.chip_op_count();
      rewrites += std::ssize(file.plan.rewrites);
    }
  }
  made.result["operators"] = operators;
  made.result["operators_on_edgetpu"] = on_chip;
  made.result["rewrites"] = rewrites;
  return made;
}

Result<Workbench::Made> Workbench::report(const Choices& choices) {
  Model model = model_;
  if (choices.quantizer != kFloatModel) {
    REEF_ASSIGN_OR_RETURN(model, load_quantized(choices));
  }
  REEF_ASSIGN_OR_RETURN(const Measured figure, accuracy(model, samples_to_report()));
  return Made{{{"accuracy", figure.value}, {"standard_error", figure.standard_error}}, {}};
}

}  // namespace reef::tune
