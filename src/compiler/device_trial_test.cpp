// SPDX-License-Identifier: Apache-2.0
// The silicon test, on virtual sticks: one as it should be, and ones whose chips are not as we believe.
#include "compiler/device_trial.h"

#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "audit/audit.h"
#include "driver/usb_session.h"
#include "driver/virtual_stick.h"
#include "ops/table_functions.h"

namespace reef::compiler {
namespace {

using Verdict = AssumptionFinding::Verdict;

DeviceTrial& trial() {
  static const auto prepared = DeviceTrial::prepare();
  EXPECT_TRUE(prepared.ok()) << prepared.status().message();
  return **prepared;
}

// Everything on one virtual stick, through the driver.
DeviceReport test_stick(const device::OtherChip* other_chip) {
  driver::StickOptions options;
  options.has_firmware = true;
  options.other_chip = other_chip;
  driver::VirtualBus bus({&options, 1});
  const auto session = driver::UsbSession::open(bus, {});
  EXPECT_TRUE(session.ok()) << session.status().message();
  TestedDevice device;
  device.run = [&](const PreparedTest& test) -> Result<std::vector<TestedDevice::Answer>> {
    REEF_ASSIGN_OR_RETURN(const auto model, driver::Model::load(test.package));
    std::vector<TestedDevice::Answer> answers;
    for (const DeviceTensors& inputs : test.inputs) {
      REEF_ASSIGN_OR_RETURN(auto outputs, (*session)->run(model, {inputs.begin(), inputs.end()}));
      answers.push_back({std::move(outputs), 1.0});
    }
    return answers;
  };
  return trial().run(device);
}

TEST(DeviceTest, AStickAsWeBelieveIsConfirmed) {
  const DeviceReport report = test_stick(nullptr);
  EXPECT_EQ(report.findings.size(), device_tests().size());
  for (const TestFinding& finding : report.findings) {
    EXPECT_TRUE(finding.failure.ok()) << finding.test->name << ": " << finding.failure.message();
    EXPECT_TRUE(finding.is_equal) << finding.test->name << ": " << finding.first_difference;
    EXPECT_GT(finding.values, 0);
    EXPECT_GT(finding.simulated_ms, 0);
  }
  EXPECT_TRUE(report.is_as_expected());
  EXPECT_TRUE(report.explanations.empty());
  EXPECT_EQ(report.assumptions.size(), device::other_chips().size());
  for (const AssumptionFinding& assumption : report.assumptions) {
    EXPECT_EQ(assumption.verdict, Verdict::kConfirmed) << assumption.otherwise->name << " is not noticed by any test";
  }
}

// What is named in the end is what the chip is. Several may be where it fails before it has given any output.
void expect_named(const device::OtherChip& chip, const DeviceReport& report) {
  EXPECT_FALSE(report.is_as_expected()) << chip.name << " is not noticed";
  const auto& names = report.explanations;
  EXPECT_TRUE(std::find(names.begin(), names.end(), &chip) != names.end()) << chip.name << " is not named";
  const bool has_output = std::any_of(report.findings.begin(), report.findings.end(), [](const TestFinding& finding) {
    return finding.failure.ok() && !finding.is_equal;
  });
  if (!has_output) return;
  EXPECT_EQ(names.size(), 1u) << chip.name << " cannot be told from others";
  for (const AssumptionFinding& assumption : report.assumptions) {
    EXPECT_EQ(assumption.verdict == Verdict::kRefuted, assumption.otherwise == &chip) << assumption.otherwise->name;
  }
}

TEST(DeviceTest, AChipThatDiffersInOneRespectIsNoticedAndNamed) {
  for (const device::OtherChip& chip : device::other_chips()) {
    expect_named(chip, trial().run(trial().otherwise(chip)));
  }
}

// The same over the link, for chips that misread instructions, that compute, and that end in an error.
TEST(DeviceTest, AStickThatDiffersInOneRespectIsNoticedAndNamed) {
  for (const device::OtherChip& chip : device::other_chips()) {
    const bool is_example = chip.misreading.has_value() || chip.name == "not-half-to-even" ||
                            chip.name == "not-tile-order" || chip.name == "not-narrow-size";
    if (is_example) expect_named(chip, test_stick(&chip));
  }
}

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(REEF_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Programs by hand do nothing that rests on the speed of units.
TEST(DeviceTest, ProgramsAreSound) {
  int programs = 0;
  for (const DeviceTest& test : device_tests()) {
    if (!test.is_program()) continue;
    ++programs;
    const auto prepared = prepare_test(test);
    ASSERT_TRUE(prepared.ok()) << prepared.status().message();
    const auto report = audit::audit(prepared->package);
    ASSERT_TRUE(report.ok()) << test.name << ": " << report.status().message();
    EXPECT_TRUE(report->is_sound()) << test.name;
  }
  EXPECT_GT(programs, 15);
}

TEST(DeviceTest, EveryOperatorThatThereIsCodeForIsTested) {
  std::string all;
  for (const DeviceTest& test : device_tests()) all += test.text;
  const std::string lowerings = text_of("src/lower/lowerings.def");
  const std::regex line("REEF_LOWERING\\((\\w+),");
  int operators = 0;
  for (std::sregex_iterator found(lowerings.begin(), lowerings.end(), line), end; found != end; ++found, ++operators) {
    const std::string name = (*found)[1];
    if (name == Op::ReefFunction) continue;  // 256 numbers of no operator; its code is that of ELU
    EXPECT_NE(all.find("= " + name + "("), std::string::npos) << name << " is in no test";
  }
  EXPECT_GT(operators, 40);
}

// Each test says what it rests on: a page with a section or a word of it, or a number of the chip.
TEST(DeviceTest, WhatTestsRestOnExists) {
  const std::string facts = text_of("src/chip/facts.def");
  ASSERT_FALSE(facts.empty());
  for (const DeviceTest& test : device_tests()) {
    const std::string rests_on(test.rests_on);
    int places = 0;
    const std::regex page("(docs/[a-z_/]+\\.md), ([^:;(]+)"), fact("\\bk[A-Z]\\w+");
    for (std::sregex_iterator found(rests_on.begin(), rests_on.end(), page), end; found != end; ++found, ++places) {
      EXPECT_NE(text_of((*found)[1]).find((*found)[2]), std::string::npos)
          << test.name << ": " << (*found)[1] << " has no \"" << (*found)[2] << "\"";
    }
    if (rests_on.find("chip/facts.def") != std::string::npos) {
      for (std::sregex_iterator found(rests_on.begin(), rests_on.end(), fact), end; found != end; ++found, ++places) {
        EXPECT_NE(facts.find(", " + found->str() + ","), std::string::npos) << test.name << ": " << found->str();
      }
    }
    EXPECT_GT(places, 0) << test.name << " does not say where to read on";
  }
}

}  // namespace
}  // namespace reef::compiler
