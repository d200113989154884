// SPDX-License-Identifier: Apache-2.0
#include "quantize/session.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "ir/op.h"
#include "quantize/graph_constants.h"
#include "quantize/headroom.h"
#include "quantize/scale_limits.h"
#include "quantize/work.h"

namespace reef::quantize {
namespace {

constexpr std::int64_t kFewSamples = 10;  // below, nothing is held back: measuring uses the samples of calibration
constexpr double kWorkPerChoice = 1e10;   // up to which more samples are measured with; a second or less

// For each output the tensor to compare instead, or -1.
std::vector<std::int32_t> compared_tensors(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses index(model);
  std::vector<std::int32_t> result;
  for (const std::int32_t t : graph.outputs) {
    const std::int32_t producer = index.producer(t);
    const ir::Operator* op = producer < 0 ? nullptr : &graph.operators[at(producer)];
    const bool is_scores = op != nullptr && (op->type == Op::SOFTMAX || op->type == Op::LOG_SOFTMAX) &&
                           op->inputs[0] >= 0 && index.producer(op->inputs[0]) >= 0;
    result.push_back(is_scores ? op->inputs[0] : -1);
  }
  return result;
}

bool is_too_large(const TensorStatistics& seen) {
  return seen.seen() && (static_cast<double>(seen.max) - seen.min) / 255 > kLargestScale;
}

// Why an operator has no integer form for the values that were observed, or nothing.
std::string problem_of_values(const ir::Operator& op, const OpRule& rule, const Calibration& calibration,
                              const QuantizeOptions& options) {
  if (rule.kind == RuleKind::kUnit && options.mode == Mode::kInt8 && !options.full_integer) {
    const TensorStatistics& result = calibration.tensors[at(op.outputs[0])];
    if (result.seen() && ends_above(rule.unit8, result.min)) {
      return fmt::format("its results go down to {:.3g}, and those of TFLite's 8-bit kernel end at {:g}", result.min,
                         lowest(rule.unit8));
    }
  }
  if (op.type == Op::DIV) {
    const TensorStatistics& divisor = calibration.tensors[at(op.inputs[1])];
    if (divisor.seen() && divisor.min < 0 && divisor.max > 0) {
      return "its divisor has both signs, so that small ones of either would round to 0";
    }
  }
  return {};
}

// Why an operator is better left in float, or nothing: values of ten and more orders of magnitude, such as powers of
// spectra.
std::string reason_for_float(const ir::Operator& op, const Calibration& calibration) {
  for (const std::vector<std::int32_t>* tensors : {&op.inputs, &op.outputs}) {
    for (const std::int32_t t : *tensors) {
      if (t < 0 || !is_too_large(calibration.tensors[at(t)])) continue;
      const TensorStatistics& seen = calibration.tensors[at(t)];
      return fmt::format("it works on values from {:.3g} to {:.3g}, for which no 8-bit scale is usable", seen.min,
                         seen.max);
    }
  }
  return {};
}

// Inputs of the graph that only float operators read, and outputs that float operators compute.
std::set<std::int32_t> float_borders(const ir::Model& model, const std::vector<Decision>& decisions) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses index(model);
  std::set<std::int32_t> result;
  const auto is_float = [&](std::int32_t op) { return decisions[at(op)].treatment == Treatment::kFloat; };
  for (const std::int32_t t : graph.inputs) {
    const auto readers = index.consumers(t);
    if (std::all_of(readers.begin(), readers.end(), is_float)) result.insert(t);
  }
  for (const std::int32_t t : graph.outputs) {
    if (index.producer(t) >= 0 && is_float(index.producer(t))) result.insert(t);
  }
  return result;
}

// What an activation limits is no larger on other samples: it needs no room beyond.
void keep_to_activations(const ir::Subgraph& graph, std::vector<Range>& ranges) {
  for (const ir::Operator& op : graph.operators) {
    if (op.outputs.empty() || op.attributes.get_enum("fused_activation_function", "NONE") != "RELU6") continue;
    Range& range = ranges[at(op.outputs[0])];
    range.max = std::min(range.max, 6.0f);
  }
}

// By how many standard errors something has to be better. On a few samples the standard error is itself uncertain, as
// Student's distribution says: 3 samples need 3 of them, 12 samples 1.5, 100 samples one.
double doubt_of_few(std::size_t samples) { return 1 + 6 / static_cast<double>(std::max<std::size_t>(samples, 1)); }

// What a detector reports comes from few pixels of few samples, and rests on rare large values, which narrower ranges
// cut off. On samples held back that costs nothing by chance: a pretrained detector lost a quarter of its boxes that
// way.
double doubt_of_scores(const std::vector<View>& views) {
  const auto is_score = [](const View& view) {
    return view.is_read && (view.read_as == ReadAs::kScores || view.read_as == ReadAs::kLogits);
  };
  return std::any_of(views.begin(), views.end(), is_score) ? 2 : 1;
}

}  // namespace

