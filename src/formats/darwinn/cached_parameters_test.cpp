// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/cached_parameters.h"

#include <gtest/gtest.h>

#include "isa/assembler.h"

namespace reef::darwinn {
namespace {

Executable caching_program(std::string_view text, std::size_t parameter_bytes) {
  const auto program = isa::assemble(text);
  EXPECT_TRUE(program.ok()) << program.status().message();
  Executable executable = new_executable(ExecutableType::kParameterCaching);
  if (program.ok()) executable.instruction_chunks.emplace_back().bitstream = Bytes(isa::encode(*program));
  executable.parameters = Bytes(std::vector<std::uint8_t>(parameter_bytes));
  return executable;
}

TEST(CachedParameters, FollowsPopsToTheLinesThatAreReceived) {
  // 64 bytes per line for tile 3; then 256 per line for tile 1, the second line only half full.
  const auto pieces = find_cached_pieces(caching_program(R"(
ring_receive_a tiles=3
  out wide line 5: for x2 +1
pop source=parameters to_tiles=3 line_words=16
  in buffer unit 0: for x2 +1
ring_receive_a tiles=1
  out wide line 100: for x2 +1
pop source=parameters to_tiles=1 line_words=64
  in buffer unit 2: for x6 +1
)",
                                                         512));
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  const std::vector<CachedPiece> expected = {{0, 128, 3, 5, 2, 64}, {128, 384, 1, 100, 2, 256}};
  EXPECT_EQ(*pieces, expected);
  ASSERT_NE(piece_at(*pieces, 1, 101), nullptr);
  EXPECT_EQ(piece_at(*pieces, 1, 101)->offset, 128u);
  EXPECT_EQ(piece_at(*pieces, 1, 102), nullptr);
  EXPECT_EQ(piece_at(*pieces, 2, 100), nullptr);
}

TEST(CachedParameters, PutsHeaderLinesWhereTheyGo) {
  const auto pieces = find_cached_pieces(caching_program(R"(
ring_receive_a tiles=0 header header_level=1 header_first=20 header_lines=1 header_last=20 header_step=1
  out wide line 1: for x2 +1
pop source=parameters to_tiles=0 line_words=16
  in buffer unit 0: for x3 +1
)",
                                                         192));
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  const std::vector<CachedPiece> expected = {{0, 64, 0, 20, 1, 64}, {64, 128, 0, 1, 2, 64}};
  EXPECT_EQ(*pieces, expected);
}

TEST(CachedParameters, OnePieceForEachTileThatListens) {
  const auto pieces = find_cached_pieces(caching_program(R"(
ring_receive_a tiles=0,2
  out wide line 7: for x1 +1
pop source=parameters to_tiles=0,2 line_words=16
  in buffer unit 0: for x1 +1
)",
                                                         64));
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  const std::vector<CachedPiece> expected = {{0, 64, 0, 7, 1, 64}, {0, 64, 2, 7, 1, 64}};
  EXPECT_EQ(*pieces, expected);
}

TEST(CachedParameters, RefusesProgramsThatTakeMoreThanThereIs) {
  constexpr std::string_view kPop = R"(
ring_receive_a tiles=0
  out wide line 7: for x1 +1
pop source=parameters to_tiles=0 line_words=16
  in buffer unit 0: for x2 +1
)";
  const auto too_few_bytes = find_cached_pieces(caching_program(kPop, 64));
  ASSERT_FALSE(too_few_bytes.ok());
  EXPECT_NE(too_few_bytes.status().message().find("64 bytes"), std::string::npos);
  const auto too_few_lines = find_cached_pieces(caching_program(kPop, 128));
  ASSERT_FALSE(too_few_lines.ok());
  EXPECT_NE(too_few_lines.status().message().find("tile 0"), std::string::npos);
}

}  // namespace
}  // namespace reef::darwinn
