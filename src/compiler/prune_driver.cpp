// SPDX-License-Identifier: Apache-2.0
#include "compiler/prune_driver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/chip_time.h"
#include "compiler/float_subject.h"
#include "compiler/output_check.h"
#include "compiler/prune_files.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/constants.h"
#include "ir/verify.h"
#include "passes/simplify.h"
#include "quantize/measure.h"

namespace reef::compiler {
namespace {

constexpr std::int64_t kFewSamples = 64;

Status check_goal(const PruneGoal& goal) {
  const int given = (goal.parameters ? 1 : 0) + (goal.latency_ms ? 1 : 0) + (goal.drop ? 1 : 0) + (goal.zeros ? 1 : 0) +
                    (goal.fit ? 1 : 0);
  REEF_REQUIRE(given == 1, "{}: give one of --params, --fit, --latency, --drop and --zeros",
               given == 0 ? "there is no goal" : "there is more than one goal");
  REEF_REQUIRE(!goal.parameters || (*goal.parameters > 0 && *goal.parameters < 1),
               "--params is the share of parameters that stays, between 0 and 1");
  REEF_REQUIRE(!goal.zeros || (*goal.zeros > 0 && *goal.zeros < 1), "--zeros is a share between 0 and 1");
  REEF_REQUIRE(!goal.latency_ms || *goal.latency_ms > 0, "--latency must be more than 0");
  REEF_REQUIRE(!goal.drop || *goal.drop >= 0, "--drop must not be negative");
  return ok_status();
}

class PruneDriver {
 public:
  explicit PruneDriver(const PruneRequest& request) : request_(request) {}

  Result<PruneOutcome> run() {
    const auto begin = std::chrono::steady_clock::now();
    REEF_RETURN_IF_ERROR(check_goal(request_.goal));
    REEF_RETURN_IF_ERROR(check_files({{request_.output, request_.masks, request_.map, request_.plot, request_.int8},
                                      {request_.model},
                                      {request_.data},
                                      {}}));
    for (const std::string& model : {request_.output, request_.int8}) {
      REEF_RETURN_IF_ERROR(check_ending(model, Content::kModel));
    }
    REEF_RETURN_IF_ERROR(check_ending(request_.plot, Content::kPage));
    REEF_RETURN_IF_ERROR(check_ending(request_.map, Content::kJson));
    REEF_RETURN_IF_ERROR(load());
    REEF_RETURN_IF_ERROR(open_samples());
    REEF_RETURN_IF_ERROR(remember_original());
    REEF_ASSIGN_OR_RETURN(study_, prune::Study::make(*original_, fit_source_, fit_samples_, request_.study, cost()));
    outcome_.fitted_samples = study_->fitted_samples();
    outcome_.notes.insert(outcome_.notes.end(), study_->notes().begin(), study_->notes().end());
    REEF_ASSIGN_OR_RETURN(const std::size_t point, find_point());
    REEF_RETURN_IF_ERROR(make_table(point));
    if (outcome_.meets_goal) REEF_RETURN_IF_ERROR(write());
    outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(outcome_);
  }

 private:
  Status load() {
    REEF_ASSIGN_OR_RETURN(loaded_, load_float_model(request_.model, request_.front_end));
    outcome_.notes = loaded_.notes;
    original_ = std::make_shared<const ir::Model>(loaded_.model);
    return ok_status();
  }

  Status open_samples() {
    REEF_ASSIGN_OR_RETURN(SampleParts parts,
                          part_samples(request_.data, *original_, request_.fit_samples, request_.judge_samples));
    fit_source_ = parts.fit;
    judge_ = parts.judge;
    fit_samples_ = std::move(parts.fit_samples);
    judge_samples_ = std::move(parts.judge_samples);
    outcome_.judged_apart = parts.judged_apart;
    outcome_.judged_samples = std::ssize(judge_samples_);
    if (std::ssize(fit_samples_) < kFewSamples) {
      outcome_.notes.push_back(
          fmt::format("weights are fitted to {} samples only; 100 and more typical ones give better "
                      "models",
                      fit_samples_.size()));
    }
    if (judge_->has_truth()) {
      outcome_.metric = request_.metric.empty() ? usual_metric(*original_) : request_.metric;
    }
    REEF_REQUIRE(request_.metric.empty() || judge_->has_truth(),
                 "--metric {}: '{}' does not say what is right (--truth, or sub-folders for classes)", request_.metric,
                 request_.data.path);
    return ok_status();
  }

