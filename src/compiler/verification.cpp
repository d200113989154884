// SPDX-License-Identifier: Apache-2.0
#include "compiler/verification.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "audit/audit.h"
#include "ir/describe.h"
#include "ir/pseudo_random.h"

namespace reef::compiler {
namespace {

using reference::TensorBytes;

const ir::Tensor& tensor_of(const ir::Model& model, std::int32_t index) {
  return model.subgraphs[0].tensors[at(index)];
}

std::size_t bytes_of(const ir::Tensor& tensor) {
  return static_cast<std::size_t>(ir::byte_size(tensor.shape, tensor.type).value_or(0));
}

// ---- Comparing ----

template <typename T>
std::vector<double> numbers(const std::vector<std::uint8_t>& bytes) {
  std::vector<double> result;
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    result.push_back(static_cast<double>(value));
  }
  return result;
}

Result<std::vector<double>> numbers_of(const ir::Tensor& tensor, const std::vector<std::uint8_t>& bytes) {
  switch (tensor.type) {
    case ir::DataType::kInt8:
      return numbers<std::int8_t>(bytes);
    case ir::DataType::kUInt8:
      return numbers<std::uint8_t>(bytes);
    case ir::DataType::kBool:
      return numbers<std::uint8_t>(bytes);
    case ir::DataType::kInt16:
      return numbers<std::int16_t>(bytes);
    case ir::DataType::kInt32:
      return numbers<std::int32_t>(bytes);
    case ir::DataType::kInt64:
      return numbers<std::int64_t>(bytes);
    case ir::DataType::kFloat32:
      return numbers<float>(bytes);
    default:
      return unsupported("tensor '{}' is {}, which is not compared", ir::describe_name(tensor.name),
                         ir::type_name(tensor.type));
  }
}

// ---- The package's tensors ----

Result<std::int32_t> tensor_named(const ir::Subgraph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].name == name) return static_cast<std::int32_t>(i);
  }
  const std::string_view suffix = reference::kVariableOutputSuffix;
  if (name.ends_with(suffix)) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t variable,
                          tensor_named(graph, name.substr(0, name.size() - suffix.size())));
    return -1 - variable;
  }
  return invalid_input("the source has no tensor '{}', which the compiled model's part begins or ends with", name);
}

Result<const darwinn::Executable*> execution_of(const darwinn::Package& package) {
  const darwinn::Executable* executable = package.find(darwinn::ExecutableType::kExecutionOnly);
  if (executable == nullptr) executable = package.find(darwinn::ExecutableType::kStandAlone);
  REEF_REQUIRE(executable != nullptr, "the package has no program to execute");
  return executable;
}

// What the reference is asked for: tensors by layer, states as -1 - n.
Result<std::vector<std::int32_t>> layer_tensors(const ir::Model& model, const std::vector<darwinn::Layer>& layers) {
  std::vector<std::int32_t> tensors;
  for (const darwinn::Layer& layer : layers) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, tensor_named(model.subgraphs[0], layer.name));
    tensors.push_back(tensor);
  }
  return tensors;
}

// The same, looked for among the part's own tensors only: others may have equal names.
Result<std::vector<std::int32_t>> among(const ir::Model& model, const std::vector<std::int32_t>& tensors,
                                        const std::vector<darwinn::Layer>& layers) {
  std::vector<std::int32_t> result;
  for (const darwinn::Layer& layer : layers) {
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](std::int32_t t) {
      return t >= 0 ? tensor_of(model, t).name == layer.name
                    : tensor_of(model, -1 - t).name + reference::kVariableOutputSuffix == layer.name;
    });
    REEF_REQUIRE(found != tensors.end(), "the package has a layer '{}' that the part does not begin or end with",
                 layer.name);
    result.push_back(*found);
  }
  return result;
}

Status equal_outputs(const ir::Model& model, const std::vector<std::int32_t>& outputs, const TensorList& found,
                     const TensorBytes& expected) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ir::Tensor& tensor = tensor_of(model, outputs[i] < 0 ? -1 - outputs[i] : outputs[i]);
    REEF_ASSIGN_OR_RETURN(const TensorComparison comparison,
                          compare_tensors(tensor, found[i], expected.at(outputs[i]), 0));
    if (comparison.different > 0) {
      return internal_error("the compiled code does not compute what the model says: {}", comparison.to_string());
    }
  }
  return ok_status();
}

}  // namespace

std::string TensorComparison::to_string() const {
  if (different == 0) return fmt::format("'{}': all {} values agree", ir::describe_name(name), elements);
  return fmt::format("'{}': {} of {} values differ, by {} at most; the first is value {}: {} instead of {}",
                     ir::describe_name(name), different, elements, largest, first, found, expected);
}

Result<TensorComparison> compare_tensors(const ir::Tensor& tensor, const std::vector<std::uint8_t>& found,
                                         const std::vector<std::uint8_t>& expected, double tolerance) {
  REEF_REQUIRE(found.size() == expected.size(), "'{}' has {} bytes, not {}", ir::describe_name(tensor.name),
               found.size(), expected.size());
  REEF_ASSIGN_OR_RETURN(const std::vector<double> a, numbers_of(tensor, found));
  REEF_ASSIGN_OR_RETURN(const std::vector<double> b, numbers_of(tensor, expected));
  TensorComparison result;
  result.name = tensor.name;
  result.elements = static_cast<std::int64_t>(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const double apart = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]);
    result.largest = std::isnan(apart) ? apart : std::max(result.largest, apart);
    if (apart <= tolerance) continue;
    if (result.different++ == 0) {
      result.first = static_cast<std::int64_t>(i);
      result.found = a[i];
      result.expected = b[i];
    }
  }
  return result;
}

