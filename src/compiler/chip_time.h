// SPDX-License-Identifier: Apache-2.0
// How long one inference of a model takes on an Edge TPU: estimated from shapes, or simulated with real code.
#pragma once

#include <cstdint>

#include "base/budget.h"
#include "base/status.h"
#include "chip/links.h"
#include "compiler/compile.h"
#include "ir/model.h"

namespace reef::compiler {

struct ChipTime {
  double ms = 0;       // of the whole model: chip, CPU and link
  double chip_ms = 0;  // simulated: of the parts that run on the chip, from call to return
  std::int64_t cached_bytes = 0, streamed_bytes = 0;  // parameters on the chip, and sent with every inference
};

// `model`: float (quantized on trial, trial_quantization.h) or quantized; verified. Estimated: partition/cost.h.
Result<ChipTime> estimate_time(const ir::Model& model, const chip::LinkProfile* link, const Budget& budget);

// The same of what was compiled: its parts run on the virtual device, with inputs of zeros; what stays on the CPU
// counts as estimated. Segments count one after the other, as one inference passes through them.
Result<ChipTime> simulate_time(const CompileResult& compiled, const chip::LinkProfile* link);

// Compiles a quantized model in memory and runs its parts on the virtual device, with inputs of zeros. What stays on
// the CPU counts as estimated.
Result<ChipTime> simulate_time(const ir::Model& quantized, const chip::LinkProfile* link, const Budget& budget);

}  // namespace reef::compiler
