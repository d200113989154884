// SPDX-License-Identifier: Apache-2.0
// What was decided for a compiled part, step by step, with what it costs on the virtual device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/code_generator.h"
#include "execute/device/timing_model.h"
#include "ir/model.h"

namespace reef::compiler {

struct StepExplanation {
  std::string title;    // "op 3 CONV_2D, convolution"
  std::string details;  // what is particular about the work; may be empty
  std::int32_t op = -1;
  std::int64_t instructions = 0, instruction_bytes = 0;
  // Cycles by which the step makes the program longer: from the end of everything before it to its own end. Steps
  // overlap, so this is less than what it would take alone. Simulated.
  double cycles = 0;
};

struct MemoryObject {
  std::string name;                 // "n3", or the tensors that lie there
  std::int64_t begin = 0, end = 0;  // bytes of narrow memory
  std::int32_t first_step = 0, last_step = 0;
};

struct PartExplanation {
  std::vector<StepExplanation> steps;
  std::vector<MemoryObject> narrow;                   // by address
  std::int64_t narrow_bytes = 0;                      // in use, of each tile
  std::int64_t scratch_lines = 0;                     // of wide memory, of each tile
  std::int64_t cached_bytes = 0, streamed_bytes = 0;  // parameters
  int cached_chunks = 0, streamed_chunks = 0;         // layers whose parameters are kept, or sent every time
  std::int64_t instruction_bytes = 0;                 // sent with every inference
  int chunks = 1;                                     // pieces that the program is sent in
  double cycles = 0;                                  // of a whole inference, from call to return. Simulated
  double ms = 0;                                      // the same at the clock and link that were asked for
};

// Runs the code on the virtual device with an input of zeros.
Result<PartExplanation> explain(const ir::Model& model, const PartCode& code, const device::TimingOptions& timing = {});

// For people: a table of steps, the memory map, figures.
std::string to_text(const PartExplanation& explanation);

}  // namespace reef::compiler
