// SPDX-License-Identifier: Apache-2.0
// Room in the ranges of results that grow without limit near the end of their operand's range.
//
// 1/sqrt(x) is the one that networks are full of: normalizations multiply by one over the deviation. A token, or a whole
// picture in front of a classifier, that is flatter than everything in the samples has a larger factor than any that
// was seen. If the range ends there, every value of that token comes out too small, by the ratio of the two factors,
// which no other operator makes up for; a factor that is rounded a little more coarsely costs next to nothing.
#pragma once

#include <vector>

#include "ir/model.h"
#include "quantize/calibrate.h"
#include "quantize/range_choice.h"

namespace reef::quantize {

// Widens the ranges of the first subgraph's RSQRTs.
void leave_headroom(const ir::Model& model, const Calibration& calibration, std::vector<Range>& ranges);

}  // namespace reef::quantize
