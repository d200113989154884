// SPDX-License-Identifier: Apache-2.0
#include "compiler/device_trial.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "compiler/code_generator.h"
#include "execute/device/device.h"
#include "execute/device/timeline.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace reef::compiler {
namespace {

constexpr std::array kTests = {
#define DEVICE_TEST(name, is_reefs_own, rests_on, inputs, outputs, text) \
  DeviceTest{name, is_reefs_own, rests_on, inputs, outputs, text},
#include "compiler/device_trials.def"
#undef DEVICE_TEST
};

constexpr int kInferences = 2;
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
    if (tensor.buffer == 0 || !model.buffers[static_cast<std::size_t>(tensor.buffer)].data.empty()) continue;
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
    model.buffers[static_cast<std::size_t>(tensor.buffer)].data = Bytes(std::move(bytes));
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

// All of it, whatever that needs.
Result<std::vector<DeviceTensors>> run_virtual(const PreparedTest& test, darwinn::Package package) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(std::move(package)));
  device::Device device;
  std::vector<DeviceTensors> outputs;
  for (const DeviceTensors& inputs : test.inputs) {
    REEF_ASSIGN_OR_RETURN(outputs.emplace_back(), device.run(loaded, {inputs.begin(), inputs.end()}));
  }
  return outputs;
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

// As a chip with a misreading would understand it.
Result<darwinn::Package> misread(const darwinn::Package& package, isa::Misreading misreading) {
  darwinn::Package changed = package;
  for (darwinn::Executable& executable : changed.executables) {
    for (darwinn::InstructionChunk& chunk : executable.instruction_chunks) {
      REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, isa::apply(misreading, chunk.bitstream.span()));
      chunk.bitstream = Bytes(std::move(bytes));
    }
  }
  return changed;
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

// Does such a chip give the device's outputs of every model that could be run?
bool explains(isa::Misreading misreading, const std::vector<PreparedTest>& tests, const DeviceReport& report) {
  std::vector<std::size_t> order;  // those that differ first: they rule most out
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (report.findings[i].failure.ok()) order.push_back(i);
  }
  std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return !report.findings[i].is_equal; });
  for (const std::size_t i : order) {
    auto package = misread(tests[i].package, misreading);
    if (!package.ok()) return false;
    const auto outputs = run_virtual(tests[i], std::move(*package));
    if (!outputs.ok() || *outputs != report.findings[i].outputs) return false;
  }
  return true;
}

}  // namespace

std::span<const DeviceTest> device_tests() { return kTests; }

Result<PreparedTest> prepare_test(const DeviceTest& test) {
  auto model = model_of(test);
  if (!model.ok()) return model.status().in(fmt::format("the test \"{}\"", test.name));
  PreparedTest prepared;
  prepared.test = &test;
  const ir::Subgraph& graph = model->subgraphs[0];
  PartProgram part{*model, {}, graph.inputs, graph.outputs};
  for (std::size_t i = 0; i < graph.operators.size(); ++i) part.ops.push_back(static_cast<std::int32_t>(i));
  part.caching_token = kFirstToken + static_cast<std::uint64_t>(&test - kTests.data());
  auto package = generate_code(part);
  if (!package.ok()) return package.status().in(fmt::format("the test \"{}\"", test.name));
  prepared.package = std::move(*package);
  Numbers numbers(2);
  for (int k = 0; k < kInferences; ++k) {
    DeviceTensors& inputs = prepared.inputs.emplace_back();
    for (const std::int32_t input : graph.inputs) {
      const auto bytes = graph.tensors[static_cast<std::size_t>(input)].shape.checked_elements().value_or(0);
      auto& values = inputs.emplace_back(static_cast<std::size_t>(bytes));
      for (std::uint8_t& value : values) value = numbers.byte();
    }
  }
  REEF_ASSIGN_OR_RETURN(prepared.expected, run_virtual(prepared, prepared.package));
  REEF_ASSIGN_OR_RETURN(prepared.simulated_ms, simulated_milliseconds(prepared));
  return prepared;
}

bool DeviceReport::is_as_expected() const {
  return std::all_of(findings.begin(), findings.end(),
                     [](const TestFinding& finding) { return finding.failure.ok() && finding.is_equal; });
}

Result<DeviceReport> test_device(const TestedDevice& device, const std::function<void(const TestFinding&)>& told) {
  DeviceReport report;
  std::vector<PreparedTest> prepared;
  for (const DeviceTest& test : device_tests()) {
    REEF_ASSIGN_OR_RETURN(prepared.emplace_back(), prepare_test(test));
    TestFinding& finding = report.findings.emplace_back();
    finding.test = &test;
    finding.simulated_ms = prepared.back().simulated_ms;
    const auto answers = device.run(prepared.back());
    if (!answers.ok()) {
      finding.failure = answers.status();
    } else {
      for (const TestedDevice::Answer& answer : *answers) finding.outputs.push_back(answer.outputs);
      if (!answers->empty()) finding.measured_ms = answers->back().milliseconds;
      compare(prepared.back().expected, finding);
    }
    told(finding);
  }
  const bool has_difference =
      std::any_of(report.findings.begin(), report.findings.end(),
                  [](const TestFinding& finding) { return finding.failure.ok() && !finding.is_equal; });
  for (const isa::MisreadingInfo& info : isa::misreadings()) {
    if (has_difference && explains(info.misreading, prepared, report)) report.explanations.push_back(&info);
  }
  return report;
}

}  // namespace reef::compiler
