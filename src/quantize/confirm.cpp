// SPDX-License-Identifier: Apache-2.0
// Whether all choices together are better than plain min-max ranges, on samples that had no part in them.
//
// Problem: a choice is kept because outputs come nearer on the samples measured with. Most of these are those that
// ranges come from, the few held back are the same for all of dozens of choices, and so each choice that was kept had a
// little luck. With 48 samples 9 are held back, with 8 none: too few to tell luck from gain.
//
// Approach: samples are dealt to parts; each part runs with ranges that are taken from all other parts, in the start's
// way and in the result's. So every sample tells what ranges do to samples that they have not seen. Where enough
// samples were held back from the beginning, these alone are run, with the ranges that the result has.
//
// In the end ranges are taken from all samples, as plain min-max ranges would be: those held back have done their work,
// and are a fifth of what is known.
//
// Not guaranteed: what came from all samples by other ways stays as it is. Corrected biases are a few means for each
// layer, which a sample moves by little. Equalized channels follow the largest values seen: with 8 samples they can
// cost other samples a few dB, and this does not show it.
#include <algorithm>

#include <fmt/format.h>

#include "quantize/session.h"
#include "quantize/work.h"

namespace reef::quantize {
namespace {

constexpr std::size_t kFewest = 4;      // samples that can be dealt
constexpr std::size_t kParts = 4;       // where calibrating so often is cheap ...
constexpr std::size_t kFewerParts = 2;  // ... and where it is not
constexpr double kCheapWork = 1e10;     // products, of one run over all samples

}  // namespace

std::vector<std::int64_t> Session::samples_to_confirm() const {
  if (options_.held_back >= 0 || held_back_.size() >= kMostHeldBack) return held_back_;
  std::vector<std::int64_t> all = calibration_samples_;
  if (held_back_ != calibration_samples_) all.insert(all.end(), held_back_.begin(), held_back_.end());
  if (all.size() < kFewest) return held_back_;
  std::sort(all.begin(), all.end());
  return all;
}

Result<State> Session::with_ranges_of(State state, std::span<const std::int64_t> samples,
                                      std::string_view phase) const {
  // Not by calibrator_: every process of a calibration in parts has all samples at this point.
  REEF_ASSIGN_OR_RETURN(Calibration calibration, calibrate(state.float_model, source_, samples, run_options(phase)));
  calibration.tensors.resize(state.calibration->tensors.size());  // corrected biases: constants, never observed
  state.set_calibration(std::make_shared<const Calibration>(std::move(calibration)));
  state.refresh(options_);
  return state;
}

Status Session::take_ranges_of_all() {
  if (!can_measure() || options_.held_back >= 0 || held_back_ == calibration_samples_) return ok_status();
  std::vector<std::int64_t> all = calibration_samples_;
  all.insert(all.end(), held_back_.begin(), held_back_.end());
  std::sort(all.begin(), all.end());
  REEF_ASSIGN_OR_RETURN(State state, with_ranges_of(best_, all, "calibrating on all samples"));
  // What was measured with are mostly samples that ranges come from already, for which wider ones are a loss: they
  // cannot tell what more samples are worth to others. Only what is lost tells.
  REEF_ASSIGN_OR_RETURN(const OutputError error, measure(state));
  if (missing_db(error.views) > missing_db(best_error_.views)) return ok_status();
  take(std::move(state), "ranges from all samples, those held back too", error);
  return ok_status();
}

Result<Outputs> Session::outputs_to_confirm(const State& state, std::span<const std::int64_t> samples) {
  const bool were_held_back = samples.size() == held_back_.size() && held_back_ != calibration_samples_;
  if (were_held_back || samples.size() < kFewest) return outputs_of(state, samples);
  const bool is_cheap = work_of(*state.model) * static_cast<double>(samples.size()) <= kCheapWork;
  const std::size_t parts = is_cheap ? kParts : kFewerParts;
  Outputs result(samples.size());
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<std::int64_t> seen, unseen;
    for (std::size_t i = 0; i < samples.size(); ++i) (i % parts == part ? unseen : seen).push_back(samples[i]);
    REEF_ASSIGN_OR_RETURN(const State other, with_ranges_of(state, seen, "confirming"));
    REEF_ASSIGN_OR_RETURN(Outputs outputs, outputs_of(other, unseen));
    for (std::size_t i = 0; i < unseen.size(); ++i) result[part + i * parts] = std::move(outputs[i]);
  }
  return result;
}

Status Session::go_back_if_worse() {
  if (!can_measure() || history_.size() < 2) return ok_status();
  const std::vector<std::int64_t> samples = samples_to_confirm();
  const RunOptions quietly{options_.threads, {}, options_.budget};
  REEF_ASSIGN_OR_RETURN(const Outputs reference, run_outputs(reference_model_, source_, samples, quietly));
  const auto error_of = [&](const State& state) -> Result<OutputError> {
    REEF_ASSIGN_OR_RETURN(const Outputs outputs, outputs_to_confirm(state, samples));
    return compare_outputs(reference, outputs, views_);
  };
  REEF_ASSIGN_OR_RETURN(const OutputError start, error_of(history_[0]));
  // Back by halves: a state costs as much as some choices did.
  std::size_t i = history_.size() - 1;
  for (; i > 0; i /= 2) {
    REEF_ASSIGN_OR_RETURN(const OutputError error, error_of(history_[i]));
    std::string why = why_worse(start.views, error.views);
    if (why.empty() && error.mean_sqnr_db < start.mean_sqnr_db) why = "fewer dB";
    if (why.empty()) break;
    Step step{fmt::format("{} of {} choices, beside none, on {} samples that ranges do not come from", i,
                          history_.size() - 1, samples.size()),
              error, false, gain_of(start, error), why};
    steps_.push_back(std::move(step));
  }
  if (i + 1 == history_.size()) return ok_status();
  best_ = history_[i];
  REEF_ASSIGN_OR_RETURN(best_error_, measure(best_));
  steps_.push_back({fmt::format("last {} choices taken back", history_.size() - 1 - i), best_error_, true});
  return ok_status();
}

}  // namespace reef::quantize