void State::refresh(const QuantizeOptions& options) {
  plan.decisions = decide(*model, options, keep_float);
  for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
    if (plan.decisions[i].treatment != Treatment::kInteger) continue;
    const ir::Operator& op = model->subgraphs[0].operators[i];
    std::string problem = problem_of_values(op, *plan.decisions[i].rule, *calibration, options);
    const bool may_be_float = options.keep_sensitive_float != Choice::kOff && !options.full_integer;
    if (problem.empty() && may_be_float) problem = reason_for_float(op, *calibration);
    if (!problem.empty()) plan.decisions[i] = {Treatment::kFloat, nullptr, std::move(problem)};
  }
  plan.float_border = float_borders(*model, plan.decisions);
  if (!has_float_borders) {
    std::erase_if(plan.float_border, [&](std::int32_t t) { return !is_too_large(calibration->tensors[at(t)]); });
  }
  plan.ranges.assign(model->subgraphs[0].tensors.size(), Range{});
  for (std::size_t t = 0; t < plan.ranges.size(); ++t) {
    const TensorStatistics& statistics = calibration->tensors[t];
    if (!statistics.seen()) continue;
    const RangeKey key(t, requests[t].method, requests[t].percentile, requests[t].room);
    auto known = known_ranges->find(key);
    if (known == known_ranges->end()) known = known_ranges->emplace(key, choose_range(statistics, requests[t])).first;
    plan.ranges[t] = known->second;
  }
  keep_to_activations(model->subgraphs[0], plan.ranges);
  if (options.mode == Mode::kInt8) leave_headroom(*model, *calibration, plan.ranges);
}

void State::set_calibration(std::shared_ptr<const Calibration> observed) {
  calibration = std::move(observed);
  known_ranges = std::make_shared<std::map<RangeKey, Range>>();
}

Status Session::split_samples() {
  std::int64_t count = source_.size();
  if (options_.max_samples > 0) count = std::min(count, options_.max_samples);
  REEF_REQUIRE(count > 0, "there are no samples; calibration needs some that are typical of what the model will see");
  std::int64_t held = options_.held_back >= 0 ? options_.held_back : std::min(count / 5, kMostHeldBack);
  if (count < kFewSamples || held == 0) {
    for (std::int64_t i = 0; i < count; ++i) calibration_samples_.push_back(i);
    if (options_.held_back != 0) held_back_ = calibration_samples_;
    measured_ = held_back_;
    return ok_status();
  }
  held = std::min(held, count - 1);
  // Spread evenly: sample i is held back when the share of those before it has fallen behind.
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_held = (i + 1) * held / count > i * held / count;
    (is_held ? held_back_ : calibration_samples_).push_back(i);
  }
  measured_ = held_back_;
  return ok_status();
}

