// SPDX-License-Identifier: Apache-2.0
// How far the chip's numbers are from TFLite's, for tests of operators whose patterns are our own.
#pragma once

#include <optional>

#include "base/status.h"
#include "ir/model.h"

namespace reef::testing {

// Largest difference between codes of the chip reference and those of the CPU runtime (TFLite's reference kernels, as
// they are now) over all outputs, for pseudo-random inputs: any codes, or, if `most` is given, those of 0 and so many
// above and below it (int8 with a zero point of 0).
Result<int> distance_from_tflite(const ir::Model& model, unsigned seed, std::optional<int> most = std::nullopt);

}  // namespace reef::testing
