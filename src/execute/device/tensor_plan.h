// SPDX-License-Identifier: Apache-2.0
// A tensor instruction seen as a matrix product, where it is one.
//
// Most instructions take `run_steps` steps for a result (or a part of it), and several results in a row use the same
// parameters: the steps of a run are then columns, results rows of a matrix of inputs. What is needed for that is
// worked out once per instruction.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/operation.h"

namespace reef::device {

struct TensorPlan {
  bool is_regular = false;  // else: step by step
  std::int64_t run_steps = 1;
  std::int64_t operands = 4;           // input elements of a run, padded to an even number
  std::int64_t shared_runs = 1;        // aligned groups of so many runs use the same parameters
  isa::NestShape in_runs, param_runs;  // one step per run
  isa::NestShape slot_runs;            // "address": which of the results under way a run belongs to
  std::uint32_t outer_reduced = 0;     // dimensions of slot_runs that are summed
};

// Dimensions that are summed are the innermost ones: one result is under way at a time.
bool reduces_innermost(const isa::TensorOperation& op, isa::Opcode opcode);
// Results that are under way at once.
std::int64_t slots_of(const isa::TensorOperation& op, isa::Opcode opcode);

TensorPlan plan_tensor(const isa::TensorOperation& op, isa::Opcode opcode);

// Addresses of a nest's first steps relative to the first one, double buffers aside.
void step_offsets(const isa::NestShape& nest, std::int64_t steps, std::vector<std::int32_t>& offsets);

}  // namespace reef::device
