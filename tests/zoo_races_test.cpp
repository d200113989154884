// SPDX-License-Identifier: Apache-2.0
// Compiled files of the model collection under the race finder (timeline.h): what in Google's own programs is not
// ordered by waits, and that nothing of it goes wrong in simulated time.
//
// What is found is of three kinds, all explained in docs/device.md. Anything else would be a mistake of the finder (or
// a discovery). REEF_RACES=full takes all files; else those that take longest are left out.
#include <atomic>
#include <cstdlib>
#include <future>
#include <random>

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

struct InOrder {
  bool ok = false;
  std::vector<std::vector<std::uint8_t>> outputs;
};

InOrder run_in_order(const std::string& compiled, const device::Schedule& order) {
  auto package = package_of(compiled);
  if (!package.ok()) return {};
  auto loaded = device::LoadedPackage::load(std::move(*package));
  if (!loaded.ok()) return {};
  std::mt19937 random(3);
  std::vector<std::vector<std::uint8_t>> tensors;
  for (const darwinn::Layer& layer : (*loaded)->inputs()) {
    auto& bytes = tensors.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  }
  device::Device device;
  device.set_schedule(order);
  auto result = device.run(*loaded, {tensors.begin(), tensors.end()});
  if (!result.ok()) return {};
  return {true, std::move(*result)};
}

// The finder says of these that nothing depends on the order; so other orders must give the same.
TEST(ZooRaces, WithoutRacesAnyOrderGivesTheSame) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int files = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    bool is_chosen = false;
    for (const char* name : {"gabor_64x64_p4/", "looming_64x64", "split_concat/", "color_red", "asr_tflite_model_ASR",
                             "op_model_padding_64x64x3", "mobilenet_v1_0.25_128_quant/v2", "conv_k3_p32_anchor"}) {
      is_chosen = is_chosen || pair.name.find(name) != std::string::npos;
    }
    if (!is_chosen) continue;
    ++files;
    const InOrder usual = run_in_order(pair.compiled, {});
    EXPECT_TRUE(usual.ok) << pair.name;
    for (std::uint32_t unit = 0; unit <= chip::kTileUnits; ++unit) {
      const device::Schedule order{17 + unit, unit == 0 ? 0 : 1u << (unit - 1)};
      const InOrder other = run_in_order(pair.compiled, order);
      EXPECT_TRUE(other.ok && other.outputs == usual.outputs) << pair.name << ", seed " << order.seed;
    }
  }
  EXPECT_EQ(files, 8);
}

// And of these that they depend on the wide-to-narrow mover's speed: one that is starved shows it.
TEST(ZooRaces, AStarvedMoverShowsTheRaceOfGathers) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  for (const char* name : {"/pairs/dense_512/v16_edgetpu.tflite", "/pairs/dense_1024/v16_edgetpu.tflite"}) {
    const InOrder usual = run_in_order(zoo + name, {});
    const InOrder starved = run_in_order(zoo + name, {1, 1u << static_cast<int>(isa::Unit::kWideToNarrow)});
    EXPECT_TRUE(usual.ok) << name;
    EXPECT_FALSE(starved.ok && starved.outputs == usual.outputs) << name;
  }
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
