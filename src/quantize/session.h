// SPDX-License-Identifier: Apache-2.0
// What the parts of the quantizer that try things out share: a state, which is everything a result follows from, and a
// session, which measures states and keeps the best.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"
#include "quantize/calibrate.h"
#include "quantize/equalization.h"
#include "quantize/measure.h"
#include "quantize/options.h"
#include "quantize/quantize.h"
#include "quantize/to_integer.h"

namespace reef::quantize {

// A float model (possibly changed without changing what it computes), what was observed of it, and the plan.
struct State {
  std::shared_ptr<const ir::Model> model;
  std::shared_ptr<const ir::Model> float_model;  // the same before corrections that make up for rounding
  std::shared_ptr<const Calibration> calibration;
  Plan plan;
  std::vector<RangeRequest> requests;    // per tensor: how its range is taken
  std::vector<std::int32_t> keep_float;  // operators, by number
  bool has_float_borders = false;        // inputs that only float operators read, and outputs of such, stay float32
  ChannelFactors factors;                // of equalized tensors

  // Ranges of this calibration that were computed already.
  using RangeKey = std::tuple<std::size_t, RangeMethod, double, double>;  // tensor, and of its RangeRequest
  std::shared_ptr<std::map<RangeKey, Range>> known_ranges = std::make_shared<std::map<RangeKey, Range>>();
  void set_calibration(std::shared_ptr<const Calibration> observed);

  // Ranges anew from requests and calibration, decisions anew from keep_float.
  void refresh(const QuantizeOptions& options);
};

class Session {
 public:
  Session(const data::SampleSource& source, const QuantizeOptions& options, Calibrator calibrator = {})
      : source_(source), options_(options), calibrator_(calibrator ? std::move(calibrator) : Calibrator(calibrate)) {}

  // Deals the source's samples to calibration and measuring. Fails when there are none.
  Status split_samples();
  // Those held back are few, and so much by chance better or worse that small gains would not show. Where work like
  // this model's allows, all samples are measured with, each with ranges that were taken without it (dealing.cpp). Of
  // many samples, or of an expensive model, some that were calibrated with are added: a range that was never exceeded
  // on them may be on others, so they favour narrow ranges by a little. Nothing is added where the user said how many.
  void measure_with_more(const ir::Model& model);
  // Remembers what the float model says about the samples to measure with.
  // before_softmax: see compared_; the states measured later must then have the tensors of this model.
  Status take_reference(const std::shared_ptr<const ir::Model>& model, bool before_softmax = true);
  Result<std::shared_ptr<const Calibration>> observe(const std::shared_ptr<const ir::Model>& model,
                                                     std::string_view phase);
  Result<OutputError> measure(const State& state);
  // What it takes to keep a change.
  enum class Proof : std::uint8_t {
    kBetter,    // better by kWorthwhileDb, and by more than the standard error of that: dozens of things are tried, and
                // some look better by chance
    kNotWorse,  // not worse by more than a standard error: for changes that leave out a rounding, which are expected to
                // help, if by less than some dozens of samples can show
    kAsked,     // none: the options ask for the change, and what follows is compared with it
  };
  // Makes `candidate` the best if the samples give that proof and nothing that a user reads in an output became worse
  // (reading.h), neither beside the best nor beside the start; notes the step either way.
  Status consider(State candidate, std::string what, Proof proof = Proof::kBetter);
  // Considers a change that only samples which ranges have not seen can judge: dealt samples, or those held back where
  // they are enough. Nothing happens where running these is expensive.
  Status consider_on_unseen(State candidate, std::string what);
  // Makes it the best if it is worse by `loss_db` at most.
  Status accept(State candidate, std::string what, double loss_db);
  // Makes it the best without a proof, with what was measured.
  void take(State candidate, std::string what, const OutputError& error);
  // Considers a model that computes the same as the best one's in another way: its tensors keep their numbers.
  // `factors`: of tensors that are equalized by that.
  Status consider_rewritten(ir::Model model, std::string what, Proof proof = Proof::kNotWorse,
                            const ChannelFactors& factors = {});
  // What the best gives on the samples measured with, and what the float model does: [sample][output][element]. Of an
  // output, tensor compared(o) of the state's model is looked at.
  Result<Outputs> best_outputs() { return outputs_on_measured(best_); }
  const Outputs& reference() const { return reference_; }
  std::int32_t compared(std::size_t output) const;
  // Of the best, on the samples held back alone: of outputs, and of the parts they consist of.
  struct HeldBackError {
    OutputError outputs;
    std::vector<PartError> parts;
  };
  Result<HeldBackError> error_on_held_back(const std::vector<OutputPart>& parts);
  // Makes it the state to improve on.
  Status start(State state, std::string what);
  // What the result must not be below in the end, beside the start: a model that computes the same in another way, with
  // the start's way of taking ranges.
  Status set_floor(ir::Model model);
  // Goes back where all choices together are worse than the start on samples that ranges do not come from: to the last
  // state that is not. Choices are also made by samples that calibration saw, and each was a little lucky.
  Status go_back_if_worse();  // confirm.cpp
  // Ranges of the best from all samples, those held back for choosing too. Nothing is left then to measure with that
  // ranges have not seen: measure before. Not where the user said how many to hold back.
  Status take_ranges_of_all();  // confirm.cpp