Result<VerifiedPart> part_of_package(const ir::Model& source, const darwinn::Package& package) {
  REEF_ASSIGN_OR_RETURN(const darwinn::Executable* executable, execution_of(package));
  REEF_ASSIGN_OR_RETURN(std::vector<std::int32_t> inputs, layer_tensors(source, executable->input_layers));
  REEF_ASSIGN_OR_RETURN(std::vector<std::int32_t> outputs, layer_tensors(source, executable->output_layers));
  return part_between(source, std::move(inputs), std::move(outputs));
}

VerifiedPart part_between(const ir::Model& source, std::vector<std::int32_t> inputs,
                          std::vector<std::int32_t> outputs) {
  const ir::Subgraph& graph = source.subgraphs[0];
  VerifiedPart part;
  part.inputs = std::move(inputs);
  part.outputs = std::move(outputs);
  std::vector<bool> is_needed(graph.tensors.size());
  for (const std::int32_t t : part.outputs) {
    if (t >= 0) is_needed[at(t)] = true;
  }
  const auto is_given = [&](std::int32_t t) {
    return std::find(part.inputs.begin(), part.inputs.end(), t) != part.inputs.end();
  };
  const auto computes = [&](std::int32_t t) { return t >= 0 && is_needed[at(t)] && !is_given(t); };
  for (auto i = static_cast<std::int32_t>(graph.operators.size()) - 1; i >= 0; --i) {
    const ir::Operator& op = graph.operators[at(i)];
    if (std::none_of(op.outputs.begin(), op.outputs.end(), computes)) continue;
    part.ops.push_back(i);
    for (const std::int32_t t : op.inputs) {
      if (t >= 0) is_needed[at(t)] = true;
    }
  }
  std::reverse(part.ops.begin(), part.ops.end());
  return part;
}

Result<LayerOrder> layer_order(const ir::Model& model, const VerifiedPart& part,
                               const std::vector<darwinn::Layer>& inputs, const std::vector<darwinn::Layer>& outputs) {
  LayerOrder order;
  REEF_ASSIGN_OR_RETURN(order.inputs, among(model, part.inputs, inputs));
  std::vector<std::int32_t> results = part.outputs;
  for (const std::int32_t t : part.inputs) {  // variables that it may change
    if (tensor_of(model, t).is_variable) results.push_back(-1 - t);
  }
  REEF_ASSIGN_OR_RETURN(order.outputs, among(model, results, outputs));
  return order;
}

PartVerifier::PartVerifier(Budget budget)
    : budget_(std::move(budget)),
      device_(std::make_shared<device::Device>(device::Options{.threads = 1, .budget = budget_})) {}

Status PartVerifier::check_soundness(const darwinn::Package& package) {
  REEF_ASSIGN_OR_RETURN(const audit::AuditReport report, audit::audit(package, {.budget = budget_}));
  const auto wrong = std::find_if_not(report.findings.begin(), report.findings.end(), audit::is_googles_gather);
  if (wrong != report.findings.end()) {
    return internal_error("the soundness checker found mistakes in the compiled code, the first: {}", wrong->sentence);
  }
  rests_on_timing_ = rests_on_timing_ || !report.findings.empty();
  return ok_status();
}

Status PartVerifier::verify(const ir::Model& model, const VerifiedPart& part, const darwinn::Package& package,
                            std::uint32_t seed) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
  REEF_ASSIGN_OR_RETURN(const LayerOrder order, layer_order(model, part, loaded->inputs(), loaded->outputs()));
  const std::vector<std::int32_t>&inputs = order.inputs, &outputs = order.outputs;
  TensorBytes given;
  std::vector<std::span<const std::uint8_t>> tensors;
  for (const std::int32_t index : inputs) {
    const ir::Tensor& tensor = tensor_of(model, index);
    std::vector<std::uint8_t>& bytes = given[index];
    bytes.resize(bytes_of(tensor));
    ir::fill_pseudo_random(tensor.type, seed++, std::as_writable_bytes(std::span(bytes)));
    tensors.emplace_back(bytes);
  }
  const reference::ChipReferenceOptions options{compiler_generation_of(package), budget_};
  REEF_ASSIGN_OR_RETURN(const TensorBytes expected,
                        reference::evaluate_tensors_as_chip(model, given, outputs, options));
  REEF_ASSIGN_OR_RETURN(const TensorList found, device_->run(loaded, tensors));
  return equal_outputs(model, outputs, found, expected);
}

int compiler_generation_of(const darwinn::Package& package) {
  constexpr int kRuntimeOfGeneration16 = 14, kRuntimeOfGeneration15 = 12;
  if (package.compiler_version.starts_with("reef")) return reference::kReefGeneration;
  if (package.min_runtime_version >= kRuntimeOfGeneration16) return 16;
  if (package.min_runtime_version >= kRuntimeOfGeneration15) return 15;
  // Both older generations ask for runtime 10; the oldest does not write the field of the model's identifier.
  const bool writes_identifier =
      !package.model_identifier.empty() ||
      (package.written_defaults & darwinn::field_set(darwinn::Package::kModelIdentifier)) != 0;
  return writes_identifier ? 14 : reference::kOldestGeneration;
}

double estimated_verification_seconds(const partition::CostModel& costs, const std::vector<std::int32_t>& ops) {
  // A cycle of the busiest tile is a step of 16 tensor units: one run on the device, one walk of the checker and, on a
  // scalar CPU, up to 4096 products of the reference. Measured on MobileNets v1 and v2 (docs/performance.md).
  constexpr double kSecondsPerCycle = 4e-6;
  double cycles = 0;
  for (const std::int32_t op : ops) cycles += costs.work(op).tensor_cycles + costs.work(op).move_cycles;
  return cycles * kSecondsPerCycle;
}

}  // namespace reef::compiler
