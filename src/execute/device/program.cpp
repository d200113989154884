// SPDX-License-Identifier: Apache-2.0
#include "execute/device/program.h"

#include <algorithm>

namespace reef::device {
namespace {

// Partial sums fill at most a tile's wide memory, one line each.
constexpr std::int64_t kMaxSlots = 4096;

}  // namespace

std::optional<std::size_t> Program::at_row(std::size_t chunk, std::int64_t row) const {
  const auto begin = row_of.begin() + static_cast<std::ptrdiff_t>(chunk_starts[chunk]);
  const auto end = row_of.begin() + static_cast<std::ptrdiff_t>(chunk_starts[chunk + 1]);
  const auto found = std::lower_bound(begin, end, row);
  if (found == end || *found != row) return std::nullopt;
  return static_cast<std::size_t>(found - row_of.begin());
}

std::string Program::describe(std::size_t index) const {
  const std::string_view mnemonic = isa::info(instructions[index].opcode()).mnemonic;
  if (chunk_starts.size() <= 2) return fmt::format("row {} ({})", row_of[index], mnemonic);
  return fmt::format("chunk {} row {} ({})", chunk_of[index], row_of[index], mnemonic);
}

Result<Program> decode_program(const darwinn::Executable& executable, isa::UnknownList& unknown) {
  Program program;
  program.type = executable.type;
  std::int64_t planned_steps = kMaxPlannedSteps;
  for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
    program.chunk_starts.push_back(program.instructions.size());
    auto chunk = isa::decode(executable.instruction_chunks[c].bitstream.span());
    if (!chunk.ok()) return chunk.status().in(fmt::format("chunk {}", c));
    std::int32_t row = 0;
    for (isa::Instruction& instruction : *chunk) {
      const auto place = [&] {
        return fmt::format("{}chunk {} row {} ({})",
                           executable.type == darwinn::ExecutableType::kParameterCaching ? "parameter caching " : "", c,
                           row, isa::info(instruction.opcode()).mnemonic);
      };
      for (const std::string& what : isa::unknowns_of(instruction)) unknown.add(place(), what);
      auto operation = isa::operation_of(instruction);
      if (!operation.ok()) {
        if (operation.status().code() != StatusCode::kUnsupported) return operation.status().in(place());
        unknown.add(place(), operation.status().message());
        isa::Operation nothing;
        nothing.opcode = instruction.opcode();
        operation = std::move(nothing);
      }
      const auto* tensor = std::get_if<isa::TensorOperation>(&operation->code);
      if (tensor != nullptr && slots_of(*tensor, operation->opcode) > kMaxSlots) {
        return make_error(StatusCode::kResourceExhausted, "chunk {} row {} keeps more than {} results under way", c,
                          row, kMaxSlots);
      }
      program.plans.push_back(tensor == nullptr ? TensorPlan{}
                                                : plan_tensor(*tensor, operation->opcode, planned_steps));
      program.operations.push_back(std::move(*operation));
      program.row_of.push_back(row);
      program.chunk_of.push_back(c);
      row += instruction.rows();
      program.instructions.push_back(instruction);
    }
  }
  program.chunk_starts.push_back(program.instructions.size());
  return program;
}

}  // namespace reef::device
