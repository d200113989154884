// SPDX-License-Identifier: Apache-2.0
// Small models, and programs in assembly for what models do not use, that tell whether an Edge TPU does what we
// believe: compiled here, run on the device and on the virtual one, compared bit for bit (`reef devices --test`).
//
// What a test shows is found by running it on chips that are not as we believe, in one respect each
// (execute/device/other_chip.h): one that fails, or gives other outputs, is one that the test tells from ours, so that
// equal outputs of a device confirm the assumption in question. Where a device computes something else, a chip that
// gives its outputs in every test names the assumption that does not hold. Latency is compared with the simulated one.
// What is said about a real device is measured; what is said about a virtual one is not news.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "execute/device/other_chip.h"
#include "formats/darwinn/package.h"

namespace reef::compiler {

struct DeviceTest {
  std::string_view name;
  bool is_reefs_own = false;               // no program of Google's does this
  std::string_view rests_on;               // pages and facts, then words
  std::string_view inputs, outputs, text;  // of a model; a program in assembly has neither inputs nor outputs
  int output_bytes = 0, idle_rows = 0;     // of a program

  bool is_program() const { return output_bytes > 0; }
};
// All tests of device_trials.def and device_programs.def.
std::span<const DeviceTest> device_tests();

using DeviceTensors = std::vector<std::vector<std::uint8_t>>;

// A model or program of the list, compiled, with inputs and what the virtual device makes of them.
struct PreparedTest {
  const DeviceTest* test = nullptr;
  darwinn::Package package;
  std::vector<DeviceTensors> inputs, expected;  // by inference
  double simulated_ms = 0;                      // of an inference, with USB 3
  std::int64_t steps = 0;                       // of the virtual device, for all inferences
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
  bool was_tried = true;
  Status failure;  // it could not be run, or was not tried
  bool is_equal = false;
  std::int64_t values = 0, different = 0;
  std::string first_difference;  // "output 0, element 17: 3 instead of 4"
  double measured_ms = 0, simulated_ms = 0;
  std::vector<DeviceTensors> outputs;
};

// Something that we believe of the chip, and what the tests say about it.
struct AssumptionFinding {
  const device::OtherChip* otherwise = nullptr;  // a chip for which it does not hold
  enum class Verdict : std::uint8_t {
    kConfirmed,  // every test that tells such a chip from ours was as expected
    kRefuted,    // such a chip explains every output
    kOpen,       // neither
    kNotShown,   // no test tells such a chip from ours
  };
  Verdict verdict = Verdict::kNotShown;
  std::vector<const DeviceTest*> shown_by;  // the tests that tell; long ones only if no other does
};
std::string_view name_of(AssumptionFinding::Verdict verdict);

struct DeviceReport {
  std::vector<TestFinding> findings;
  // The chips that explain every output; empty although something differs: none does.
  std::vector<const device::OtherChip*> explanations;
  std::vector<AssumptionFinding> assumptions;  // in the order of device::other_chips()
  bool is_as_expected() const;
};
// All tests, ready for any number of devices. What other chips make of them is computed once.
class DeviceTrial {
 public:
  static Result<std::unique_ptr<DeviceTrial>> prepare();
  ~DeviceTrial();

  // `told` hears of each test when it is over. After kMostFailures tests that could not be run the others are not
  // tried.
  static constexpr int kMostFailures = 5;
  DeviceReport run(
      const TestedDevice& device, const std::function<void(const TestFinding&)>& told = [](const TestFinding&) {});
  // What such a chip would answer.
  TestedDevice otherwise(const device::OtherChip& chip);

 private:
  class OtherRuns;
  DeviceTrial();
  DeviceReport found(const TestedDevice& device, const std::function<void(const TestFinding&)>& told) const;

  std::vector<PreparedTest> tests_;
  std::unique_ptr<OtherRuns> others_;
};

}  // namespace reef::compiler
