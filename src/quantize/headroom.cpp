// SPDX-License-Identifier: Apache-2.0
#include "quantize/headroom.h"

#include <algorithm>

namespace reef::quantize {
namespace {

// A variance may be a sixteenth of the smallest that was seen.
constexpr float kLargerFactor = 4;
// But the smallest factor that was seen keeps 255 / kMostTimesSmallest = 21 steps: it is rounded by 2.4 % at most, by
// 1.4 % on average, which is the error of 8-bit values that fill their range (some 37 dB).
constexpr float kMostTimesSmallest = 12;

}  // namespace

void leave_headroom(const ir::Model& model, const Calibration& calibration, std::vector<Range>& ranges) {
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type != "RSQRT") continue;
    const auto result = static_cast<std::size_t>(op.outputs[0]);
    const TensorStatistics& seen = calibration.tensors[result];
    if (!seen.seen() || !(seen.min > 0)) continue;
    Range& range = ranges[result];
    range.max = std::max(range.max, std::min(kLargerFactor * range.max, kMostTimesSmallest * seen.min));
  }
}

}  // namespace reef::quantize
