// SPDX-License-Identifier: Apache-2.0
#include "compiler/trial_program.h"

#include <string>

#include <fmt/format.h>

#include "isa/assembler.h"
#include "isa/program.h"

namespace reef::compiler {
namespace {

constexpr std::string_view kBegin = R"(start
tile_fence tiles=all reset=all drain=all notify
scalar_fence tiles=all reset=all await_notify notify_tiles=all drain=all
)";
constexpr std::string_view kWaitForAll = R"(
tile_fence tiles=all drain=all notify
scalar_fence tiles=all await_notify notify_tiles=all drain=pop,outfeed
)";
constexpr std::string_view kEnd = "halt code=16\nend\n";
constexpr int kOutputTag = 3, kInterruptTag = 4;
constexpr int kRowBits = 128, kImmediateBit = 70;  // of a `mov` with a number

// Asks the host for a transfer; the halves of the address belong into the first two rows.
std::string request(int bytes, int tag) {
  return fmt::format(R"(
scalar r0 = mov 0
scalar r1 = mov 0
scalar dma.address_lo = r0
scalar r2 = mov {} | dma.address_hi = r1
scalar r3 = mov {} | dma.bytes = r2
scalar dma.tag = r3
scalar dma.issue
)",
                     bytes, tag);
}

Result<int> rows_of(std::string_view text) {
  REEF_ASSIGN_OR_RETURN(const isa::Program program, isa::assemble(text));
  int rows = 0;
  for (const isa::Instruction& instruction : program) rows += instruction.rows();
  return rows;
}

darwinn::DescriptorHint output_transfer(int bytes) {
  darwinn::DescriptorHint transfer;
  transfer.use->base = darwinn::BaseAddress::kOutput;
  transfer.use->name = "output";
  transfer.size_bytes = bytes;
  return transfer;
}

}  // namespace

Result<darwinn::Package> trial_package(std::string_view text, int output_bytes, int idle_rows) {
  std::string whole = std::string(kBegin) + request(output_bytes, kOutputTag);
  for (int i = 0; i < idle_rows; ++i) whole += "scalar nop\n";
  whole += fmt::format("{}{}{}{}", text, kWaitForAll, request(0, kInterruptTag), kEnd);
  REEF_ASSIGN_OR_RETURN(const isa::Program program, isa::assemble(whole));
  REEF_ASSIGN_OR_RETURN(const int first_row, rows_of(kBegin));
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kStandAlone);
  darwinn::InstructionChunk& chunk = executable.instruction_chunks.emplace_back();
  chunk.bitstream = Bytes(isa::encode(program));
  for (const auto half : {darwinn::AddressHalf::kLower, darwinn::AddressHalf::kUpper}) {
    darwinn::FieldOffset& field = chunk.field_offsets.emplace_back();
    *field.use = *output_transfer(0).use;
    field.use->half = half;
    field.bit_offset = (first_row + (half == darwinn::AddressHalf::kUpper ? 1 : 0)) * kRowBits + kImmediateBit;
  }
  executable.dma_hints.emplace();
  using darwinn::Direction;
  executable.dma_hints->hints = {{.hint = darwinn::InstructionHint{}},
                                 {.hint = output_transfer(output_bytes), .direction = Direction::kToHost},
                                 {.hint = darwinn::InterruptHint{}, .direction = Direction::kToHost}};
  darwinn::Layer& output = executable.output_layers.emplace_back();
  output.name = "output";
  output.size_bytes = output.z_dim = output_bytes;
  output.y_dim = output.x_dim = 1;
  output.info = darwinn::OutputInfo{};
  darwinn::Package package;
  package.executables.push_back(std::move(executable));
  return package;
}

}  // namespace reef::compiler