  Result<std::optional<double>> accuracy(const std::shared_ptr<const ir::Model>& model) {
    if (outcome_.metric.empty()) return std::optional<double>();
    const auto result = measure_accuracy(outcome_.metric, model, *original_, judge_, judge_samples_,
                                         request_.study.threads, request_.study.budget);
    if (!result.ok() && request_.metric.empty()) {  // nobody asked for it
      outcome_.notes.push_back(fmt::format("accuracy is not measured: {}", result.status().message()));
      outcome_.metric.clear();
      return std::optional<double>();
    }
    if (!result.ok()) return result.status();
    outcome_.metric_unit = result->unit;
    return std::optional(result->value);
  }

  Result<quantize::Outputs> outputs_of(const std::shared_ptr<const ir::Model>& model) {
    constexpr std::size_t kMost = 256;
    quantize::RunOptions run;
    run.threads = request_.study.threads;
    run.budget = request_.study.budget;
    const std::span<const std::int64_t> samples(judge_samples_);
    return quantize::run_outputs(model, *judge_, samples.first(std::min(kMost, samples.size())), run);
  }

  Status remember_original() {
    REEF_ASSIGN_OR_RETURN(outputs_, outputs_of(original_));
    views_ = quantize::views_of(*original_, outputs_);
    REEF_ASSIGN_OR_RETURN(const PrunePoint point, measured("original", original_));
    outcome_.points.push_back(point);
    return ok_status();
  }

  Result<PrunePoint> measured(std::string what, const std::shared_ptr<const ir::Model>& model) {
    PrunePoint point;
    point.what = std::move(what);
    point.parameters = prune::parameter_count(*model);
    REEF_ASSIGN_OR_RETURN(point.accuracy, accuracy(model));
    REEF_ASSIGN_OR_RETURN(const quantize::Outputs outputs, outputs_of(model));
    const quantize::OutputError error = quantize::compare_outputs(outputs_, outputs, views_);
    point.agreement_db = error.mean_sqnr_db;
    if (error.top1_agreement >= 0) point.top1_agreement = error.top1_agreement;
    return point;
  }

  // Times of a point, simulated where that was asked for. Calibration is plain: only the code's time matters here.
  void add_times(const ir::Model& model, PrunePoint& point) {
    const auto estimated = estimate_time(model, request_.link, request_.study.budget);
    if (!estimated.ok()) {
      point.why_no_time = estimated.status().message();
      return;
    }
    point.estimated_ms = estimated->ms;
    point.cached_bytes = estimated->cached_bytes;
    point.streamed_bytes = estimated->streamed_bytes;
    if (!request_.simulates) return;
    const auto simulated = simulated_time(model);
    if (!simulated.ok()) {
      point.why_no_time = simulated.status().message();
      return;
    }
    point.simulated_ms = simulated->ms;
    point.cached_bytes = simulated->cached_bytes;
    point.streamed_bytes = simulated->streamed_bytes;
  }

  Result<ChipTime> simulated_time(const ir::Model& model) const {
    ir::Model simple = model;
    REEF_RETURN_IF_ERROR(passes::simplify(simple).status());
    quantize::QuantizeOptions how;
    how.held_back = 0;
    how.automatic_ranges = false;
    how.max_samples = 8;
    how.threads = request_.study.threads;
    how.budget = request_.study.budget;
    REEF_ASSIGN_OR_RETURN(const quantize::QuantizeResult result, quantize::quantize(simple, fit_source_.get(), how));
    return simulate_time(result.model, request_.link, request_.study.budget);
  }

