// SPDX-License-Identifier: Apache-2.0
// Is what was observed fit to choose ranges by? Says loudly, with numbers, if not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "quantize/calibrate.h"

namespace reef::quantize {

// Stands in the warning about an input from 0 to 255, for callers who know that the model wants that.
inline constexpr std::string_view kLooksLikePixels = "these look like raw pixels";

// An error: values that are not numbers, or nothing was observed. Warnings: too few samples, samples that repeat,
// inputs that hardly vary or whose range looks unprepared (0 to 255 into a network that was trained otherwise cannot be
// known, but pixels beside normalized constants can be suspected).
Status check_calibration(const ir::Model& model, const Calibration& calibration, std::vector<std::string>& warnings);

}  // namespace reef::quantize
