// SPDX-License-Identifier: Apache-2.0
// What somebody reads in an output, and whether quantization has changed it.
//
// The distance of two outputs in decibels says little about what a user sees: a text recognizer's letters are the
// largest elements of rows, a detector's boxes are the few scores above a threshold. Both can be lost while the mean
// distance looks better. So every output has a view by which it is read, and a change is kept only if no view of it
// becomes worse by more than chance (session.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/model.h"

namespace reef::quantize {

// A model's outputs as real numbers: [sample][output][element].
using Outputs = std::vector<std::vector<std::vector<float>>>;

enum class ReadAs : std::uint8_t {
  kNumbers,  // nothing but their distance is known to matter
  kClasses,  // the place of the largest element of each row
  kScores,   // values from 0 to 1, such as a detector's scores or a mask: which are above a threshold
  kLogits,   // what looks like scores in front of a sigmoid that the user computes: likewise
};

// One way to look at an output.
struct View {
  std::size_t output = 0;  // position among the outputs that are compared
  ReadAs read_as = ReadAs::kNumbers;
  std::int64_t row = 0;     // kClasses: elements of a row
  bool is_another = false;  // a second look at an output that counts already: behind its SOFTMAX
  bool is_read = true;      // false: a user sees only what comes behind it
  // Elements of a row where rows stand in the order of a selection (TOPK_V2), which the smallest rounding changes: rows
  // are compared with those most like them. 0: order matters.
  std::int64_t selected_row = 0;
};

// How the first outputs of `model`, all of them, are read. `reference`: what the float model gives.
std::vector<View> views_of(const ir::Model& model, const Outputs& reference);

// What one view shows.
struct ViewError {
  View view;
  double sqnr_db = 0;          // power of the values around their mean over power of the error
  std::vector<double> noise;   // per sample: power of the error
  double largest_error = 0;    // of any element
  double agreement = -1;       // share of rows with the same largest element, or of scores above a threshold in the
                               // one or the other model that are in both; -1: read as numbers, or there are none
  std::vector<double> agreed;  // per sample: how many agree ...
  std::vector<double> asked;   // ... of how many
  // Of scores that somebody may look at (above a threshold, or the sample's largest), as shares from 0 to 1, per
  // sample: power of the error, and of how many. How many scores change sides is counted in few pixels; this says much
  // sooner whether they become worse.
  std::vector<double> misread, read;
};
ViewError look_at(const View& view, const Outputs& reference, const Outputs& outputs);

// Why somebody who reads the outputs would prefer `before`, in words; empty: no view is worse by more than chance.
std::string why_worse(const std::vector<ViewError>& before, const std::vector<ViewError>& after);

// Below this an output has little to do with the float model's: the error has a tenth of the signal's power.
inline constexpr double kUsableDb = 10;

// Why an output is of no use, in words; empty: it is usable. Scores and probabilities whose errors are all below 0.1
// are usable at any number of dB: where a detector sees nothing, its scores are smaller than a step of 8 bits.
std::string why_useless(const ViewError& error);

// How much is missing until all outputs are usable and have `goal`, in dB and summed; 0: nothing is.
double missing_db(const std::vector<ViewError>& errors, double goal = kUsableDb);

}  // namespace reef::quantize
