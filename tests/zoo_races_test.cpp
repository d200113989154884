// SPDX-License-Identifier: Apache-2.0
// Compiled files of the model collection under the race finder (timeline.h): what in Google's own programs is not
// ordered by waits, and that nothing of it goes wrong in simulated time.
//
// What is found is of three kinds, all explained in docs/device.md. Anything else would be a mistake of the finder (or
// a discovery). REEF_RACES=full takes all files; else those that take longest are left out.
#include <atomic>
#include <cstdlib>
#include <future>
#include <mutex>

#include <gtest/gtest.h>

#include "execute/device/device.h"
#include "execute/device/timeline.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

struct Finding {
  std::string file;
  std::size_t races = 0;
  double least_slack = 0;
  double ms = 0;  // simulated
};

bool is_expected(const device::ProgramRecord& record, const device::Race& race) {
  const auto opcode = [&](std::uint32_t index) { return record.program->operations[index].opcode; };
  const isa::Opcode first = opcode(race.first_index), second = opcode(race.second_index);
  switch (race.kind) {
    case device::Race::Kind::kWriteAfterRead:  // a gather's buffer
      return first == isa::Opcode::kWideToNarrow && second == isa::Opcode::kRingReceiveA;
    case device::Race::Kind::kMessages:
    case device::Race::Kind::kRingTurn:
      return (first == isa::Opcode::kRingSend && second == isa::Opcode::kPop) ||
             (first == isa::Opcode::kPop && second == isa::Opcode::kRingSend);
    default:
      return false;
  }
}

Finding examine(const Pair& pair) {
  Finding finding{pair.name, 0, 1e30, 0};
  auto package = package_of(pair.compiled);
  EXPECT_TRUE(package.ok()) << package.status().message();
  if (!package.ok()) return finding;
  auto loaded = device::LoadedPackage::load(std::move(*package));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  if (!loaded.ok()) return finding;
  std::vector<std::vector<std::uint8_t>> tensors;
  for (const darwinn::Layer& layer : (*loaded)->inputs()) {
    tensors.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)), std::uint8_t{100});
  }
  device::Device device;
  device::TimelineOptions options;
  options.find_races = true;
  device::Timeline timeline(options);
  device.set_observer(&timeline);
  device.set_queue_depths(device::kShallowQueues);
  const auto result = device.run(*loaded, {tensors.begin(), tensors.end()});
  EXPECT_TRUE(result.ok()) << pair.name << ": " << result.status().message();
  for (const device::ProgramRecord& record : timeline.take_records()) {
    finding.ms = record.time.ms();
    finding.races += record.races.size();
    for (const device::Race& race : record.races) {
      finding.least_slack = std::min(finding.least_slack, race.slack);
      EXPECT_FALSE(race.breaks_the_order()) << pair.name << ": " << record.describe(race);
      EXPECT_TRUE(is_expected(record, race)) << pair.name << ": " << record.describe(race);
    }
  }
  return finding;
}

TEST(ZooRaces, GooglesProgramsHaveFewAndNoneThatBite) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const char* mode = std::getenv("REEF_RACES");
  const bool is_full = mode != nullptr && std::string_view(mode) == "full";
  std::vector<Pair> pairs = pairs_of(zoo);
  std::erase_if(pairs, [&](const Pair& pair) {
    for (const char* slow : {"posenet_", "deeplab", "mobilenet_v1_1.0", "mobilenet_v2_", "op_model_conv",
                             "op_model_mat", "512x256", "conv_k3_p128"}) {
      if (!is_full && pair.name.find(slow) != std::string::npos) return true;
    }
    return false;
  });
  std::vector<Finding> findings(pairs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < pairs.size(); i = next++) findings[i] = examine(pairs[i]);
  };
  auto other = std::async(std::launch::async, work);
  work();
  other.wait();
  std::size_t clean = 0;
  for (const Finding& finding : findings) {
    if (finding.races == 0) {
      ++clean;
    } else {
      fmt::print("{}: {} pairs of instructions, closest {:.1f} cycles apart (simulated)\n", finding.file, finding.races,
                 finding.least_slack);
    }
  }
  fmt::print("{} of {} files without races\n", clean, findings.size());
}

}  // namespace
}  // namespace reef::testing
