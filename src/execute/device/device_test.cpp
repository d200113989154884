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

// Programs with outputs in FIFO mode move what a descriptor left over to the beginning of scalar memory: the loads and
// stores of that loop step their own addresses.
constexpr std::string_view kMoveWords = R"(
scalar r5 = mov 100
scalar r6 = mov 0x04030201
scalar store [r5 += 3] = r6
scalar r6 = mov 0x08070605
scalar store [r5 += 1] = r6
scalar r7 = mov 100
scalar r8 = mov 4
repeat 2 {
  scalar r6 = load [r7 += 3]
  scalar nop
  scalar store [r8 += 1] = r6
}
scalar r6 = load [5]
scalar r5 = add r5, r8
scalar push r5
scalar push r6
halt code=16
end
)";

TEST(Device, StoresStepTheirAddresses) {
  const auto result = run(joined({kAskForOutput, kMoveWords}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)[0], (std::vector<std::uint8_t>{104 + 6, 0, 0, 0, 5, 6, 7, 8}));
  expect_failure(joined({kAskForOutput, "scalar r5 = mov 4096\nscalar store [r5 += 1] = r5\n", "halt code=16\nend\n"}),
                 {"the store is to word 4096"});
}

// Four pixels of two words: byte c of pixel p goes to byte p of cell c. The clip takes the second word of every pixel
// away in the last line, and no pixel. (A clip of dimension 0 would leave one pixel of two words.)
TEST(Device, AClipInTransposeModeTakesWordsAwayNotPixels) {
  std::string fills;
  for (int pixel = 0; pixel < 4; ++pixel) {
    fills += fmt::format("mesh_north tiles=0 fill fill_value=0x{0}3{0}2{0}1{0}0\n", pixel + 1);
    fills += fmt::format("  out narrow word {}: for x2 +8, for x2 +1\n", 2 * pixel);
  }
  const auto result = run(joined({kAskForOutput, fills, kFence, R"(
narrow_to_wide tiles=0 line_level=2 transpose
  in narrow word 0: for x4 +2, for x2 +1, for x2 +8, clip dim 2 to x1 short 1
  out wide line 4: for x2 +1
)",
                                  kSendLine}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)[0], (std::vector<std::uint8_t>{0x10, 0x20, 0x30, 0x40, 0x11, 0x21, 0x31, 0x41}));
}

// Two pixels of 0x00 and 0x80 (and a row of the same below) become four or more between them; the two outputs at
// `first` and `first` + `distance` are sent.
Result<std::vector<std::vector<std::uint8_t>>> run_resampling(int step, int phase, int first, int distance) {
  const std::string resample = fmt::format(R"(
mesh_north tiles=0 fill fill_value=0
  out narrow word 0: for x2 +2
mesh_south tiles=0 fill fill_value=0x80808080
  out narrow word 1: for x2 +2
tile_fence tiles=all drain=all
resample tiles=0
  loops x2, x2, x8, x1, x1, x1
  in narrow byte 0: for x2 +4, for x2 +8, rep x8
  out narrow byte 64: for x1 +4, for x8 +4
  psum wide quarter 0: rep x4, rep x8
  set accumulate_inside param_16_bit lanes_off=6 scaling_level=5 reduce_dims=0,1 cells=4 last_cells=4
  set psum_group psum_group_level=1 scale=6.103515625e-05 x.dim=2 x.step={0} x.phase={1} y.dim=3 y.step={0}
  set pixel_stride=4 row_stride=8
tile_fence tiles=all drain=all
narrow_to_wide tiles=0 line_level=1
  in narrow word {2}: for x2 +{3}
  out wide line 5: for x1 +1
)",
                                           step, phase, 16 + first, distance);
  return run(joined({kAskForOutput, resample, kSendLine}));
}

TEST(Device, ResamplesByTwoFourAndEight) {
  struct Case {
    int step, phase, first, distance;
    std::uint8_t a, b;
  };
  // Of 0x80: at 1/2, phase 1 at 1/4 and 3/4; at 1/4 and 3/4; at 1/8 and 5/8 pixel.
  const Case cases[] = {
      {64, 0, 0, 1, 0x00, 0x40}, {64, 1, 0, 1, 0x20, 0x60}, {32, 0, 1, 2, 0x20, 0x60}, {16, 0, 1, 4, 0x10, 0x50}};
  for (const Case& c : cases) {
    const auto result = run_resampling(c.step, c.phase, c.first, c.distance);
    ASSERT_TRUE(result.ok()) << c.step << ": " << result.status().message();
    EXPECT_EQ((*result)[0], (std::vector<std::uint8_t>{c.a, c.a, c.a, c.a, c.b, c.b, c.b, c.b})) << c.step;
  }
  // Nobody has seen these.
  EXPECT_FALSE(run_resampling(0, 0, 0, 1).ok());
  EXPECT_FALSE(run_resampling(48, 0, 0, 1).ok());
  EXPECT_FALSE(run_resampling(32, 1, 0, 1).ok());
}

