// SPDX-License-Identifier: Apache-2.0
// A float model as the quantizer would leave it, without samples: for saying what of it would run on the Edge TPU.
//
// The quantizer itself does the work, so that operators, types and shapes are those that `reef compile --data` will
// meet. Ranges come from one pseudo-random input: the result's numbers mean nothing, and it is never written. What
// quantization costs in accuracy is not told.
#pragma once

#include "base/budget.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::compiler {

// `model` must be verified. Fails where the quantizer does, and where no operator would compute in integers.
Result<ir::Model> quantize_on_trial(const ir::Model& model, const Budget& budget);

}  // namespace reef::compiler
