// SPDX-License-Identifier: Apache-2.0
// Stopping at an instruction: the state is that of its end, not of another one's.
#include "execute/device/stop_at.h"

#include <gtest/gtest.h>

#include "execute/device/device.h"
#include "isa/assembler.h"

namespace reef::device {
namespace {

// Rows: 0 start, 1 fill (6 rows), 7 fence, 8 narrow_to_wide of tile 0 (7 rows), 15 repeat of one fill (row 16).
constexpr std::string_view kProgram = R"(
start
mesh_north tiles=0,3 fill fill_value=0x04030201
  out narrow word 2: for x2 +1
tile_fence tiles=all drain=all
narrow_to_wide tiles=0 line_level=1
  in narrow word 2: for x2 +1
  out wide line 5: for x1 +1
repeat 3 {
mesh_south tiles=3 fill fill_value=0x01010101
  out narrow word 9: for x1 +1
}
halt code=16
end
)";

struct Stopped {
  Status status;
  std::optional<Snapshot> snapshot;
  bool was_stopped = false;
};

Stopped run_to(const StopPoint& point, std::uint32_t tiles) {
  const auto program = isa::assemble(kProgram);
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return {};
  darwinn::Package package;
  darwinn::Executable executable = darwinn::new_executable(darwinn::ExecutableType::kStandAlone);
  executable.instruction_chunks.emplace_back().bitstream = Bytes(isa::encode(*program));
  package.executables.push_back(std::move(executable));
  const auto loaded = LoadedPackage::load(std::move(package));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  Device device;
  StopAt stop(device.chip(), point, tiles);
  device.set_observer(&stop);
  const bool ended_well = device.run(*loaded, {}).ok();
  EXPECT_EQ(ended_well, !device.chip().was_stopped());
  return {stop.status(), stop.snapshot(), device.chip().was_stopped()};
}

TEST(StopAt, KeepsWhatIsThereWhenAllTilesHaveFinished) {
  const Stopped stopped = run_to({.row = 1}, 1u << 3);
  ASSERT_TRUE(stopped.snapshot.has_value()) << stopped.status.message();
  EXPECT_TRUE(stopped.was_stopped);
  EXPECT_EQ(stopped.snapshot->tiles, 0b1001u);
  const TileSnapshot& tile = stopped.snapshot->tiles_state[3];
  EXPECT_EQ(std::vector<std::uint8_t>(tile.narrow.begin() + 8, tile.narrow.begin() + 16),
            (std::vector<std::uint8_t>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(std::count(tile.narrow_known.begin(), tile.narrow_known.end(), 1), 8);
  EXPECT_EQ(std::count(tile.wide_known.begin(), tile.wide_known.end(), 1), 0);
  EXPECT_TRUE(stopped.snapshot->tiles_state[0].narrow.empty());  // was not asked for
}

TEST(StopAt, LinesAreThereOnceTheyAreStored) {
  const Stopped stopped = run_to({.row = 8}, 1);
  ASSERT_TRUE(stopped.snapshot.has_value()) << stopped.status.message();
  const TileSnapshot& tile = stopped.snapshot->tiles_state[0];
  EXPECT_EQ(tile.wide[5 * chip::kWideLineBytes + 4], 1);
  EXPECT_EQ(std::count(tile.wide_known.begin(), tile.wide_known.end(), 1), 8);
  EXPECT_EQ(std::count(stopped.snapshot->tiles_state[3].narrow_known.begin(),
                       stopped.snapshot->tiles_state[3].narrow_known.end(), 1),
            0);
}

TEST(StopAt, CountsHowOftenAnInstructionIsReached) {
  const Stopped third = run_to({.row = 16, .occurrence = 3}, 1u << 3);
  ASSERT_TRUE(third.snapshot.has_value()) << third.status.message();
  EXPECT_EQ(third.snapshot->tiles_state[3].narrow[36], 1);
  const Stopped fourth = run_to({.row = 16, .occurrence = 4}, 1u << 3);
  EXPECT_FALSE(fourth.was_stopped);
  EXPECT_NE(fourth.status.message().find("is reached 3 times, not 4"), std::string::npos) << fourth.status.message();
}

TEST(StopAt, SaysWhyThereIsNoSuchInstruction) {
  const Stopped inside = run_to({.row = 3}, 0), beyond = run_to({.row = 400}, 0), chunk = run_to({.chunk = 2}, 0);
  EXPECT_NE(inside.status.message().find("it belongs to row 1 (mesh_north)"), std::string::npos)
      << inside.status.message();
  EXPECT_NE(beyond.status.message().find("there is no row 400"), std::string::npos) << beyond.status.message();
  EXPECT_NE(chunk.status.message().find("there is no chunk 2"), std::string::npos) << chunk.status.message();
}

TEST(StopAt, PlacesAreRead) {
  const auto whole = parse_stop_point("1:228@3");
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->chunk, 1u);
  EXPECT_EQ(whole->row, 228);
  EXPECT_EQ(whole->occurrence, 3);
  for (const char* wrong : {"", "x", "1:", ":2", "-1", "1@0", "1@", "99999999999", "1:2:3", "1 "}) {
    EXPECT_FALSE(parse_stop_point(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace reef::device
