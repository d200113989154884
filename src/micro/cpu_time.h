// SPDX-License-Identifier: Apache-2.0
// Estimated time of a model's CPU operators on a Cortex-M7 with TFLite Micro.
//
// Only the order of magnitude is known. Products of 8-bit numbers are assumed to take about two cycles, everything else
// is charged by the element, as plain C code takes: nobody has measured either for Reef.
#pragma once

#include "ir/model.h"

namespace reef::micro {

// Microseconds of subgraph 0, Edge TPU operators left out. `model` must be verified.
double cortex_m7_microseconds(const ir::Model& model);

}  // namespace reef::micro
