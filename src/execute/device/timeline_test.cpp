// SPDX-License-Identifier: Apache-2.0
// Simulated time and races of small programs written by hand.
#include "execute/device/timeline.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execute/device/chrome_trace.h"
#include "execute/device/device.h"
#include "handwritten_packages.h"

namespace reef::device {
namespace {

using testing::joined;
using testing::kFence;

// Tile 0 fills two words, packs them into a line and sends it; `middle` comes before the line is packed.
std::string program(std::string_view middle, std::string_view fence = kFence) {
  return joined({testing::kAskForEightBytes, testing::kFillTwoWords, fence, middle, testing::kPackLine, kFence,
                 testing::kSendLineAndEnd});
}

struct Followed {
  std::shared_ptr<const LoadedPackage> package;  // owns the program
  std::vector<ProgramRecord> records;
};

Followed follow(const std::string& text, const TimelineOptions& options) {
  auto loaded = LoadedPackage::load(testing::stand_alone_package(text));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  if (!loaded.ok()) return {};
  Device device;
  Timeline timeline(options);
  device.set_observer(&timeline);
  device.set_queue_depths(kShallowQueues);
  const auto result = device.run(*loaded, {});
  EXPECT_TRUE(result.ok()) << result.status().message();
  Followed followed{*loaded, timeline.take_records()};
  EXPECT_EQ(followed.records.size(), 1u);
  return followed;
}

TimelineOptions find_races() {
  TimelineOptions options;
  options.find_races = true;
  return options;
}

double on(const TimeReport& time, Spent kind) { return time.critical_path[at(kind)]; }

TEST(Timeline, AddsUpAlongTheCriticalPath) {
  const Followed followed = follow(program(""), {});
  const TimeReport& time = followed.records.at(0).time;
  double sum = 0;
  for (const double part : time.critical_path) sum += part;
  EXPECT_NEAR(sum, time.cycles, 1);
  EXPECT_DOUBLE_EQ(on(time, Spent::kHost), 256e-6 * 500e6);
  // One line of 256 bytes, 16 a cycle, to the scalar core; from there 8 bytes go on.
  EXPECT_NEAR(on(time, Spent::kRing), 16 + 0.5, 1e-3);
  EXPECT_EQ(time.output_bytes, 8u);
  EXPECT_NEAR(on(time, Spent::kOutput), 8 / 57e6 * 500e6, 0.01);
}

TEST(Timeline, ClockAndLinkScaleTheirParts) {
  const Followed fast = follow(program(""), {});
  TimelineOptions slow;
  slow.timing.clock_hz = 250e6;
  slow.timing.link = chip::find_link("usb2");
  ASSERT_NE(slow.timing.link, nullptr);
  const Followed slower = follow(program(""), slow);
  const TimeReport& a = fast.records.at(0).time;
  const TimeReport& b = slower.records.at(0).time;
  EXPECT_NEAR(on(a, Spent::kRing), on(b, Spent::kRing), 1e-3);  // in cycles
  EXPECT_NEAR(on(a, Spent::kInstructions) / a.clock_hz * 423e6, on(b, Spent::kInstructions) / b.clock_hz * 35.7e6, 1);
  EXPECT_EQ(chip::find_link("avian carrier"), nullptr);
}

TEST(Timeline, MoreWorkTakesLonger) {
  const std::string lines = R"(
ring_send tiles=0 channel=a to_tiles=1,2
  in wide line 0: for x8 +1
ring_receive_a tiles=1,2
  out wide line 0: for x8 +1
tile_fence tiles=all drain=all
)";
  const double once = follow(program(lines), {}).records.at(0).time.cycles;
  const double twice = follow(program(lines + lines), {}).records.at(0).time.cycles;
  // The second eight lines and their instructions, which cross the link as well.
  EXPECT_GT(twice, once + 8 * 16);
}

TEST(Timeline, OrderedAccessesAreNoRaces) {
  const Followed followed = follow(program(""), find_races());
  EXPECT_TRUE(followed.records.at(0).races.empty()) << followed.records[0].describe(followed.records[0].races[0]);
}

TEST(Timeline, AReadThatWaitsForNothingIsARace) {
  // Without the fence between fill and packing.
  const Followed followed = follow(program("", ""), find_races());
  const std::vector<Race>& races = followed.records.at(0).races;
  ASSERT_EQ(races.size(), 1u);
  EXPECT_EQ(races[0].kind, Race::Kind::kReadAfterWrite);
  EXPECT_EQ(races[0].times, 2u);
  const std::string text = followed.records[0].describe(races[0]);
  for (const char* part :
       {"narrow memory, word", "narrow_to_wide", "mesh_north", "on tile 0", "nothing makes it wait"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(Timeline, OverlappingWritesAreARace) {
  const Followed followed = follow(program(R"(
mesh_south tiles=0 fill fill_value=0x1
  out narrow word 40: for x4 +1
mesh_west tiles=0 fill fill_value=0x2
  out narrow word 43: for x4 +1
tile_fence tiles=all drain=all
)"),
                                   find_races());
  const std::vector<Race>& races = followed.records.at(0).races;
  ASSERT_EQ(races.size(), 1u);
  EXPECT_EQ(races[0].kind, Race::Kind::kWriteAfterWrite);
  EXPECT_NE(races[0].place.find("word 43"), std::string::npos) << races[0].place;
}

TEST(Timeline, AWaitPutsOneAfterTheOther) {
  // Data that a southward instruction stores count as arriving from the north.
  const auto fills = [](std::string_view wait) {
    return std::string(
               "mesh_south tiles=0 fill fill_value=0x1\n  out narrow word 40: for x4 +1\n"
               "  signal MESH_N_IN each level 1\n"
               "mesh_west tiles=0 fill fill_value=0x2\n  out narrow word 43: for x4 +1\n") +
           std::string(wait) + "tile_fence tiles=all drain=all reset=MESH_N_IN,MESH_E_IN,MESH_S_IN,MESH_W_IN\n";
  };
  EXPECT_EQ(follow(program(fills("")), find_races()).records.at(0).races.size(), 1u);
  const Followed ordered = follow(program(fills("  wait MESH_N_IN >= 1 + 0*pass(level 1) on out\n")), find_races());
  EXPECT_TRUE(ordered.records.at(0).races.empty());
}

TEST(Timeline, SendersWithoutATurnAreARace) {
  const Followed followed = follow(program(R"(
ring_receive_a tiles=1
  out wide line 0: for x2 +1
ring_send tiles=0 channel=a to_tiles=1
  in wide line 0: for x1 +1
ring_send tiles=2 channel=a to_tiles=1
  in wide line 0: for x1 +1
tile_fence tiles=all drain=all
)"),
                                   find_races());
  const std::vector<Race>& races = followed.records.at(0).races;
  const auto has = [&](Race::Kind kind) {
    return std::any_of(races.begin(), races.end(), [&](const Race& race) { return race.kind == kind; });
  };
  EXPECT_TRUE(has(Race::Kind::kMessages));
  EXPECT_TRUE(has(Race::Kind::kRingTurn));
}

TEST(Timeline, ACounterMustNotBeSetWhileItIsSignalled) {
  // A fence that does not wait for the fill's unit sets the counter that the fill signals.
  const Followed followed = follow(program(R"(
mesh_south tiles=0 fill fill_value=0x1
  out narrow word 40: for x4 +1
  signal MESH_N_IN each level 0
tile_fence tiles=all drain=tensor reset=MESH_N_IN
tile_fence tiles=all drain=all
)"),
                                   find_races());
  const std::vector<Race>& races = followed.records.at(0).races;
  ASSERT_EQ(races.size(), 1u);
  EXPECT_TRUE(races[0].kind == Race::Kind::kCounterSet || races[0].kind == Race::Kind::kCounterUse);
  EXPECT_NE(races[0].place.find("MESH_N_IN"), std::string::npos) << races[0].place;
}

TEST(Timeline, TracesNameUnitsAndInstructions) {
  TimelineOptions options;
  options.keep_slices = true;
  const Followed followed = follow(program(""), options);
  const std::string trace = chrome_trace(followed.records);
  for (const char* part :
       {"\"traceEvents\"", "\"tile 0\"", "narrow_to_wide", "instructions over the link", "simulated"}) {
    EXPECT_NE(trace.find(part), std::string::npos) << part;
  }
}

// Perfetto drops a slice that begins before its predecessor on the same track has ended, if only by a nanosecond.
TEST(Timeline, SlicesOfATraceDoNotOverlap) {
  const Followed followed = follow(program(""), {});
  ProgramRecord record;
  record.program = followed.records.at(0).program;
  record.time.clock_hz = 333e6;  // a cycle is no whole number of nanoseconds
  record.time.cycles = 1370;
  for (int i = 0; i < 1000; ++i) {
    record.slices.push_back({.agent = 0, .index = 0, .begin = i * 1.37, .end = (i + 1) * 1.37, .busy = 1});
    record.link_slices.push_back({.kind = Spent::kInput, .begin = i * 1.37, .end = (i + 1) * 1.37, .bytes = 1});
  }
  const std::vector<ProgramRecord> twice = {record, record};
  const auto trace = nlohmann::json::parse(chrome_trace(twice));
  std::map<std::pair<int, int>, std::int64_t> end;  // of the last slice, by process and thread, in nanoseconds
  int slices = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++slices;
    const auto in_ns = [&](const char* field) { return std::llround(event.at(field).get<double>() * 1000); };
    std::int64_t& last = end[{event.at("pid"), event.at("tid")}];
    ASSERT_GE(in_ns("ts"), last) << event.dump();
    last = in_ns("ts") + in_ns("dur");
  }
  EXPECT_EQ(slices, 4000);
}

}  // namespace
}  // namespace reef::device
