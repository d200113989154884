// SPDX-License-Identifier: Apache-2.0
// Doubting the virtual device: marks in facts.def agree with what was counted, and programs of the collections notice
// when a rule that was found on them is taken back.
#include <gtest/gtest.h>

#include "chip/facts.h"
#include "execute/device/device.h"
#include "execute/device/proofs.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "zoo.h"

namespace reef::testing {
namespace {

using device::Belief;

std::vector<darwinn::Package> packages_of(const std::string& file) {
  std::vector<darwinn::Package> packages;
  const auto model = tflite::load_model(file);
  EXPECT_TRUE(model.ok()) << file << ": " << model.status().message();
  if (!model.ok()) return packages;
  for (const ir::Operator& op : model->subgraphs[0].operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    auto options = darwinn::read_custom_options(op.custom_options);
    EXPECT_TRUE(options.ok()) << file << ": " << options.status().message();
    if (options.ok()) packages.push_back(std::move(options->package));
  }
  return packages;
}

// What a package answers to made-up inputs, or how it fails.
Result<std::vector<std::vector<std::uint8_t>>> outputs_of(const darwinn::Package& package, Belief doubted) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package, doubted));
  device::Options options;
  options.doubted = doubted;
  options.max_cycles = std::int64_t{1} << 28;
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const darwinn::Layer& layer : loaded->inputs()) {
    auto& input = inputs.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::uint8_t>(i * i * 31 + 7 * i + i / 256);
  }
  return device::Device(options).run(loaded, {inputs.begin(), inputs.end()});
}

bool notices(const std::string& file, Belief doubted) {
  bool noticed = false;
  for (const darwinn::Package& package : packages_of(file)) {
    const auto as_known = outputs_of(package, Belief::kNone), otherwise = outputs_of(package, doubted);
    EXPECT_TRUE(as_known.ok()) << file << ": " << as_known.status().message();
    if (!as_known.ok()) return false;
    noticed = noticed || !otherwise.ok() || *otherwise != *as_known;
  }
  return noticed;
}

TEST(Doubts, FactsThatNothingNoticesAreMarkedAsUnproved) {
  const device::Proofs& proofs = device::proofs();
  for (const chip::Fact& fact : chip::facts()) {
    bool is_unproved = false;
    for (std::size_t i = 0; i < device::beliefs().size(); ++i) {
      const device::Notices& notices = proofs.beliefs[i];
      if (device::beliefs()[i].fact == fact.name) is_unproved = notices.tried > 0 && notices.noticed() == 0;
    }
    EXPECT_EQ(fact.source.starts_with("unproved: "), is_unproved)
        << fact.name << ": its source in src/chip/facts.def begins with 'unproved: ' if no public program notices it";
  }
}

TEST(Doubts, EveryBeliefWasTried) {
  const device::Proofs& proofs = device::proofs();
  ASSERT_EQ(proofs.beliefs.size(), device::beliefs().size());
  if (proofs.files == 0) GTEST_SKIP() << "proofs.def is empty: tools/doubt_device has not been run";
  for (std::size_t i = 0; i < device::beliefs().size(); ++i) {
    const device::BeliefInfo& info = device::beliefs()[i];
    EXPECT_GT(proofs.beliefs[i].tried, 0) << info.name << ": run tools/doubt_device";
    if (info.fact.empty()) continue;
    const bool is_fact = std::any_of(chip::facts().begin(), chip::facts().end(),
                                     [&](const chip::Fact& fact) { return fact.name == info.fact; });
    EXPECT_TRUE(is_fact) << info.name << " is about " << info.fact << ", which facts.def does not have";
  }
  EXPECT_GT(proofs.fields.size(), 200u);
}

// Rules that other public files than the first collection's showed, each taken back on a file that needs it.
TEST(Doubts, ProgramsNoticeRulesThatAreTakenBack) {
  REEF_SKIP_WITHOUT_WILD(wild);
  struct Case {
    const char* name;
    Belief belief;
  };
  const std::vector<Case> cases = {
      {"google-coral_voice_commands_v0.8", Belief::kClipTransposed},
      {"pperonski_slim", Belief::kStoreStepsAfter},
  };
  for (const Case& each : cases) {
    const std::string file = wild + "/" + each.name + "/compiled_edgetpu.tflite";
    EXPECT_TRUE(notices(file, each.belief)) << each.name << ": belief " << static_cast<int>(each.belief);
  }
}

// Alternatives that act in each place where the device looks at doubts: the decoded program, waits, results, the scalar
// core, sizes.
TEST(Doubts, AlternativesActWhereTheyShould) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string file = zoo + "/pairs/mnist_dense/v1_edgetpu.tflite";
  for (const Belief belief : {Belief::kQuarterLines, Belief::kNearest, Belief::kThresholdFirst, Belief::kParameterUnit,
                              Belief::kBufferFirst, Belief::kScalingPlaces, Belief::kMoverWords}) {
    EXPECT_TRUE(notices(file, belief)) << device::beliefs()[static_cast<std::size_t>(belief)].statement;
  }
  EXPECT_FALSE(notices(file, Belief::kClipTransposed)) << "the program has no such clip";
}

}  // namespace
}  // namespace reef::testing
