// SPDX-License-Identifier: Apache-2.0
#include "compiler/device_trial.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "compiler/code_generator.h"
#include "compiler/trial_program.h"
#include "execute/device/device.h"
#include "execute/device/timeline.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/dependencies.h"

namespace reef::compiler {
namespace {

constexpr std::array kTests = {
#define DEVICE_TEST(name, is_reefs_own, rests_on, inputs, outputs, text) \
  DeviceTest{name, is_reefs_own, rests_on, inputs, outputs, text},
#define DEVICE_PROGRAM(name, rests_on, output_bytes, idle_rows, text) \
  DeviceTest{name, true, rests_on, {}, {}, text, output_bytes, idle_rows},
#include "compiler/device_trials.def"

// Behind the models: they do what no compiler does.
#include "compiler/device_programs.def"
#undef DEVICE_TEST
#undef DEVICE_PROGRAM
};

constexpr int kInferences = 2;
constexpr std::int64_t kLongSteps = 1'000'000;  // of a test that is run on other chips only where no other tells
constexpr std::uint64_t kFirstToken = 0x7265656600000001;  // of parameters: each test has its own

// The same numbers everywhere and for ever.
class Numbers {
 public:
  explicit Numbers(std::uint32_t seed) : state_(seed * 2654435761u + 12345) {}
  std::uint8_t byte() {
    state_ = state_ * 1664525 + 1013904223;
    return static_cast<std::uint8_t>(state_ >> 24);
  }

 private:
  std::uint32_t state_;
};

// Weights of all values; biases of a few hundred.
void fill_constants(ir::Model& model) {
  Numbers numbers(1);
  for (const ir::Tensor& tensor : model.subgraphs[0].tensors) {
    if (tensor.buffer == 0 || !model.buffers[at(tensor.buffer)].data.empty()) continue;
    const bool is_bias = tensor.type == ir::DataType::kInt32;
    const auto elements = static_cast<std::size_t>(tensor.shape.checked_elements().value_or(0));
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < elements; ++i) {
      if (!is_bias) {
        bytes.push_back(numbers.byte());
        continue;
      }
      const std::int32_t value = static_cast<std::int8_t>(numbers.byte()) * 5;
      for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
    }
    model.buffers[at(tensor.buffer)].data = Bytes(std::move(bytes));
  }
}

Result<ir::Model> model_of(const DeviceTest& test) {
  REEF_ASSIGN_OR_RETURN(ir::Model model,
                        ir::parse(fmt::format("model {{ subgraph \"main\" inputs({}) outputs({}) {{\n{}\n}} }}",
                                              test.inputs, test.outputs, test.text)));
  fill_constants(model);
  REEF_RETURN_IF_ERROR(ir::verify(model));
  return model;
}

Result<darwinn::Package> compiled_package(const DeviceTest& test) {
  REEF_ASSIGN_OR_RETURN(const ir::Model model, model_of(test));
  PartProgram part{model, {}, {}, {}};
  part.ops.resize(model.subgraphs[0].operators.size());
  std::iota(part.ops.begin(), part.ops.end(), 0);
  const ops::Dependencies::Border border = ops::Dependencies(model).border(part.ops);  // states are among both
  part.inputs = border.inputs;
  part.outputs = border.outputs;
  part.caching_token = kFirstToken + static_cast<std::uint64_t>(&test - kTests.data());
  return generate_code(part);
}

struct VirtualRun {
  std::vector<DeviceTensors> outputs;
  std::int64_t steps = 0;
};

Result<VirtualRun> run_loaded(const PreparedTest& test, const std::shared_ptr<const device::LoadedPackage>& loaded,
                              const device::Options& options) {
  device::Device device(options);
  VirtualRun run;
  for (const DeviceTensors& inputs : test.inputs) {
    REEF_ASSIGN_OR_RETURN(run.outputs.emplace_back(), device.run(loaded, {inputs.begin(), inputs.end()}));
    run.steps += device.chip().steps();
  }
  return run;
}

// Nothing: such a chip does not come to the end.
std::optional<std::vector<DeviceTensors>> run_otherwise(const PreparedTest& test, const device::OtherChip& chip) {
  const auto loaded = device::load_for(chip, test.package);
  if (!loaded.ok()) return std::nullopt;
  device::Options options;
  options.threads = 1;
  options.doubted = chip.doubted;
  options.max_cycles = 8 * test.steps + 1'000'000;  // some would go on for ever
  auto run = run_loaded(test, *loaded, options);
  return run.ok() ? std::optional(std::move(run->outputs)) : std::nullopt;
}

Result<double> simulated_milliseconds(const PreparedTest& test) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(test.package));
  device::Device device;
  device::Timeline timeline({});
  device.set_observer(&timeline);
  const DeviceTensors& inputs = test.inputs.front();
  const auto outputs = device.run(loaded, {inputs.begin(), inputs.end()});
  if (!outputs.ok()) return outputs.status();
  const std::vector<device::ProgramRecord> records = timeline.take_records();
  return records.empty() ? 0.0 : records.back().time.ms();  // the last program is the inference
}

