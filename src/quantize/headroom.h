// SPDX-License-Identifier: Apache-2.0
// Ranges of the numbers by which normalizations shift and scale whole tokens.
//
// Other tensors have thousands of values in every sample, and one beyond their range is one error among them. The mean
// and the deviation of a token are one number each, in front of a classifier even one for a whole picture, and a
// handful of samples does not show how far they go. One that is cut off shifts or scales all channels, and nothing
// behind it makes up for that; rounded a little more coarsely it costs next to nothing. So ranges go further than what
// was seen:
//
//   1/sqrt(variance), which grows without limit where a token is flatter than all samples;
//   the mean, which may have either sign;
//
// and not as far as what was seen where the operand is too small for 8 bits: 1/x and 1/sqrt(x) of a number that is
// rounded to 0 may be anything.
#pragma once

#include <vector>

#include "ir/model.h"
#include "quantize/calibrate.h"
#include "quantize/range_choice.h"

namespace reef::quantize {

// Changes the ranges of results of the first subgraph: of RSQRT, of a constant divided by a tensor, and of a MEAN that
// is subtracted from what it is the mean of.
void leave_headroom(const ir::Model& model, const Calibration& calibration, std::vector<Range>& ranges);

}  // namespace reef::quantize
