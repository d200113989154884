// SPDX-License-Identifier: Apache-2.0
// Small programs written by hand, one for each rule that other public files showed (docs/hardware/public_files.md), and
// what is said of programs that no rule covers.
#include "execute/device/device.h"

#include <gtest/gtest.h>

#include "handwritten_packages.h"

namespace reef::device {
namespace {

using testing::joined;
using testing::kFence;

constexpr std::string_view kAskForOutput = testing::kAskForEightBytes, kToLine = testing::kPackLine;
const std::string kFill = joined({testing::kFillTwoWords, kFence});
const std::string kSendLine = joined({kFence, testing::kSendLineAndEnd});

Result<std::vector<std::vector<std::uint8_t>>> run(const std::string& text) {
  auto loaded = LoadedPackage::load(testing::stand_alone_package(text));
  if (!loaded.ok()) return loaded.status();
  Device device;
  return device.run(*loaded, {});
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

TEST(DeviceRules, StoresStepTheirAddresses) {
  const auto result = run(joined({kAskForOutput, kMoveWords}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)[0], (std::vector<std::uint8_t>{104 + 6, 0, 0, 0, 5, 6, 7, 8}));
  const auto beyond =
      run(joined({kAskForOutput, "scalar r5 = mov 4096\nscalar store [r5 += 1] = r5\n", "halt code=16\nend\n"}));
  ASSERT_FALSE(beyond.ok());
  EXPECT_NE(beyond.status().message().find("the store is to word 4096"), std::string::npos)
      << beyond.status().message();
}

// Four pixels of two words: byte c of pixel p goes to byte p of cell c. The clip takes the second word of every pixel
// away in the last line, and no pixel. (A clip of dimension 0 would leave one pixel of two words.)
TEST(DeviceRules, AClipInTransposeModeTakesWordsAwayNotPixels) {
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

TEST(DeviceRules, ResamplesByTwoFourAndEight) {
  struct Case {
    int step, phase, first, distance;
    std::uint8_t a, b;
  };
  // Fractions of 0x80: at 1/2, phase 1 at 1/4 and 3/4; at 1/4 and 3/4; at 1/8 and 5/8 pixel.
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
TEST(DeviceRules, TheLoopBackBufferHoldsTwoHalvesOf192Words) {
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
TEST(DeviceRules, FencesRestartTheDoubleBuffersOfTheUnitsTheyDrain) {
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

TEST(DeviceRules, EverythingUnknownIsListedWhenAPackageIsLoaded) {
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
        "a predicate on an instruction that is no scalar bundle", "attach the file", "reef inspect --unknown"}) {
    EXPECT_NE(loaded.status().message().find(part), std::string::npos) << part << " is not in\n"
                                                                       << loaded.status().message();
  }
}

}  // namespace
}  // namespace reef::device