void compare(const std::vector<DeviceTensors>& expected, TestFinding& finding) {
  for (std::size_t k = 0; k < expected.size(); ++k) {
    for (std::size_t i = 0; i < expected[k].size(); ++i) {
      const auto& right = expected[k][i];
      finding.values += static_cast<std::int64_t>(right.size());
      const bool is_there =
          k < finding.outputs.size() && i < finding.outputs[k].size() && finding.outputs[k][i].size() == right.size();
      for (std::size_t e = 0; e < right.size(); ++e) {
        if (is_there && finding.outputs[k][i][e] == right[e]) continue;
        if (finding.different++ == 0) {
          finding.first_difference = is_there ? fmt::format("inference {}, output {}, byte {}: {} instead of {}", k, i,
                                                            e, finding.outputs[k][i][e], right[e])
                                              : "outputs are missing";
        }
      }
    }
  }
  finding.is_equal = finding.different == 0;
}

}  // namespace

std::span<const DeviceTest> device_tests() { return kTests; }

Result<PreparedTest> prepare_test(const DeviceTest& test) {
  PreparedTest prepared;
  prepared.test = &test;
  auto package =
      test.is_program() ? trial_package(test.text, test.output_bytes, test.idle_rows) : compiled_package(test);
  if (!package.ok()) return package.status().in(fmt::format("the test \"{}\"", test.name));
  prepared.package = std::move(*package);
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(prepared.package));
  Numbers numbers(2);
  for (int k = 0; k < kInferences; ++k) {
    DeviceTensors& inputs = prepared.inputs.emplace_back();
    for (const darwinn::Layer& layer : loaded->inputs()) {
      auto& values = inputs.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
      for (std::uint8_t& value : values) value = numbers.byte();
    }
  }
  REEF_ASSIGN_OR_RETURN(VirtualRun run, run_loaded(prepared, loaded, {}));
  prepared.expected = std::move(run.outputs);
  prepared.steps = run.steps;
  REEF_ASSIGN_OR_RETURN(prepared.simulated_ms, simulated_milliseconds(prepared));
  return prepared;
}

bool DeviceReport::is_as_expected() const {
  return std::all_of(findings.begin(), findings.end(),
                     [](const TestFinding& finding) { return finding.failure.ok() && finding.is_equal; });
}

std::string_view name_of(AssumptionFinding::Verdict verdict) {
  switch (verdict) {
    case AssumptionFinding::Verdict::kConfirmed:
      return "confirmed";
    case AssumptionFinding::Verdict::kRefuted:
      return "refuted";
    case AssumptionFinding::Verdict::kOpen:
      return "open";
    case AssumptionFinding::Verdict::kNotShown:
      break;
  }
  return "not shown";
}

// What each of the other chips makes of each test, as far as it was asked for.
class DeviceTrial::OtherRuns {
 public:
  explicit OtherRuns(const std::vector<PreparedTest>& tests) : tests_(tests) {}

  const std::optional<std::vector<DeviceTensors>>& of(const device::OtherChip& chip, std::size_t test) {
    const auto [place, is_new] = runs_.try_emplace({&chip, test});
    if (is_new) place->second = run_otherwise(tests_[test], chip);
    return place->second;
  }
  bool is_long(std::size_t test) const { return tests_[test].steps > kLongSteps; }
  bool tells(std::size_t test, const device::OtherChip& chip) {
    const auto& outputs = of(chip, test);
    return !outputs || *outputs != tests_[test].expected;
  }

