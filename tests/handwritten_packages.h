// SPDX-License-Identifier: Apache-2.0
// Small packages made of programs in assembly, so that tests of the virtual device need no compiled file.
#pragma once

#include <initializer_list>
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

// Two words of tile 0 with the bytes 1, 2, 3, 4.
inline constexpr std::string_view kFillTwoWords = R"(
mesh_north tiles=0 fill fill_value=0x04030201
  out narrow word 0: for x2 +1
)";
inline constexpr std::string_view kFence = "tile_fence tiles=all drain=all\n";
// These words to line 5.
inline constexpr std::string_view kPackLine = R"(
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x2 +1
  out wide line 5: for x1 +1
)";
// These words times line 7: (x - 1) * w * 0.5 rounded half to even, plus 10.
inline constexpr std::string_view kMultiplyWords = R"(
multiply_add tiles=0
  loops x1, x2
  in narrow byte 0: for x1 +4, for x2 +4
  out narrow byte 0: for x1 +4, for x2 +4
  param wide quarter 28: for x1 +4, rep x2
  psum wide quarter 0: rep x1, rep x2
  set psum_group_level=1 psum_group accumulate_inside cells=4 last_cells=4 reduce_dims=0 in_zero=1 out_zero=10 scale=0.5
  set max=255 min=-10
)";
// Line 5 of tile 0 to the host, and the end.
inline constexpr std::string_view kSendLineAndEnd = R"(
outfeed line_words=64 target=host
  out buffer unit 0: for x1 +1
ring_send tiles=0 channel=a to_scalar
  in wide line 5: for x1 +1
halt code=16
end
)";

inline std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

inline darwinn::Executable assembled(const std::string& text, darwinn::ExecutableType type) {
  const auto program = isa::assemble(text);
  EXPECT_TRUE(program.ok()) << program.status().message();
  darwinn::Executable executable = darwinn::new_executable(type);
  darwinn::InstructionChunk& chunk = executable.instruction_chunks.emplace_back();
  if (program.ok()) chunk.bitstream = Bytes(isa::encode(*program));
  return executable;
}

// With one output of 8 bytes, for a program that begins with kAskForEightBytes.
inline darwinn::Executable with_output(darwinn::Executable executable, std::int32_t z_dim = 8) {
  for (const auto half : {darwinn::AddressHalf::kLower, darwinn::AddressHalf::kUpper}) {
    darwinn::FieldOffset& field = executable.instruction_chunks[0].field_offsets.emplace_back();
    field.use->base = darwinn::BaseAddress::kOutput;
    field.use->name = "output";
    field.use->half = half;
    field.bit_offset = (half == darwinn::AddressHalf::kLower ? 1 : 2) * 128 + 70;
  }
  darwinn::Layer& output = executable.output_layers.emplace_back();
  output.name = "output";
  output.size_bytes = 8;
  output.z_dim = z_dim;
  output.y_dim = output.x_dim = 1;
  output.info = darwinn::OutputInfo{};
  return executable;
}

inline darwinn::Package stand_alone_package(const std::string& text, std::int32_t z_dim = 8) {
  darwinn::Package package;
  package.executables.push_back(with_output(assembled(text, darwinn::ExecutableType::kStandAlone), z_dim));
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
