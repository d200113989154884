// SPDX-License-Identifier: Apache-2.0
// Small packages made of programs in assembly, so that tests of the virtual device need no compiled file.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "formats/darwinn/package.h"
#include "isa/assembler.h"
#include "isa/program.h"

namespace reef::testing {

// Begins a program that asks the host to take 8 bytes. The driver writes the address into rows 1 and 2.
inline constexpr std::string_view kAskForEightBytes = R"(
start
scalar r0 = mov 0
scalar r1 = mov 0
scalar dma.address_lo = r0
scalar r2 = mov 8 | dma.address_hi = r1
scalar r3 = mov 3 | dma.bytes = r2
scalar dma.tag = r3
scalar dma.issue
)";

inline darwinn::Executable assembled(const std::string& text, darwinn::ExecutableType type) {
  const auto program = isa::assemble(text);
  EXPECT_TRUE(program.ok()) << program.status().message();
  darwinn::Executable executable = darwinn::new_executable(type);
  darwinn::InstructionChunk& chunk = executable.instruction_chunks.emplace_back();
  if (program.ok()) chunk.bitstream = Bytes(isa::encode(*program));
  return executable;
}

// With one output of 8 bytes, for a program that begins with kAskForEightBytes.
inline darwinn::Executable with_output(darwinn::Executable executable) {
  for (const auto half : {darwinn::AddressHalf::kLower, darwinn::AddressHalf::kUpper}) {
    darwinn::FieldOffset& field = executable.instruction_chunks[0].field_offsets.emplace_back();
    field.use->base = darwinn::BaseAddress::kOutput;
    field.use->name = "output";
    field.use->half = half;
    field.bit_offset = (half == darwinn::AddressHalf::kLower ? 1 : 2) * 128 + 70;
  }
  darwinn::Layer& output = executable.output_layers.emplace_back();
  output.name = "output";
  output.size_bytes = output.z_dim = 8;
  output.y_dim = output.x_dim = 1;
  output.info = darwinn::OutputInfo{};
  return executable;
}

inline darwinn::Package stand_alone_package(const std::string& text) {
  darwinn::Package package;
  package.executables.push_back(with_output(assembled(text, darwinn::ExecutableType::kStandAlone)));
  return package;
}

// Caches a line of tile 0 that begins with `byte` eight times; execution sends it to the host.
inline darwinn::Package caching_package(std::uint64_t token, int line, int byte) {
  const std::string fill = fmt::format(R"(
start
mesh_north tiles=0 fill fill_value=0x{0:02x}{0:02x}{0:02x}{0:02x}
  out narrow word 0: for x2 +1
tile_fence tiles=all drain=all
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x2 +1
  out wide line {1}: for x1 +1
tile_fence tiles=all drain=all
halt code=16
end
)",
                                       byte, line);
  const std::string send = std::string(kAskForEightBytes) + fmt::format(R"(
outfeed line_words=64 target=host
  out buffer unit 0: for x1 +1
ring_send tiles=0 channel=a to_scalar
  in wide line {}: for x1 +1
halt code=16
end
)",
                                                                        line);
  darwinn::Package package;
  package.executables.push_back(with_output(assembled(send, darwinn::ExecutableType::kExecutionOnly)));
  package.executables.push_back(assembled(fill, darwinn::ExecutableType::kParameterCaching));
  for (darwinn::Executable& executable : package.executables) executable.parameter_caching_token = token;
  return package;
}

}  // namespace reef::testing
