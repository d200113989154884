// SPDX-License-Identifier: Apache-2.0
// The tensor unit's work on one instruction. Private to the device.
#pragma once

#include <cstdint>
#include <vector>

#include "execute/device/chip.h"

namespace reef::device {

struct TensorRun {
  isa::NestCursor in, param, psum, out;            // the loops are Running::first
  isa::NestCursor in_runs, param_runs, slot_runs;  // of a regular instruction (tensor_plan.h)
  bool are_stale = false;                          // `in`, `param` and `psum` do not stand where the loops do
  int width = 0;                                   // cells, padded
  std::vector<std::int32_t> sums;                  // slots x width
  std::vector<std::uint8_t> unknown;  // slots x width: the sum depends on memory that nothing wrote; empty: none does
  std::int64_t results = 0;           // finished
  // Of a regular instruction: where a run's inputs (bytes) and parameters (quarter lines) lie, relative to its first.
  std::vector<std::int32_t> in_offsets, param_offsets;
  // Room for matrices of a batch.
  std::vector<std::int16_t> weights, inputs;
};

}  // namespace reef::device