void Session::measure_with_more(const ir::Model& model) {
  if (options_.held_back >= 0) return;
  const bool all_are_measured = held_back_ == calibration_samples_;
  const std::size_t count = calibration_samples_.size() + (all_are_measured ? 0 : held_back_.size());
  deals_ = can_deal(model, count);
  if (all_are_measured) return;
  if (deals_) {
    measured_.insert(measured_.end(), calibration_samples_.begin(), calibration_samples_.end());
    return;
  }
  const double affordable = kWorkPerChoice / std::max(work_of(model), 1.0);
  const auto all = static_cast<std::int64_t>(calibration_samples_.size());
  const double wanted =
      std::clamp<double>(affordable - static_cast<double>(held_back_.size()), 0, static_cast<double>(all));
  const auto more = static_cast<std::int64_t>(wanted);
  for (std::int64_t i = 0; i < all; ++i) {
    if ((i + 1) * more / all > i * more / all) measured_.push_back(calibration_samples_[at(i)]);
  }
}

// The phase in which `done` counts ways to keep accuracy, and not samples.
constexpr std::string_view kTrying = "trying";

RunOptions Session::run_options(std::string_view phase) const {
  RunOptions result;
  result.threads = options_.threads;
  result.budget = options_.budget;
  if (options_.progress) {
    result.progress = [&progress = options_.progress, phase = std::string(phase)](
                          std::int64_t done, std::int64_t total) { progress(phase, done, total); };
  }
  return result;
}

ir::Model Session::with_compared(ir::Model model, const std::vector<std::int32_t>& tensor_of) const {
  std::vector<std::int32_t>& outputs = model.subgraphs[0].outputs;
  for (std::size_t i = 0; i < compared_.size(); ++i) {
    if (compared_[i] < 0) continue;
    const std::int32_t there = tensor_of[at(compared_[i])];
    const std::int32_t own = outputs[i];
    if (there >= 0) outputs[i] = there;
    outputs.push_back(own);
  }
  return model;
}

Status Session::take_reference(const std::shared_ptr<const ir::Model>& model, bool before_softmax) {
  if (before_softmax) compared_ = compared_tensors(*model);
  std::vector<std::int32_t> same(model->subgraphs[0].tensors.size());
  std::iota(same.begin(), same.end(), 0);
  reference_model_ = std::make_shared<const ir::Model>(with_compared(*model, same));
  REEF_ASSIGN_OR_RETURN(
      reference_, run_outputs(reference_model_, source_, measured_, RunOptions{options_.threads, {}, options_.budget}));
  views_ = views_of(*reference_model_, reference_);
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const std::size_t count = model->subgraphs[0].outputs.size();
    const bool is_hidden = i < compared_.size() && compared_[i] >= 0;
    if (is_hidden) views_[i].read_as = ReadAs::kNumbers;  // classes are read behind the SOFTMAX
    views_[i].is_read = views_[i].is_read && !is_hidden;
    views_[i].is_another = i >= count;
  }
  return ok_status();
}

Result<std::shared_ptr<const Calibration>> Session::observe(const std::shared_ptr<const ir::Model>& model,
                                                            std::string_view phase) {
  REEF_ASSIGN_OR_RETURN(Calibration calibration, calibrator_(model, source_, calibration_samples_, run_options(phase)));
  return std::make_shared<const Calibration>(std::move(calibration));
}

Result<Outputs> Session::outputs_of(const State& state, std::span<const std::int64_t> samples) {
  REEF_ASSIGN_OR_RETURN(IntegerModel made, to_integer(*state.model, state.plan, options_));
  return run_outputs(std::make_shared<const ir::Model>(with_compared(std::move(made.model), made.tensor_of)), source_,
                     samples, RunOptions{options_.threads, {}, options_.budget});
}

Result<Outputs> Session::outputs_on_measured(const State& state) {
  return deals_ ? outputs_unseen(state, measured_, Deal::kInTurn) : outputs_of(state, measured_);
}

Result<OutputError> Session::measure(const State& state) {
  REEF_ASSIGN_OR_RETURN(const Outputs outputs, outputs_on_measured(state));
  return compare_outputs(reference_, outputs, views_);
}

std::int32_t Session::compared(std::size_t output) const {
  const bool is_another = output < compared_.size() && compared_[output] >= 0;
  return is_another ? compared_[output] : best_.model->subgraphs[0].outputs[output];
}

