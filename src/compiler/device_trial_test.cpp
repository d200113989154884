// SPDX-License-Identifier: Apache-2.0
// The silicon test, on virtual sticks: one as it should be, and ones whose chips understand one thing differently.
#include "compiler/device_trial.h"

#include <gtest/gtest.h>

#include "driver/usb_session.h"
#include "driver/virtual_stick.h"

namespace reef::compiler {
namespace {

// Everything on one virtual stick, through the driver.
Result<DeviceReport> test_stick(std::optional<isa::Misreading> misreading) {
  driver::StickOptions options;
  options.has_firmware = true;
  options.misreading = misreading;
  driver::VirtualBus bus({&options, 1});
  REEF_ASSIGN_OR_RETURN(const auto session, driver::UsbSession::open(bus, {}));
  TestedDevice device;
  device.run = [&](const PreparedTest& test) -> Result<std::vector<TestedDevice::Answer>> {
    REEF_ASSIGN_OR_RETURN(const auto model, driver::Model::load(test.package));
    std::vector<TestedDevice::Answer> answers;
    for (const DeviceTensors& inputs : test.inputs) {
      REEF_ASSIGN_OR_RETURN(auto outputs, session->run(model, {inputs.begin(), inputs.end()}));
      answers.push_back({std::move(outputs), 1.0});
    }
    return answers;
  };
  return test_device(device);
}

TEST(DeviceTest, AStickAsWeBelieveIsConfirmed) {
  const auto report = test_stick(std::nullopt);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->findings.size(), device_tests().size());
  for (const TestFinding& finding : report->findings) {
    EXPECT_TRUE(finding.failure.ok()) << finding.test->name << ": " << finding.failure.message();
    EXPECT_TRUE(finding.is_equal) << finding.test->name << ": " << finding.first_difference;
    EXPECT_GT(finding.values, 0);
    EXPECT_GT(finding.simulated_ms, 0);
  }
  EXPECT_TRUE(report->is_as_expected());
  EXPECT_TRUE(report->explanations.empty());
}

// Every misreading changes some output, and what is named in the end is the one that was made.
TEST(DeviceTest, AChipThatDiffersInOneRespectIsNoticedAndNamed) {
  for (const isa::MisreadingInfo& info : isa::misreadings()) {
    const auto report = test_stick(info.misreading);
    ASSERT_TRUE(report.ok()) << info.name << ": " << report.status().message();
    EXPECT_FALSE(report->is_as_expected()) << info.name << " is not noticed";
    const auto& names = report->explanations;
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const auto* other) { return other == &info; }))
        << info.name << " is not named";
    EXPECT_LE(names.size(), 1u) << info.name << " cannot be told from " << (names.size() > 1 ? names[1]->name : "");
  }
}

}  // namespace
}  // namespace reef::compiler
