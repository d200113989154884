// SPDX-License-Identifier: Apache-2.0
#include "micro/edge_tpu_rules.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "formats/darwinn/reader.h"
#include "ir/describe.h"

namespace reef::micro {
namespace {

constexpr std::string_view kCutElsewhere =
    "Compile with `--target micro`, or end the part elsewhere (`reef compile -i TENSOR`).";

const ir::Tensor* first_input(const ir::Subgraph& graph, const ir::Operator& op) {
  if (op.inputs.empty() || op.inputs[0] < 0) return nullptr;
  return &graph.tensors[at(op.inputs[0])];
}

void check_inputs(const ir::Subgraph& graph, const ir::Operator& op, std::vector<Finding>& findings) {
  if (op.inputs.size() <= 1) return;
  findings.push_back(
      {"edge-tpu-inputs",
       fmt::format("Coral's SDK sends the first operand of an Edge TPU operator for all of them, and this "
                   "one has {} ('{}' is the first).",
                   op.inputs.size(),
                   ir::describe_name(first_input(graph, op) == nullptr ? std::string() : first_input(graph, op)->name)),
       std::string(kCutElsewhere)});
}

// int8 operands are changed in place, so that nobody else may read them afterwards.
void check_changed_input(const ir::Subgraph& graph, std::size_t index, std::vector<Finding>& findings) {
  const ir::Operator& op = graph.operators[index];
  const ir::Tensor* input = first_input(graph, op);
  if (input == nullptr || (input->type != ir::DataType::kInt8 && input->type != ir::DataType::kInt16)) return;
  const std::int32_t tensor = op.inputs[0];
  std::string reader;
  for (std::size_t i = index + 1; i < graph.operators.size(); ++i) {
    const auto& inputs = graph.operators[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), tensor) == inputs.end()) continue;
    reader = ir::describe_op(graph, static_cast<std::int32_t>(i));
    break;
  }
  if (std::find(graph.outputs.begin(), graph.outputs.end(), tensor) != graph.outputs.end())
    reader = "the model's output";
  if (reader.empty()) return;
  findings.push_back(
      {"edge-tpu-input-read-again",
       fmt::format("Coral's SDK flips the sign bits of a signed operand in place before it sends it, and "
                   "'{}' is read again by {}.",
                   ir::describe_name(input->name), reader),
       std::string(kCutElsewhere)});
}

void check_executable(const darwinn::Executable& executable, std::vector<Finding>& findings) {
  const auto refuse = [&](std::string_view rule, std::string reason) {
    findings.push_back({rule, std::move(reason), "Compile the source again with `reef compile --target micro`."});
  };
  if (executable.scratch_size_bytes > 0) {
    refuse("edge-tpu-scratch", "The program keeps data in the host's memory, which Coral's SDK does not provide.");
  }
  if (!executable.dma_hints || !executable.dma_hints->is_complete) {
    refuse("edge-tpu-hints", "The program does not list its transfers, by which Coral's SDK runs it.");
    return;
  }
  std::map<std::string, int> fetched;
  for (const darwinn::DmaHint& hint : executable.dma_hints->hints) {
    const auto* descriptor = std::get_if<darwinn::DescriptorHint>(&hint.hint);
    if (descriptor == nullptr || !descriptor->use) continue;
    if (descriptor->use->base == darwinn::BaseAddress::kOutput) ++fetched[descriptor->use->name];
  }
  for (const auto& [name, times] : fetched) {
    if (times == 1) continue;
    refuse("edge-tpu-output-pieces",
           fmt::format("The result '{}' comes in {} pieces, and Coral's SDK writes each to the start of its buffer.",
                       ir::describe_name(name), times));
  }
  for (const darwinn::Layer& layer : executable.output_layers) {
    if (layer.executions_per_inference == 1) continue;
    refuse("edge-tpu-batch", fmt::format("'{}' takes {} executions, and Coral's SDK runs a program once.",
                                         ir::describe_name(layer.name), layer.executions_per_inference));
  }
}

void check_package(const ir::Operator& op, std::vector<Finding>& findings) {
  if (op.custom_options.empty()) return;
  const auto options = darwinn::read_custom_options(op.custom_options);
  if (!options.ok()) {
    findings.push_back({"edge-tpu-package", fmt::format("Its package cannot be read: {}.", options.status().message()),
                        "Compile the source again."});
    return;
  }
  if (options->package.is_bare) {
    findings.push_back({"edge-tpu-package", "It was compiled before 2020, in a form that Coral's SDK does not read.",
                        "Compile the source again with `reef compile --target micro`."});
    return;
  }
  for (const darwinn::Executable& executable : options->package.executables) check_executable(executable, findings);
}

}  // namespace

std::vector<Finding> check_edge_tpu_op(const ir::Model& model, std::size_t op) {
  std::vector<Finding> findings;
  const ir::Subgraph& graph = model.subgraphs[0];
  check_inputs(graph, graph.operators[op], findings);
  check_changed_input(graph, op, findings);
  check_package(graph.operators[op], findings);
  return findings;
}

std::int64_t driver_buffer_bytes(const ir::Operator& op) {
  if (op.custom_options.empty()) return 0;
  const auto options = darwinn::read_custom_options(op.custom_options);
  if (!options.ok()) return 0;
  std::int64_t bytes = 0;
  for (const darwinn::Executable& executable : options->package.executables) {
    for (const darwinn::Layer& layer : executable.output_layers) bytes += layer.size_bytes;
  }
  return bytes;
}

}  // namespace reef::micro