  // Does such a chip give the device's outputs in every test that was run, and fail where the device failed?
  bool explains(const device::OtherChip& chip, const DeviceReport& report) {
    std::vector<std::size_t> order;  // those that differ first: they rule most out
    for (std::size_t i = 0; i < report.findings.size(); ++i) {
      if (report.findings[i].was_tried) order.push_back(i);
    }
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return !report.findings[i].is_equal; });
    return std::all_of(order.begin(), order.end(), [&](std::size_t i) {
      const TestFinding& finding = report.findings[i];
      const auto& outputs = of(chip, i);
      return finding.failure.ok() ? outputs && *outputs == finding.outputs : !outputs;
    });
  }

  AssumptionFinding judge(const device::OtherChip& chip, const DeviceReport& report) {
    AssumptionFinding found{&chip, AssumptionFinding::Verdict::kNotShown, {}};
    bool are_equal = true;
    for (const bool among_long : {false, true}) {
      if (among_long && !found.shown_by.empty()) break;
      for (std::size_t i = 0; i < report.findings.size(); ++i) {
        if (!report.findings[i].was_tried || is_long(i) != among_long || !tells(i, chip)) continue;
        found.shown_by.push_back(report.findings[i].test);
        are_equal = are_equal && report.findings[i].is_equal;
      }
    }
    using Verdict = AssumptionFinding::Verdict;
    const auto& explanations = report.explanations;
    if (std::find(explanations.begin(), explanations.end(), &chip) != explanations.end()) {
      found.verdict = Verdict::kRefuted;
    } else if (!found.shown_by.empty()) {
      found.verdict = are_equal ? Verdict::kConfirmed : Verdict::kOpen;
    }
    return found;
  }

 private:
  const std::vector<PreparedTest>& tests_;
  std::map<std::pair<const device::OtherChip*, std::size_t>, std::optional<std::vector<DeviceTensors>>> runs_;
};

DeviceTrial::DeviceTrial() : others_(std::make_unique<OtherRuns>(tests_)) {}
DeviceTrial::~DeviceTrial() = default;

Result<std::unique_ptr<DeviceTrial>> DeviceTrial::prepare() {
  std::unique_ptr<DeviceTrial> trial(new DeviceTrial);
  for (const DeviceTest& test : device_tests()) {
    REEF_ASSIGN_OR_RETURN(trial->tests_.emplace_back(), prepare_test(test));
  }
  return trial;
}

TestedDevice DeviceTrial::otherwise(const device::OtherChip& chip) {
  TestedDevice device;
  device.run = [this, &chip](const PreparedTest& test) -> Result<std::vector<TestedDevice::Answer>> {
    const auto& outputs = others_->of(chip, static_cast<std::size_t>(&test - tests_.data()));
    if (!outputs) return make_error(StatusCode::kIoError, "the chip does not come to the end");
    std::vector<TestedDevice::Answer> answers;
    for (const DeviceTensors& inference : *outputs) answers.push_back({inference, test.simulated_ms});
    return answers;
  };
  return device;
}

DeviceReport DeviceTrial::found(const TestedDevice& device, const std::function<void(const TestFinding&)>& told) const {
  DeviceReport report;
  int failures = 0;
  for (const PreparedTest& test : tests_) {
    TestFinding& finding = report.findings.emplace_back();
    finding.test = test.test;
    finding.simulated_ms = test.simulated_ms;
    finding.was_tried = failures < kMostFailures;
    if (!finding.was_tried) {
      finding.failure = unsupported("not tried, since {} tests have failed", failures);
    } else if (const auto answers = device.run(test); !answers.ok()) {
      finding.failure = answers.status();
      ++failures;
    } else {
      for (const TestedDevice::Answer& answer : *answers) finding.outputs.push_back(answer.outputs);
      if (!answers->empty()) finding.measured_ms = answers->back().milliseconds;
      compare(test.expected, finding);
    }
    told(finding);
  }
  return report;
}

DeviceReport DeviceTrial::run(const TestedDevice& device, const std::function<void(const TestFinding&)>& told) {
  DeviceReport report = found(device, told);
  for (const device::OtherChip& chip : device::other_chips()) {
    if (!report.is_as_expected() && others_->explains(chip, report)) report.explanations.push_back(&chip);
  }
  for (const device::OtherChip& chip : device::other_chips()) {
    report.assumptions.push_back(others_->judge(chip, report));
  }
  return report;
}

}  // namespace reef::compiler
