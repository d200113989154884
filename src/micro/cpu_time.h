// SPDX-License-Identifier: Apache-2.0
// Estimated time of a model's CPU operators on a Cortex-M7 with TFLite Micro.
//
// Instructions of each kernel were counted in an emulator (cpu_rates.def); that one takes a cycle is assumed. Nothing
// was measured on a board: the estimate tells milliseconds from seconds, and one kernel from another.
#pragma once

#include "ir/model.h"
#include "micro/assess.h"

namespace reef::micro {

// Microseconds of subgraph 0, Edge TPU operators left out: with CMSIS-NN for kMicro, with the reference kernels for
// kTflm. `model` must be verified.
double cortex_m7_microseconds(const ir::Model& model, Target target);

}  // namespace reef::micro
