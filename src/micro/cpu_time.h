// SPDX-License-Identifier: Apache-2.0
// Estimated time of a model's CPU operators on a Cortex-M7 with TFLite Micro.
//
// Only the order of magnitude is known. Products of 8-bit numbers: published MLPerf Tiny results of Cortex-M7 boards
// with CMSIS-NN are at 0.4 to 0.5 products a cycle. Everything else is charged by the element, as plain C code takes:
// nobody has measured it for Reef.
#pragma once

#include "ir/model.h"

namespace reef::micro {

// Microseconds of subgraph 0, Edge TPU operators left out. `model` must be verified.
double cortex_m7_microseconds(const ir::Model& model);

}  // namespace reef::micro
