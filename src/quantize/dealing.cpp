// SPDX-License-Identifier: Apache-2.0
// Outputs of a quantized model on samples that its ranges have not seen, where samples are too few to put some aside.
//
// Problem: ranges that were taken from a sample never cut it off. Measured with such samples, narrower ranges look
// better than they are, and so do channels that were stretched to the largest values seen. With 16 samples, calibrated
// with 13 of them and measured with all, choices that looked 1 to 2 dB better than plain min-max ranges lost up to 5 dB
// on others.
//
// Approach: samples are dealt to parts; each part runs with ranges that are taken, in the state's way, from all other
// parts. So every sample tells what ranges do to samples that they have not seen, and none is lost for choosing.
//
// Not guaranteed: what came from all samples by other ways stays as it is (equalized channels, corrected biases).
#include <algorithm>

#include "quantize/session.h"
#include "quantize/work.h"

namespace reef::quantize {
namespace {

constexpr std::size_t kFewest = 4;                 // samples that can be dealt
constexpr std::size_t kEnough = 32;                // of fewer, those held back say too little about a choice
constexpr std::size_t kParts = 4;                  // of which each is run with the ranges of the others
constexpr std::size_t kFewerParts = 2;             // where calibrating so often is expensive
constexpr double kCheapWork = 1e10;                // products, of one run over all samples
constexpr std::size_t kMostObserved = 2 * kParts;  // histograms of all tensors each

}  // namespace

bool Session::can_deal(const ir::Model& model, std::size_t samples) const {
  return samples >= kFewest && samples < kEnough && work_of(model) * static_cast<double>(samples) <= kCheapWork;
}

Result<State> Session::with_ranges_of(State state, std::span<const std::int64_t> samples, std::string_view phase) {
  const auto is_this = [&](const Observed& seen) {
    return seen.model == state.float_model &&
           std::equal(seen.samples.begin(), seen.samples.end(), samples.begin(), samples.end());
  };
  auto found = std::find_if(observed_.begin(), observed_.end(), is_this);
  if (found == observed_.end()) {
    // Not by calibrator_: every process of a calibration in parts has all samples at this point.
    REEF_ASSIGN_OR_RETURN(Calibration calibration, calibrate(state.float_model, source_, samples, run_options(phase)));
    if (observed_.size() == kMostObserved) observed_.pop_front();
    observed_.push_back({state.float_model,
                         {samples.begin(), samples.end()},
                         std::make_shared<const Calibration>(std::move(calibration)),
                         std::make_shared<std::map<State::RangeKey, Range>>()});
    found = std::prev(observed_.end());
  }
  const std::size_t tensors = state.calibration->tensors.size();
  state.calibration = found->calibration;
  state.known_ranges = found->known_ranges;
  if (state.calibration->tensors.size() != tensors) {  // corrected biases: constants, never observed
    Calibration resized = *found->calibration;
    resized.tensors.resize(tensors);
    state.calibration = std::make_shared<const Calibration>(std::move(resized));
  }
  state.refresh(options_);
  return state;
}

Result<Outputs> Session::outputs_unseen(const State& state, std::span<const std::int64_t> samples, Deal deal) {
  if (samples.size() < kFewest) return outputs_of(state, samples);
  const bool is_cheap = work_of(*state.model) * static_cast<double>(samples.size()) <= kCheapWork;
  const std::size_t parts = is_cheap ? kParts : kFewerParts;
  const auto part_of = [&](std::size_t i) { return deal == Deal::kInTurn ? i % parts : i * parts / samples.size(); };
  Outputs result(samples.size());
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<std::int64_t> seen, unseen;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      (part_of(i) == part ? unseen : seen).push_back(samples[i]);
      if (part_of(i) == part) places.push_back(i);
    }
    REEF_ASSIGN_OR_RETURN(const State other, with_ranges_of(state, seen, "calibrating without some samples"));
    REEF_ASSIGN_OR_RETURN(Outputs outputs, outputs_of(other, unseen));
    for (std::size_t i = 0; i < places.size(); ++i) result[places[i]] = std::move(outputs[i]);
  }
  return result;
}

}  // namespace reef::quantize