  prune::Cost cost() const {
    if (request_.goal.latency_ms) {
      return [this](const ir::Model& model) -> Result<double> {
        REEF_ASSIGN_OR_RETURN(const ChipTime time, estimate_time(model, request_.link, request_.study.budget));
        return time.ms;
      };
    }
    return [](const ir::Model& model) -> Result<double> { return static_cast<double>(prune::parameter_count(model)); };
  }

  // The first point of the ladder for which `is_met`, which holds for all behind it.
  template <typename IsMet>
  Result<std::size_t> first_point(const IsMet& is_met) {
    std::size_t low = 0, high = study_->steps();
    REEF_ASSIGN_OR_RETURN(const bool can_be_met, is_met(high));
    if (!can_be_met) {
      outcome_.meets_goal = false;
      return high;
    }
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      REEF_ASSIGN_OR_RETURN(const bool met, is_met(middle));
      if (met) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  Result<std::size_t> find_point() {
    const PruneGoal& goal = request_.goal;
    if (goal.zeros) return std::size_t{0};
    if (goal.drop) return last_within_drop();
    const double all = static_cast<double>(outcome_.points[0].parameters);
    return first_point([&](std::size_t point) -> Result<bool> {
      REEF_ASSIGN_OR_RETURN(const ir::Model model, study_->cut(point));
      const auto parameters = static_cast<double>(prune::parameter_count(model));
      if (goal.parameters) {
        outcome_.nearest =
            fmt::format("{:.0f} % of the parameters stay when everything that may go is gone", 100 * parameters / all);
        return parameters <= *goal.parameters * all;
      }
      REEF_ASSIGN_OR_RETURN(const ChipTime time, estimate_time(model, request_.link, request_.study.budget));
      if (goal.fit) {
        outcome_.nearest =
            fmt::format("{} bytes of parameters are still sent with every inference", time.streamed_bytes);
        return time.streamed_bytes == 0;
      }
      outcome_.nearest = fmt::format("{:.2f} ms (estimated) are left when everything that may go is gone", time.ms);
      return time.ms <= *goal.latency_ms;
    });
  }

  // How much worse a point is than the original: of the metric, else of agreement, else of the outputs' error.
  double drop_of(const PrunePoint& point) const {
    const PrunePoint& original = outcome_.points[0];
    if (point.accuracy && original.accuracy) {
      const double drop = *original.accuracy - *point.accuracy;
      return outcome_.metric_unit.empty() ? drop : drop / std::max(std::abs(*original.accuracy), 1e-12);
    }
    if (point.top1_agreement) return 1 - *point.top1_agreement;
    return std::pow(10, -point.agreement_db / 10);
  }

  Result<std::size_t> last_within_drop() {
    std::size_t low = 0, high = study_->steps();
    while (low < high) {
      const std::size_t middle = (low + high + 1) / 2;
      REEF_ASSIGN_OR_RETURN(prune::Study::Pruned pruned, study_->repaired(middle));
      REEF_ASSIGN_OR_RETURN(const PrunePoint point,
                            measured("", std::make_shared<const ir::Model>(std::move(pruned.model))));
      if (drop_of(point) <= *request_.goal.drop) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    if (low == 0) {
      outcome_.meets_goal = false;
      outcome_.nearest = "the first step that removes anything already loses more";
    }
    return low;
  }

  Status make_table(std::size_t point) {
    add_times(*original_, outcome_.points[0]);
    const int count = request_.goal.zeros ? 1 : std::max(request_.points, 1);
    for (int i = 1; i <= count; ++i) {
      const std::size_t at = point * static_cast<std::size_t>(i) / static_cast<std::size_t>(count);
      if (i < count && (at == 0 || at == point)) continue;
      REEF_ASSIGN_OR_RETURN(prune::Study::Pruned pruned, study_->repaired(at, request_.goal.zeros.value_or(0)));
      const auto model = std::make_shared<const ir::Model>(std::move(pruned.model));
      REEF_ASSIGN_OR_RETURN(PrunePoint row, measured(i == count ? "pruned" : "on the way", model));
      add_times(*model, row);
      outcome_.points.push_back(std::move(row));
      if (i < count) continue;
      outcome_.repair = pruned.report;
      outcome_.model = *model;
      outcome_.layers = pruned_layers(study_->prepared(), pruned.kept, loaded_, request_.model);
    }
    if (outcome_.meets_goal) outcome_.nearest.clear();
    check_figures_of_goal();
    return ok_status();
  }

  // The goal was looked for with estimates; the result's own figures may say otherwise.
  void check_figures_of_goal() {
    const PrunePoint& result = outcome_.points.back();
    if (request_.goal.latency_ms && result.simulated_ms && *result.simulated_ms > *request_.goal.latency_ms) {
      outcome_.notes.push_back(
          fmt::format("estimated {:.2f} ms, but simulated {:.2f} ms: ask for --latency {:.2f}ms to be "
                      "below the goal in simulation",
                      result.estimated_ms.value_or(0), *result.simulated_ms,
                      *request_.goal.latency_ms * *request_.goal.latency_ms / *result.simulated_ms));
    }
    if (request_.goal.fit && result.streamed_bytes > 0) {
      outcome_.notes.push_back(
          fmt::format("by estimate all parameters fit, but the compiled program sends {} bytes with "
                      "every inference",
                      result.streamed_bytes));
    }
  }

  Status write() {
    REEF_ASSIGN_OR_RETURN(outcome_.file, tflite::write_bytes(outcome_.model));
    REEF_ASSIGN_OR_RETURN(const ir::Model again, tflite::read_model(outcome_.file));
    REEF_RETURN_IF_ERROR(ir::verify(again).in("the pruned model is not sound, nothing was written (a defect in Reef)"));
    std::vector<FileContent> files = {{request_.output, outcome_.file.span()}};
    std::vector<std::uint8_t> masks;
    if (!request_.masks.empty()) {
      REEF_ASSIGN_OR_RETURN(masks, masks_file(outcome_, request_.goal.zeros.has_value()));
      files.push_back({request_.masks, masks});
    }
    const std::string map = map_text(request_.model, request_.output, outcome_),
                      plot = plot_page(request_.model, outcome_);
    if (!request_.map.empty()) files.push_back({request_.map, bytes_of(map)});
    if (!request_.plot.empty()) files.push_back({request_.plot, bytes_of(plot)});
    if (!request_.int8.empty()) {
      QuantizeRequest quantize;
      quantize.model = request_.output;
      quantize.data = request_.data;
      quantize.data.use = data::Use::kCalibration;
      quantize.how.threads = request_.study.threads;
      quantize.how.budget = request_.study.budget;
      FrontEndResult loaded = loaded_;
      loaded.model = outcome_.model;
      REEF_RETURN_IF_ERROR(admit_model(loaded.model).status());
      REEF_ASSIGN_OR_RETURN(outcome_.quantized, quantize_loaded(quantize, std::move(loaded)));
      files.push_back({request_.int8, outcome_.quantized->file.span()});
    }
    return write_files(files);
  }

  const PruneRequest& request_;
  PruneOutcome outcome_;
  FrontEndResult loaded_;
  std::shared_ptr<const ir::Model> original_;
  std::shared_ptr<const data::SampleSource> fit_source_;
  std::shared_ptr<const data::Dataset> judge_;
  std::vector<std::int64_t> fit_samples_, judge_samples_;
  quantize::Outputs outputs_;
  std::vector<quantize::View> views_;
  std::unique_ptr<prune::Study> study_;
};

}  // namespace

Result<PruneOutcome> prune_file(const PruneRequest& request) { return PruneDriver(request).run(); }

}  // namespace reef::compiler