Result<Session::HeldBackError> Session::error_on_held_back(const std::vector<OutputPart>& parts) {
  REEF_ASSIGN_OR_RETURN(const Outputs outputs, outputs_of(best_, held_back_));
  const Outputs reference(reference_.begin(), reference_.begin() + static_cast<std::ptrdiff_t>(held_back_.size()));
  return HeldBackError{compare_outputs(reference, outputs, views_), compare_parts(reference, outputs, parts)};
}

Status Session::start(State state, std::string what) {
  best_ = std::move(state);
  if (!can_measure()) return ok_status();
  REEF_ASSIGN_OR_RETURN(best_error_, measure(best_));
  start_error_ = best_error_;
  history_ = {best_};
  steps_.push_back({std::move(what), best_error_, true});
  return ok_status();
}

Status Session::decide(State candidate, Step step) {
  if (step.kept) {
    step.why_not = why_worse(best_error_.views, step.error.views);
    if (step.why_not.empty()) step.why_not = why_worse(start_error_.views, step.error.views);
    step.kept = step.why_not.empty();
  }
  if (step.kept) {
    best_ = std::move(candidate);
    best_error_ = step.error;
    history_.push_back(best_);
  }
  steps_.push_back(std::move(step));
  return ok_status();
}

double Session::least_gain(const Gain& gain, std::size_t samples) const {
  return std::max(kWorthwhileDb, gain.standard_error * doubt_of_few(samples) * doubt_of_scores(views_));
}

Status Session::consider(State candidate, std::string what, Proof proof) {
  // Nobody knows before how many will be tried; networks of the collection need 10 to 40.
  constexpr std::int64_t kUsualSteps = 40;
  if (const auto tried = static_cast<std::int64_t>(steps_.size()); options_.progress && tried > 0) {
    options_.progress(kTrying, tried, std::max(kUsualSteps, tried + 1));
  }
  REEF_ASSIGN_OR_RETURN(const OutputError error, measure(candidate));
  if (proof == Proof::kAsked) {
    take(std::move(candidate), std::move(what), error);
    start_error_ = error;
    history_ = {best_};
    return ok_status();
  }
  const Gain gain = gain_of(best_error_, error);
  const double least = proof == Proof::kNotWorse ? -gain.standard_error : least_gain(gain, measured_.size());
  return decide(std::move(candidate), {std::move(what), error, gain.db > least, gain, {}});
}

Status Session::accept(State candidate, std::string what, double loss_db) {
  REEF_ASSIGN_OR_RETURN(const OutputError error, measure(candidate));
  const Gain gain = gain_of(best_error_, error);
  return decide(std::move(candidate), {std::move(what), error, gain.db > -loss_db, gain, {}});
}

void Session::take(State candidate, std::string what, const OutputError& error) {
  steps_.push_back({std::move(what), error, true, gain_of(best_error_, error)});
  best_ = std::move(candidate);
  best_error_ = error;
  history_.push_back(best_);
}

Result<State> Session::rewritten(ir::Model model, const ChannelFactors& factors) {
  State state = best_;
  state.factors.insert(factors.begin(), factors.end());
  const RangeRequest usual = state.requests.at(0);
  state.requests.resize(model.subgraphs[0].tensors.size(), usual);
  state.model = state.float_model = std::make_shared<const ir::Model>(std::move(model));
  REEF_ASSIGN_OR_RETURN(auto calibration, observe(state.model, "calibrating the rewritten model"));
  state.set_calibration(std::move(calibration));
  state.refresh(options_);
  return state;
}

Status Session::consider_rewritten(ir::Model model, std::string what, Proof proof, const ChannelFactors& factors) {
  REEF_ASSIGN_OR_RETURN(State state, rewritten(std::move(model), factors));
  return consider(std::move(state), std::move(what), proof);
}

Status Session::set_floor(ir::Model model) {
  REEF_ASSIGN_OR_RETURN(State state, rewritten(std::move(model), {}));
  history_.insert(history_.begin(), std::move(state));
  return ok_status();
}

}  // namespace reef::quantize