  const QuantizeOptions& options() const { return options_; }
  const data::SampleSource& source() const { return source_; }
  const State& best() const { return best_; }
  const OutputError& best_error() const { return best_error_; }
  std::vector<Step>& steps() { return steps_; }
  const std::vector<std::int64_t>& calibration_samples() const { return calibration_samples_; }
  const std::vector<std::int64_t>& held_back() const { return held_back_; }
  const std::vector<std::int64_t>& measured() const { return measured_; }
  bool can_measure() const { return !measured_.empty(); }
  bool deals() const { return deals_; }  // each sample is measured with ranges that were taken without it
  RunOptions run_options(std::string_view phase) const;

  static constexpr double kWorthwhileDb = 0.05;
  static constexpr std::int64_t kMostHeldBack = 32;  // each choice costs a run over all of them

 private:
  Status decide(State candidate, Step step);
  double least_gain(const Gain& gain, std::size_t samples) const;  // that proves a change, in dB
  Result<State> rewritten(ir::Model model, const ChannelFactors& factors);
  Result<Outputs> outputs_of(const State& state, std::span<const std::int64_t> samples);
  // As the model's own outputs, also where something in front of them is compared.
  ir::Model with_compared(ir::Model model, const std::vector<std::int32_t>& tensor_of) const;
  Result<Outputs> outputs_on_measured(const State& state);
  // dealing.cpp: what a state gives on samples, each with ranges that were taken from others of them.
  enum class Deal : std::uint8_t { kInTurn, kInRuns };
  Result<Outputs> outputs_unseen(const State& state, std::span<const std::int64_t> samples, Deal deal);
  Result<State> with_ranges_of(State state, std::span<const std::int64_t> samples, std::string_view phase);
  bool can_deal(const ir::Model& model, std::size_t samples) const;
  // confirm.cpp: samples to compare all choices together with the start on, and what a state gives on them.
  std::vector<std::int64_t> samples_to_confirm() const;
  Result<OutputError> error_on_unseen(const State& state, Deal deal);

  const data::SampleSource& source_;
  const QuantizeOptions& options_;
  Calibrator calibrator_;
  std::vector<std::int64_t> calibration_samples_, held_back_;
  std::vector<std::int64_t> measured_;  // those held back, then others
  bool deals_ = false;
  // What was observed of a float model on some of the samples, with the ranges that were computed from it. The newest:
  // the best state and the one that is tried have a model each.
  struct Observed {
    std::shared_ptr<const ir::Model> model;
    std::vector<std::int64_t> samples;
    std::shared_ptr<const Calibration> calibration;
    std::shared_ptr<std::map<State::RangeKey, Range>> known_ranges;
  };
  std::deque<Observed> observed_;
  Outputs unseen_reference_;  // what the float model gives on samples_to_confirm()
  // What is compared: the graph's outputs; of a SOFTMAX at the end, what it reads (its own result hides most errors and
  // exaggerates others). Tensors of the float model; -1: the output itself.
  std::vector<std::int32_t> compared_;
  std::shared_ptr<const ir::Model> reference_model_;  // which gives out what is compared
  Outputs reference_;        // what is compared; behind it the outputs themselves where that is something else
  std::vector<View> views_;  // of reference_
  State best_;
  OutputError best_error_, start_error_;
  std::vector<State> history_;  // the floor, the start and every state that was the best
  std::vector<Step> steps_;
};

// Recovery, one file each in recover/. Each looks at session.best() and considers changes of it.
Status normalize_twice(Session& session);
Status fold_centring(Session& session);
Status affine_layers(Session& session);
Status centre_attention(Session& session);
Status convolve_uneven_layers(Session& session);
Status choose_ranges(Session& session);
Status equalize(Session& session);
Status equalize_streams(Session& session);
Status correct_biases(Session& session);
Status correct_outputs(Session& session);
Status clip_weights(Session& session);
Status keep_sensitive_float(Session& session);
Status rescue(Session& session);
Status round_adaptively(Session& session);

}  // namespace reef::quantize
