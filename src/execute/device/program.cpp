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

Status append_chunk(Program& program, std::span<const std::uint8_t> bitstream, isa::UnknownList& unknown) {
  const std::size_t c = program.chunk_starts.size() - 1;
  auto chunk = isa::decode(bitstream);
  if (!chunk.ok()) return chunk.status().in(fmt::format("chunk {}", c));
  std::int32_t row = 0;
  for (isa::Instruction& instruction : *chunk) {
    const auto place = [&] {
      const bool is_caching = program.type == darwinn::ExecutableType::kParameterCaching;
      return fmt::format("{}chunk {} row {} ({})", is_caching ? "parameter caching " : "", c, row,
                         isa::info(instruction.opcode()).mnemonic);
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
      return make_error(StatusCode::kResourceExhausted, "chunk {} row {} keeps more than {} results under way", c, row,
                        kMaxSlots);
    }
    program.plans.push_back(tensor == nullptr ? TensorPlan{}
                                              : plan_tensor(*tensor, operation->opcode, program.steps_to_plan));
    program.operations.push_back(std::move(*operation));
    program.row_of.push_back(row);
    program.chunk_of.push_back(c);
    row += instruction.rows();
    program.instructions.push_back(instruction);
  }
  program.chunk_starts.push_back(program.instructions.size());
  return ok_status();
}

Result<Program> decode_program(const darwinn::Executable& executable, isa::UnknownList& unknown) {
  Program program;
  program.type = executable.type;
  for (const darwinn::InstructionChunk& chunk : executable.instruction_chunks) {
    REEF_RETURN_IF_ERROR(append_chunk(program, chunk.bitstream.span(), unknown));
  }
  return program;
}

}  // namespace reef::device
