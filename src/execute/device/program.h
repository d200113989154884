// SPDX-License-Identifier: Apache-2.0
// A program decoded once, ready to be executed many times.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "execute/device/tensor_plan.h"
#include "formats/darwinn/package.h"
#include "isa/operation.h"
#include "isa/program.h"
#include "isa/unknown.h"

namespace reef::device {

// The instructions of all chunks in one list: tiles may still be at work on one chunk when the core begins the next.
struct Program {
  darwinn::ExecutableType type = darwinn::ExecutableType::kStandAlone;
  isa::Program instructions;
  std::vector<isa::Operation> operations;  // one for each
  std::vector<TensorPlan> plans;           // one for each; of use for tensor instructions
  std::vector<std::int32_t> row_of;        // in its chunk
  std::vector<std::size_t> chunk_of;
  // First instruction of each chunk; at the end, the number of instructions.
  std::vector<std::size_t> chunk_starts = {0};
  std::int64_t steps_to_plan = kMaxPlannedSteps;  // left for further tensor instructions

  // The instruction that begins at a row of a chunk.
  std::optional<std::size_t> at_row(std::size_t chunk, std::int64_t row) const;
  // "row 228 (multiply_add)", with the chunk if there are several.
  std::string describe(std::size_t index) const;
};

// Decodes one more chunk of instructions to the end. Pointers into the program's lists are not valid afterwards. What
// the device does not know goes to `unknown`; where that is not empty afterwards, the program cannot be run.
Status append_chunk(Program& program, std::span<const std::uint8_t> bitstream, isa::UnknownList& unknown);

Result<Program> decode_program(const darwinn::Executable& executable, isa::UnknownList& unknown);

}  // namespace reef::device
