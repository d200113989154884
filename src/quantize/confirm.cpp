// SPDX-License-Identifier: Apache-2.0
// Whether all choices together are better than plain min-max ranges, on samples that had no part in them.
//
// Problem: a choice is kept because outputs come nearer on the samples measured with. Some of these are those that
// ranges come from, or all are the same for dozens of choices, and so each choice that was kept had a little luck.
//
// Approach: where enough samples were held back from the beginning, these alone are run, with the ranges that the
// result has. Else samples are dealt (dealing.cpp), in another way than for choosing. What is not better by more than
// chance is taken back.
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

constexpr std::size_t kFewestOnUnseen = 16;
constexpr double kWorkOnUnseen = 4e10;  // products of one run over them; it takes a few such runs

}  // namespace

std::vector<std::int64_t> Session::samples_to_confirm() const {
  if (options_.held_back >= 0 || held_back_.size() >= kMostHeldBack) return held_back_;
  std::vector<std::int64_t> all = calibration_samples_;
  if (held_back_ != calibration_samples_) all.insert(all.end(), held_back_.begin(), held_back_.end());
  std::sort(all.begin(), all.end());
  return all;
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

Result<OutputError> Session::error_on_unseen(const State& state, Deal deal) {
  const std::vector<std::int64_t> samples = samples_to_confirm();
  if (unseen_reference_.empty()) {
    const RunOptions quietly{options_.threads, {}, options_.budget};
    REEF_ASSIGN_OR_RETURN(unseen_reference_, run_outputs(reference_model_, source_, samples, quietly));
  }
  const bool were_held_back = samples.size() == held_back_.size() && held_back_ != calibration_samples_;
  REEF_ASSIGN_OR_RETURN(const Outputs outputs,
                        were_held_back ? outputs_of(state, samples) : outputs_unseen(state, samples, deal));
  return compare_outputs(unseen_reference_, outputs, views_);
}

Status Session::consider_on_unseen(State candidate, std::string what) {
  if (deals_) return consider(std::move(candidate), std::move(what));
  const std::size_t count = samples_to_confirm().size();
  const bool is_possible = options_.held_back < 0 && count >= kFewestOnUnseen;
  if (!is_possible || work_of(*candidate.model) * static_cast<double>(count) > kWorkOnUnseen) return ok_status();
  REEF_ASSIGN_OR_RETURN(const OutputError before, error_on_unseen(best_, Deal::kInTurn));
  REEF_ASSIGN_OR_RETURN(const OutputError after, error_on_unseen(candidate, Deal::kInTurn));
  const Gain gain = gain_of(before, after);
  const std::string why = why_worse(before.views, after.views);
  if (gain.db <= least_gain(gain, count) || !why.empty()) {
    steps_.push_back({std::move(what), after, false, gain, why});
    return ok_status();
  }
  REEF_ASSIGN_OR_RETURN(best_error_, measure(candidate));
  steps_.push_back({std::move(what), best_error_, true, gain, {}});
  best_ = std::move(candidate);
  history_.push_back(best_);
  return ok_status();
}

Status Session::go_back_if_worse() {
  if (!can_measure() || history_.size() < 2) return ok_status();
  const std::size_t samples = samples_to_confirm().size();
  const auto error_of = [&](const State& state) { return error_on_unseen(state, Deal::kInRuns); };
  REEF_ASSIGN_OR_RETURN(const OutputError start, error_of(history_[0]));
  // Back by halves: a state costs as much as some choices did.
  std::size_t i = history_.size() - 1;
  for (; i > 0; i /= 2) {
    REEF_ASSIGN_OR_RETURN(const OutputError error, error_of(history_[i]));
    const Gain gain = gain_of(start, error);
    std::string why = why_worse(start.views, error.views);
    if (why.empty() && gain.db < gain.standard_error) why = "no more dB than by chance";
    steps_.push_back({fmt::format("{} of {} choices, beside none, on {} samples that ranges do not come from", i,
                                  history_.size() - 1, samples),
                      error, false, gain, why});
    if (why.empty()) break;
  }
  if (i + 1 == history_.size()) return ok_status();
  best_ = history_[i];
  REEF_ASSIGN_OR_RETURN(best_error_, measure(best_));
  steps_.push_back({fmt::format("last {} choices taken back", history_.size() - 1 - i), best_error_, true});
  return ok_status();
}

}  // namespace reef::quantize
