// SPDX-License-Identifier: Apache-2.0
// A small package with everything that a driver deals with: cached parameters, an input with padding, an output, signed
// numbers, interrupts and a complete list of transfers. What it computes: the input, then its parameters' first line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/darwinn/sample_packages.h"
#include "handwritten_packages.h"

namespace reef::testing {

inline constexpr std::int32_t kEchoInput = 250, kEchoOutput = 512;  // elements; the input is padded to a line of 256
inline constexpr int kParameterLine = 5;                            // first of tile 0

inline constexpr std::string_view kBeginProgram = R"(
start
tile_fence tiles=all reset=all drain=all notify
scalar_fence tiles=all reset=all await_notify notify_tiles=all drain=all
)";
inline constexpr std::string_view kWaitForTiles = R"(
tile_fence tiles=all drain=all notify
scalar_fence tiles=all await_notify notify_tiles=all drain=pop,outfeed
)";
inline constexpr std::string_view kEndProgram = "halt code=16\nend\n";

// Seven rows; the address belongs into the first two.
inline std::string ask(int bytes, int tag) {
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

inline void add_address(darwinn::Executable& executable, darwinn::BaseAddress base, std::string_view name, int row,
                        std::size_t chunk = 0) {
  for (const auto half : {darwinn::AddressHalf::kLower, darwinn::AddressHalf::kUpper}) {
    const int at = row + (half == darwinn::AddressHalf::kUpper ? 1 : 0);
    executable.instruction_chunks[chunk].field_offsets.push_back(
        darwinn::testing::make_field_offset(base, std::string(name), half, at * 128 + 70));
  }
}

inline darwinn::DmaHint instruction_hint(std::int32_t chunk = 0) {
  darwinn::InstructionHint which;
  which.chunk_index = chunk;
  darwinn::DmaHint hint;
  hint.hint = which;
  return hint;
}
inline darwinn::DmaHint interrupt_hint() {
  darwinn::DmaHint hint;
  hint.hint = darwinn::InterruptHint{};
  hint.direction = darwinn::Direction::kToHost;
  return hint;
}

inline std::vector<std::uint8_t> parameter_bytes(int lines, unsigned seed) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(lines) * 256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8) * 13 + seed);
  return bytes;
}

// At most 512 lines: more do not fit into the FIFO behind the link at once, and the program does not wait for room.
inline darwinn::Executable echo_caching(std::uint64_t token, int lines, unsigned seed) {
  const int bytes = lines * 256, units = lines * 4;
  const std::string text = std::string(kBeginProgram) + ask(bytes, 2) +
                           fmt::format(R"(
infeed buffer=parameters
  out buffer unit 0: for x{0} +1
  signal PARAMETER_INFEED each level 0
ring_receive_a tiles=0
  out wide line {1}: for x{2} +1
pop source=parameters to_tiles=0 line_words=64
  in buffer unit 0: for x{0} +1
  wait PARAMETER_INFEED >= 1 + 1*pass(level 0)
  signal PARAMETER_POP each level 0
)",
                                       units, kParameterLine, lines) +
                           std::string(kWaitForTiles) + ask(0, 4) + std::string(kEndProgram);
  darwinn::Executable program = assembled(text, darwinn::ExecutableType::kParameterCaching);
  add_address(program, darwinn::BaseAddress::kParameter, "", 4);
  program.parameters = Bytes(parameter_bytes(lines, seed));
  program.parameter_caching_token = token;
  program.dma_hints.emplace();
  program.dma_hints->hints = {instruction_hint(),
                              darwinn::testing::make_descriptor_hint(darwinn::BaseAddress::kParameter, "",
                                                                     darwinn::Direction::kToDevice, bytes),
                              interrupt_hint()};
  return program;
}

inline darwinn::Layer echo_layer(std::string_view name, std::int32_t elements, std::int32_t bytes, bool is_input) {
  darwinn::Layer layer;
  layer.name = name;
  layer.size_bytes = bytes;
  layer.y_dim = layer.x_dim = 1;
  layer.z_dim = elements;
  layer.data_type = darwinn::DataType::kInt8;
  if (is_input) {
    layer.info = darwinn::InputInfo{};
  } else {
    layer.info = darwinn::OutputInfo{};
  }
  return layer;
}

