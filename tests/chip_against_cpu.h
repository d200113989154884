// SPDX-License-Identifier: Apache-2.0
// How far the chip's numbers are from TFLite's, for tests of operators whose patterns are our own.
#pragma once

#include "base/status.h"
#include "ir/model.h"

namespace reef::testing {

// Largest difference between codes of the chip reference and those of the CPU runtime (TFLite's reference kernels, as
// they are now) over all outputs, for pseudo-random inputs.
Result<int> distance_from_tflite(const ir::Model& model, unsigned seed);

}  // namespace reef::testing