// Six lines of tile 0 go through the loop-back buffer of the scalar core to tile 1. They are popped only when all are
// there: two halves of 192 words, as a public program has them.
TEST(Device, TheLoopBackBufferHoldsTwoHalvesOf192Words) {
  constexpr int kLines = 6;
  std::string lines;
  for (int i = 0; i < kLines; ++i) {
    lines += fmt::format(R"(
mesh_north tiles=0 fill fill_value=0x{0:02x}{0:02x}{0:02x}{0:02x}
  out narrow word 0: for x64 +1
tile_fence tiles=all drain=all
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x64 +1
  out wide line {1}: for x1 +1
tile_fence tiles=all drain=all
)",
                         i + 1, 20 + i);
  }
  constexpr std::string_view kLoop = R"(
pop source=loopback to_tiles=1 line_words=64
  in buffer unit 0: for x192 +1, rep x2, swap +192 each level 1
  wait RING_OUTFEED >= 384 + 0*pass(level 2)
outfeed line_words=64 target=buffer
  out buffer unit 0: for x192 +1, rep x2, swap +192 each level 1
  wait LOOPBACK_POP >= -383 + 1*pass(level 0)
  signal RING_OUTFEED each level 0
ring_send tiles=0 channel=a to_scalar
  in wide line 20: for x6 +1
ring_receive_a tiles=1
  out wide line 30: for x6 +1
tile_fence tiles=all drain=all
)";
  for (int i = 0; i < kLines; ++i) {
    const std::string send = fmt::format(R"(
outfeed line_words=64 target=host
  out buffer unit 0: for x1 +1
ring_send tiles=1 channel=a to_scalar
  in wide line {}: for x1 +1
halt code=16
end
)",
                                         30 + i);
    const auto result = run(joined({kAskForOutput, lines, kLoop, send}));
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ((*result)[0], std::vector<std::uint8_t>(8, static_cast<std::uint8_t>(i + 1))) << i;
  }
}

// Two instructions with a double buffer pack a line each, with a fence between them. Line 5 holds the second one's
// words where the fence has restarted the buffers, the first one's where they went on to line 6.
TEST(Device, FencesRestartTheDoubleBuffersOfTheUnitsTheyDrain) {
  const auto fill_and_pack = [](int byte) {
    return fmt::format(R"(
mesh_south tiles=0 fill fill_value=0x{0:02x}{0:02x}{0:02x}{0:02x}
  out narrow word 0: for x2 +1
  signal MESH_N_IN each level 1
narrow_to_wide tiles=0 line_level=1
  in narrow word 0: for x2 +1
  out wide line 5: for x1 +1, swap +1 each level 0
  wait MESH_N_IN >= {1} + 0*pass(level 1) on in
  signal NARROW_TO_WIDE each level 0
)",
                       byte, byte);
  };
  // Holds the second fill until the first line is packed, and restarts nothing that is looked at.
  constexpr std::string_view kHold = "tile_fence tiles=0 drain=mesh_south\n";
  const auto line_5_after = [&](std::string_view drain) {
    const std::string fence = fmt::format("tile_fence tiles=0 drain={}\n", drain);
    const auto result = run(joined({kAskForOutput, "tile_fence tiles=all drain=all reset=all\n", fill_and_pack(1),
                                    kHold, fence, fill_and_pack(2), kSendLine}));
    EXPECT_TRUE(result.ok()) << drain << ": " << result.status().message();
    return result.ok() ? (*result)[0][0] : 0;
  };
  EXPECT_EQ(line_5_after("all"), 2);
  EXPECT_EQ(line_5_after("narrow_to_wide"), 2);
  EXPECT_EQ(line_5_after("tensor,narrow_to_wide"), 2);
  EXPECT_EQ(line_5_after("mesh_south,mesh_west,mesh_north,mesh_east"), 1);
  EXPECT_EQ(line_5_after("tensor"), 1);
}

TEST(Device, EverythingUnknownIsListedWhenAPackageIsLoaded) {
  const std::string text = joined({kAskForOutput, R"(
scalar set store=5
scalar set store=5
scalar set alu=29
scalar set math=7
if p1 tile_fence tiles=all drain=all
)",
                                   kFill, kToLine, kSendLine});
  const auto loaded = LoadedPackage::load(testing::stand_alone_package(text));
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), StatusCode::kUnsupported);
  for (const std::string_view part :
       {"4 things", "row 8 (scalar): an unknown store 5 (2 times)",
        "row 10 (scalar): an unknown arithmetic operation 29", "row 11 (scalar): an unknown math function 7",
        "a predicate on an instruction that is no scalar bundle", "attach the file",
        "reef inspect --unknown"}) {
    EXPECT_NE(loaded.status().message().find(part), std::string::npos) << part << " is not in\n"
                                                                       << loaded.status().message();
  }
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
