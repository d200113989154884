// SPDX-License-Identifier: Apache-2.0
// Small programs written by hand: what they compute, and what the virtual chip says when they are wrong.
#include "execute/device/device.h"

#include <gtest/gtest.h>

#include "handwritten_packages.h"

namespace reef::device {
namespace {

using testing::joined;
using testing::kFence;
using testing::kMultiplyWords;

constexpr std::string_view kAskForOutput = testing::kAskForEightBytes, kToLine = testing::kPackLine;
const std::string kFill = joined({testing::kFillTwoWords, kFence});
const std::string kSendLine = joined({kFence, testing::kSendLineAndEnd});

Result<std::vector<std::vector<std::uint8_t>>> run(const std::string& text, const Options& options = {},
                                                   std::int32_t z_dim = 8) {
  auto loaded = LoadedPackage::load(testing::stand_alone_package(text, z_dim));
  if (!loaded.ok()) return loaded.status();
  Device device(options);
  return device.run(*loaded, {});
}

void expect_failure(const std::string& text, std::initializer_list<std::string_view> parts,
                    const Options& options = {}) {
  const auto result = run(text, options);
  ASSERT_FALSE(result.ok());
  for (const std::string_view part : parts) {
    EXPECT_NE(result.status().message().find(part), std::string::npos) << part << " is not in\n"
                                                                       << result.status().message();
  }
}

TEST(Device, MovesConstantsToTheHost) {
  const auto result = run(joined({kAskForOutput, kFill, kToLine, kSendLine}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)[0], (std::vector<std::uint8_t>{1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(Device, MultipliesAddsScalesAndRounds) {
  // Word 0 times an identity line: (x - 1) * 1 * 0.5 rounded half to even, plus 10.
  const auto result = run(joined({kAskForOutput, kFill, R"(
mesh_south tiles=0 fill fill_value=0x00000001
  out narrow word 8: for x1 +1
mesh_south tiles=0 fill fill_value=0x00000100
  out narrow word 9: for x1 +1
mesh_south tiles=0 fill fill_value=0x00010000
  out narrow word 10: for x1 +1
mesh_south tiles=0 fill fill_value=0x01000000
  out narrow word 11: for x1 +1
tile_fence tiles=all drain=all
narrow_to_wide tiles=0 line_level=1
  in narrow word 8: for x4 +1
  out wide line 7: for x1 +1
tile_fence tiles=all drain=all
)",
                                  kMultiplyWords, kFence, kToLine, kSendLine}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  // 0, 0.5 -> 0, 1, 1.5 -> 2
  EXPECT_EQ((*result)[0], (std::vector<std::uint8_t>{10, 10, 11, 12, 10, 10, 11, 12}));
}

// Much work for all tiles at once: word 0 times an identity line, 4096 times.
std::string work_for_all_tiles(std::string_view last_byte) {
  return joined({R"(
mesh_north tiles=all fill fill_value=0x04030201
  out narrow word 0: for x2 +1
mesh_south tiles=all fill fill_value=0x00000001
  out narrow word 8: for x1 +1
mesh_south tiles=all fill fill_value=0x00000100
  out narrow word 9: for x1 +1
mesh_south tiles=all fill fill_value=0x00010000
  out narrow word 10: for x1 +1
mesh_south tiles=all fill fill_value=0x01000000
  out narrow word 11: for x1 +1
tile_fence tiles=all drain=all
narrow_to_wide tiles=all line_level=1
  in narrow word 8: for x4 +1
  out wide line 7: for x1 +1
tile_fence tiles=all drain=all
multiply_add tiles=all
  loops x1, x4096
  in narrow byte 0: for x1 +4, rep x4096
  out narrow byte )",
                 last_byte, R"(: for x1 +4, for x4096 +4
  param wide quarter 28: for x1 +4, rep x4096
  psum wide quarter 0: rep x1, rep x4096
  set psum_group_level=1 psum_group accumulate_inside cells=4 last_cells=4 reduce_dims=0 in_zero=1 out_zero=10 scale=2
  set max=255 min=-10
tile_fence tiles=all drain=all
)"});
}

TEST(Device, ThreadsChangeNothing) {
  const std::string sends_last_result = R"(
narrow_to_wide tiles=0 line_level=1
  in narrow word 4350: for x2 +1
  out wide line 5: for x1 +1
)";
  for (const int threads : {1, 2, 16, 100}) {
    Options options;
    options.threads = threads;
    const auto result = run(joined({kAskForOutput, work_for_all_tiles("1024"), sends_last_result, kSendLine}), options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ((*result)[0], (std::vector<std::uint8_t>{10, 12, 14, 16, 10, 12, 14, 16})) << threads << " threads";
    // All tiles write beyond their memory; the first of them is named.
    const auto failed =
        run(joined({kAskForOutput, work_for_all_tiles("196592"), sends_last_result, kSendLine}), options);
    ASSERT_FALSE(failed.ok());
    EXPECT_NE(failed.status().message().find("of tile 0: writes byte 196608 of narrow memory"), std::string::npos)
        << failed.status().message();
    // The limit is looked at in the order of tiles.
    options.max_cycles = 10000;
    const auto late = run(joined({kAskForOutput, work_for_all_tiles("1024"), sends_last_result, kSendLine}), options);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.status().code(), StatusCode::kResourceExhausted) << late.status().message();
  }
}

// With a time limit a tensor unit stops every million steps, so that someone may look at the clock. An instruction that
// signals nothing until then, such as a convolution with a kernel of 40 x 40, must go on all the same.
TEST(Device, LongInstructionsEndUnderATimeLimitToo) {
  std::string text = work_for_all_tiles("1024");
  const auto replace = [&](std::string_view from, std::string_view to) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("multiply_add tiles=all", "multiply_add tiles=0");
  replace("loops x1, x4096", "loops x300, x4096");
  replace("for x1 +4, rep x4096", "rep x300, rep x4096");
  replace("for x1 +4, rep x4096", "rep x300, rep x4096");
  replace("rep x1, rep x4096", "rep x300, rep x4096");
  const std::string program = joined({kAskForOutput, text, R"(
narrow_to_wide tiles=0 line_level=1
  in narrow word 4350: for x2 +1
  out wide line 5: for x1 +1
)",
                                      kSendLine});
  Options options;
  const auto unlimited = run(program, options);
  ASSERT_TRUE(unlimited.ok()) << unlimited.status().message();
  options.budget = Budget({.seconds = 300});
  const auto limited = run(program, options);
  ASSERT_TRUE(limited.ok()) << limited.status().message();
  EXPECT_EQ(*limited, *unlimited);
}

TEST(Device, AStandstillNamesWhoWaitsForWhat) {
  expect_failure(joined({kAskForOutput, kFill, R"(
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x2 +1
  out wide line 5: for x1 +1
  wait RING_WRITE >= 1 + 1*pass(level 0) on out
)",
                         kSendLine}),
                 {"stands still", "tile 0", "narrow_to_wide", "RING_WRITE is 0, 1 is needed", "ring_send"});
}

TEST(Device, AStandstillOfTheScalarCoreNamesTilesAndUnits) {
  expect_failure(joined({kAskForOutput, "scalar_fence tiles=all await_notify notify_tiles=2,5\n", kSendLine}),
                 {"the scalar core waits", "scalar_fence", "no tile_fence of tiles 2,5 has notified"});
  expect_failure(joined({kAskForOutput, "outfeed line_words=64 target=host\n  out buffer unit 0: for x1 +1\n",
                         "scalar_fence tiles=all drain=outfeed\n", "halt code=16\nend\n"}),
                 {"outfeed is not idle", "outfeed waits at", "no data arrives"});
}

TEST(Device, CountersThatOverflowAreNamed) {
  // 40,000 words counted one by one, before somebody looks for the first of them.
  expect_failure(joined({kAskForOutput, R"(
mesh_south tiles=0 fill fill_value=0x1
  out narrow word 0: for x40000 +1
  signal MESH_N_IN each level 0
tile_fence tiles=all drain=all
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x2 +1
  out wide line 5: for x1 +1
  wait MESH_N_IN >= 1 + 0*pass(level 1) on in
)",
                         kSendLine}),
                 {"stands still", "MESH_N_IN has overflowed: 40000 signals"});
}

TEST(Device, AddressesBeyondAMemoryAreErrors) {
  expect_failure(joined({kAskForOutput, "mesh_north tiles=3 fill fill_value=0x1\n  out narrow word 49152: for x1 +1\n",
                         kSendLine}),
                 {"word 49152", "of tile 3", "mesh_north"});
  expect_failure(joined({kAskForOutput, kFill,
                         "narrow_to_wide tiles=0 line_level=1\n  in narrow word 0: for x2 +1\n"
                         "  out wide line 2080: for x1 +1\n",
                         kSendLine}),
                 {"line 2080", "of tile 0"});
}

TEST(Device, AnOutputThatNothingWroteIsAnError) {
  expect_failure(joined({kAskForOutput, kToLine, kSendLine}), {"byte 0 of output 'output'", "nothing wrote"});
  // Only the first word is filled: an output of 4 bytes is fine, one of 8 is not.
  const std::string half = joined({kAskForOutput, R"(
mesh_north tiles=0 fill fill_value=0x04030201
  out narrow word 0: for x1 +1
tile_fence tiles=all drain=all
)",
                                   kToLine, kSendLine});
  EXPECT_TRUE(run(half, {}, 4).ok());
  expect_failure(half, {"byte 4 of output"});
}

TEST(Device, WhatIsLeftOverIsAnError) {
  expect_failure(joined({kAskForOutput, kFill, kToLine, R"(
tile_fence tiles=all drain=all
ring_send tiles=0 channel=a to_tiles=2
  in wide line 5: for x1 +1
)",
                         kSendLine}),
                 {"1 lines are left on ring channel A for tile 2"});
  expect_failure(joined({kAskForOutput, "halt code=16\nend\n"}), {"8 bytes of output were promised and not sent"});
}

TEST(Device, EndlessLoopsEnd) {
  Options options;
  options.max_cycles = 10000;
  expect_failure(joined({kAskForOutput, "L1:\nscalar r5 = mov 1\nbranch to L1\n", kSendLine}), {"10000 cycles"},
                 options);
}

TEST(Device, TransfersMustHitABuffer) {
  expect_failure(R"(
start
scalar r0 = mov 0
scalar r1 = mov 0
scalar r1 = mov 7
scalar dma.address_lo = r0
scalar r2 = mov 8 | dma.address_hi = r1
scalar r3 = mov 3 | dma.bytes = r2
scalar dma.tag = r3
scalar dma.issue
halt code=16
end
)",
                 {"the host has no buffer"});
}

}  // namespace
}  // namespace reef::device
