// SPDX-License-Identifier: Apache-2.0
// Small models that tell whether an Edge TPU does what we believe: compiled here, run on the device and on the virtual
// one, compared bit for bit (`reef devices --test`).
//
// Where a device computes something else, chips that understand one thing differently (isa/misreadings.def) are tried:
// one that gives the device's outputs of every model names the assumption that does not hold. Latency is compared with
// the simulated one. What is said about a real device is measured; what is said about a virtual one is not news.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"
#include "isa/misreading.h"

namespace reef::compiler {

struct DeviceTest {
  std::string_view name;
  bool is_reefs_own = false;  // no program of Google's does this
  std::string_view rests_on;
  std::string_view inputs, outputs, text;
};
// Of device_trials.def.
std::span<const DeviceTest> device_tests();

using DeviceTensors = std::vector<std::vector<std::uint8_t>>;

// A model of the list, compiled, with inputs and what the virtual device makes of them.
struct PreparedTest {
  const DeviceTest* test = nullptr;
  darwinn::Package package;
  std::vector<DeviceTensors> inputs, expected;  // by inference
  double simulated_ms = 0;                      // of an inference, with USB 3
};
Result<PreparedTest> prepare_test(const DeviceTest& test);

// What a device that may be another one makes of it.
struct TestedDevice {
  // Outputs for the inputs of one inference, and how long it took (measured).
  struct Answer {
    DeviceTensors outputs;
    double milliseconds = 0;
  };
  std::function<Result<std::vector<Answer>>(const PreparedTest&)> run;
};

struct TestFinding {
  const DeviceTest* test = nullptr;
  Status failure;  // it could not be run
  bool is_equal = false;
  std::int64_t values = 0, different = 0;
  std::string first_difference;  // "output 0, element 17: 3 instead of 4"
  double measured_ms = 0, simulated_ms = 0;
  std::vector<DeviceTensors> outputs;
};

struct DeviceReport {
  std::vector<TestFinding> findings;
  // The chips that explain every output, of those that were tried; empty although something differs: none does.
  std::vector<const isa::MisreadingInfo*> explanations;
  bool is_as_expected() const;
};
// `told` hears of each test when it is over.
Result<DeviceReport> test_device(
    const TestedDevice& device, const std::function<void(const TestFinding&)>& told = [](const TestFinding&) {});

}  // namespace reef::compiler
