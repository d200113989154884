// SPDX-License-Identifier: Apache-2.0
#include "retarget/open_template.h"

#include <map>
#include <string_view>

#include "formats/darwinn/reader.h"
#include "formats/darwinn/without_code.h"
#include "ir/describe.h"
#include "retarget/edits.h"

namespace reef::retarget {
namespace {

using darwinn::ExecutableType;

// The compiler's suffix for the output that carries a state to the next invocation.
constexpr std::string_view kStateOutput = "_variable_output";

// Layers of the program belong to operands of the custom operator by name, or else by position. `states`: operands
// whose new value is an output of the program, but not of the operator.
Result<std::vector<std::int32_t>> layer_tensors(const std::vector<darwinn::Layer>& layers, const ir::Subgraph& graph,
                                                const std::vector<std::int32_t>& operands,
                                                const std::vector<std::int32_t>& model_tensors,
                                                const std::map<std::string, std::int32_t>& states) {
  std::vector<std::int32_t> tensors;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::int32_t found = -1;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (graph.tensors[at(operands[k])].name == layers[i].name) found = model_tensors[k];
    }
    const auto state = states.find(layers[i].name);
    if (found < 0 && state != states.end()) found = state->second;
    if (found < 0 && layers.size() == operands.size()) found = model_tensors[i];
    REEF_REQUIRE(found >= 0, "the template's program has a layer '{}' that its operator does not have",
                 ir::describe_name(layers[i].name));
    tensors.push_back(found);
  }
  return tensors;
}

}  // namespace

Result<Template> open_template(const darwinn::Package& package, std::int64_t max_steps, const Budget& budget) {
  if (Status status = darwinn::require_code(package); !status.ok()) return status.in("the template");
  const darwinn::Executable* execution = package.find(ExecutableType::kExecutionOnly);
  if (execution == nullptr) execution = package.find(ExecutableType::kStandAlone);
  const darwinn::Executable* caching = package.find(ExecutableType::kParameterCaching);
  REEF_REQUIRE(execution != nullptr, "the template's package has no program that computes");
  if (package.executables.size() > (caching != nullptr ? 2u : 1u)) {
    return unsupported("the template's package has {} programs; one that computes and one that caches are known",
                       package.executables.size());
  }
  Template compiled;
  REEF_ASSIGN_OR_RETURN(compiled.execution, decode_executable(*execution));
  if (caching != nullptr) {
    REEF_ASSIGN_OR_RETURN(compiled.caching, decode_executable(*caching));
  }
  auto trace = follow(package, max_steps > 0 ? max_steps : kMaxFollowedSteps, budget);
  if (!trace.ok()) return trace.status().in("the template's programs cannot be followed");
  compiled.trace = std::move(trace).value();
  return compiled;
}

void make_views(Template& compiled) {
  compiled.ops.clear();
  for (const TensorOpTrace& trace : compiled.trace.tensor_ops) {
    compiled.ops.push_back(view_of(compiled.execution.program[trace.instruction], trace));
  }
}

Status bind_layers(const ir::Subgraph& graph, const ir::Operator& op, const Alignment& alignment, Template& compiled) {
  const darwinn::Executable& executable = *compiled.execution.executable;
  std::map<std::string, std::int32_t> states;
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const ir::Tensor& tensor = graph.tensors[at(op.inputs[k])];
    if (tensor.is_variable) states[tensor.name + std::string(kStateOutput)] = alignment.inputs[k];
  }
  REEF_ASSIGN_OR_RETURN(compiled.input_tensors,
                        layer_tensors(executable.input_layers, graph, op.inputs, alignment.inputs, {}));
  REEF_ASSIGN_OR_RETURN(compiled.output_tensors,
                        layer_tensors(executable.output_layers, graph, op.outputs, alignment.outputs, states));
  return ok_status();
}

Result<Matching> match_source(const Template& compiled, const Network& network) {
  REEF_ASSIGN_OR_RETURN(Matching matching, match(compiled, network, {.must_be_equal = true, .ops = {}}));
  Report unused;
  REEF_ASSIGN_OR_RETURN(const NewContent content, new_content(compiled, network, matching, unused));
  const std::string difference = difference_to_template(compiled, content);
  REEF_REQUIRE(difference.empty(), "{}", difference);
  return matching;
}

Result<std::unique_ptr<Explanation>> explain(const ir::Model& compiled, const ir::Model& source, std::int64_t max_steps,
                                             const Budget& budget) {
  auto explanation = std::make_unique<Explanation>();
  REEF_ASSIGN_OR_RETURN(explanation->alignment, align(compiled, source));
  const ir::Subgraph& graph = compiled.subgraphs[0];
  const ir::Operator& op = graph.operators[at(explanation->alignment.custom_op)];
  REEF_ASSIGN_OR_RETURN(explanation->custom, darwinn::read_custom_options(op.custom_options));
  REEF_ASSIGN_OR_RETURN(explanation->compiled, open_template(explanation->custom.package, max_steps, budget));
  make_views(explanation->compiled);
  REEF_RETURN_IF_ERROR(bind_layers(graph, op, explanation->alignment, explanation->compiled));
  explanation->network = std::make_unique<Network>(source, explanation->alignment.chip_ops);
  REEF_ASSIGN_OR_RETURN(explanation->matching, match_source(explanation->compiled, *explanation->network));
  return explanation;
}

}  // namespace reef::retarget
