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
  // Input elements (of 1 or 2 bytes) without a gap between them.
  struct Span {
    std::int32_t offset = 0;  // bytes from the run's first input
    std::int32_t elements = 0;
  };

  bool is_regular = false;  // else: step by step
  bool is_wide = false;     // operands need more than 16 bits
  std::int64_t run_steps = 1;
  std::int64_t operands = 4;           // input elements of a run, padded to an even number
  std::int64_t shared_runs = 1;        // aligned groups of so many runs use the same parameters
  isa::NestShape in_runs, param_runs;  // one step per run
  // Several runs make a result: so many in a row, or, if outer_reduced is not 0, those that belong to one slot.
  std::int64_t result_runs = 1;
  isa::NestShape slot_runs;         // "address": which of the results under way a run belongs to
  std::uint32_t outer_reduced = 0;  // dimensions of slot_runs that are summed
  std::vector<Span> in_spans;
  bool spans_are_words = false;                // 4 elements each
  std::vector<std::int32_t> param_offsets;     // quarter lines from the run's first, one for each step
  std::int64_t in_low = 0, in_high = 0;        // bytes that a run reads: [low, high)
  std::int64_t param_low = 0, param_high = 0;  // quarter lines: [low, high]
};

// Steps that the tables of a program's plans may have in all. Compiled programs have some ten thousand.
inline constexpr std::int64_t kMaxPlannedSteps = 1 << 22;

// Dimensions that are summed are the innermost ones: one result is under way at a time.
bool reduces_innermost(const isa::TensorOperation& op, isa::Opcode opcode);
// Results that are under way at once.
std::int64_t slots_of(const isa::TensorOperation& op, isa::Opcode opcode);

// `budget`: steps that tables may still have; what this one takes is taken off.
TensorPlan plan_tensor(const isa::TensorOperation& op, isa::Opcode opcode, std::int64_t& budget);

}  // namespace reef::device