// `chunks`: 1 or 2. With two, the second begins when the input has arrived.
inline darwinn::Executable echo_execution(std::uint64_t token, int chunks = 1) {
  const std::string first = std::string(kBeginProgram) + ask(256, 1) + R"(
infeed buffer=activations
  out buffer unit 0: for x32 +1
  signal AVDATA_INFEED each level 0
ring_receive_a tiles=0
  out wide line 1: for x1 +1
pop source=activations to_tiles=0 line_words=64
  in buffer unit 0: for x32 +1
  wait AVDATA_INFEED >= 1 + 1*pass(level 0)
  signal AVDATA_POP each level 0
)" + std::string(kWaitForTiles);
  const std::string second = fmt::format(R"(
outfeed line_words=64 target=host
  out buffer unit 0: for x64 +1
ring_send tiles=0 channel=a to_scalar
  in wide line 1: for x1 +1
ring_send tiles=0 channel=a to_scalar
  in wide line {}: for x1 +1
)",
                                         kParameterLine) +
                             std::string(kWaitForTiles) + ask(0, 4) + std::string(kEndProgram);
  using darwinn::testing::make_descriptor_hint;
  const auto input = make_descriptor_hint(darwinn::BaseAddress::kInput, "input", darwinn::Direction::kToDevice, 256);
  const auto output =
      make_descriptor_hint(darwinn::BaseAddress::kOutput, "output", darwinn::Direction::kToHost, kEchoOutput);
  const auto type = darwinn::ExecutableType::kExecutionOnly;
  darwinn::Executable program;
  const auto rows = [](const std::string& text) {
    const auto assembled_text = isa::assemble(text);
    int count = 0;
    for (const isa::Instruction& instruction : *assembled_text) count += instruction.rows();
    return count;
  };
  if (chunks == 1) {
    // The output's address belongs into the rows behind the first half.
    program = assembled(first + ask(kEchoOutput, 3) + second, type);
    add_address(program, darwinn::BaseAddress::kOutput, "output", rows(first + "end\n") - 1);
  } else {
    program = assembled(first + std::string(kEndProgram), type);
    const darwinn::Executable rest = assembled("start\n" + ask(kEchoOutput, 3) + second, type);
    program.instruction_chunks.push_back(rest.instruction_chunks[0]);
    add_address(program, darwinn::BaseAddress::kOutput, "output", 1, 1);
  }
  add_address(program, darwinn::BaseAddress::kInput, "input", 4);
  program.dma_hints.emplace();
  program.dma_hints->hints = {instruction_hint(), input};
  if (chunks == 2) program.dma_hints->hints.push_back(instruction_hint(1));
  program.dma_hints->hints.push_back(output);
  program.dma_hints->hints.push_back(interrupt_hint());
  program.input_layers = {echo_layer("input", kEchoInput, 256, true)};
  program.output_layers = {echo_layer("output", kEchoOutput, kEchoOutput, false)};
  program.parameter_caching_token = token;
  return program;
}

inline darwinn::Package echo_package(std::uint64_t token = 7, int lines = 4, unsigned seed = 1, int chunks = 1) {
  darwinn::Package package;
  package.executables = {echo_execution(token, chunks), echo_caching(token, lines, seed)};
  return package;
}

inline std::vector<std::uint8_t> echo_input(unsigned seed) {
  std::vector<std::uint8_t> bytes(kEchoInput);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 11 + seed);
  return bytes;
}

// What the package returns: the chip holds numbers with their sign bit flipped, parameters it does not flip.
inline std::vector<std::uint8_t> echo_output(const std::vector<std::uint8_t>& input, unsigned parameter_seed) {
  std::vector<std::uint8_t> output = input;
  output.resize(256, 0x80);
  const std::vector<std::uint8_t> parameters = parameter_bytes(1, parameter_seed);
  for (const std::uint8_t byte : parameters) output.push_back(byte ^ 0x80);
  return output;
}

}  // namespace reef::testing
