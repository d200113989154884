// SPDX-License-Identifier: Apache-2.0
#include "compiler/training_graph.h"

#include <cmath>
#include <set>

#include "execute/reference/chip_reference.h"
#include "ir/verify.h"

namespace reef::compiler {
namespace {

constexpr std::int32_t kInt8Offset = 128;  // the chip's codes are so much higher than TFLite's

// Tensors of `model` that share their buffer with another tensor or with metadata.
std::set<std::int32_t> shared_buffers(const ir::Model& model) {
  std::set<std::int32_t> seen = {0}, shared = {0};
  const auto see = [&](std::int32_t buffer) {
    if (!seen.insert(buffer).second) shared.insert(buffer);
  };
  for (const ir::Subgraph& graph : model.subgraphs) {
    for (const ir::Tensor& tensor : graph.tensors) see(tensor.buffer);
  }
  for (const ir::Metadata& metadata : model.metadata) see(metadata.buffer);
  return shared;
}

Status set_data(ir::Model& model, ir::Tensor& tensor, std::span<const std::uint8_t> data,
                const std::set<std::int32_t>& shared) {
  const Bytes& before = ir::constant_data(model, tensor);
  REEF_REQUIRE(!before.empty(), "tensor '{}' is no constant, so it has no content to replace", tensor.name);
  REEF_REQUIRE(before.size() == data.size(), "tensor '{}' has {} bytes, not {}", tensor.name, before.size(),
               data.size());
  if (shared.contains(tensor.buffer)) {
    tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
    model.buffers.emplace_back();
  }
  model.buffers[at(tensor.buffer)].data = Bytes::copy_of(data);
  return ok_status();
}

Status set_scales(ir::Tensor& tensor, const TensorEdit& edit) {
  ir::Quantization& quantization = tensor.quantization;
  REEF_REQUIRE(quantization.scale.size() == edit.scales.size() && edit.zero_points.size() == edit.scales.size(),
               "tensor '{}' has {} scales, not {} with {} zero points", tensor.name, quantization.scale.size(),
               edit.scales.size(), edit.zero_points.size());
  for (const float scale : edit.scales) {
    REEF_REQUIRE(std::isfinite(scale) && scale > 0, "tensor '{}' cannot have a scale of {}", tensor.name, scale);
  }
  quantization.scale = edit.scales;
  quantization.zero_point = edit.zero_points;
  quantization.min.clear();  // were observed for the old scale
  quantization.max.clear();
  return ok_status();
}

std::string why_left(const partition::OpVerdict& verdict) {
  if (verdict.fits()) return "it lies outside of the part that the chip gets";
  const partition::Finding& finding = verdict.findings.front();
  return finding.particulars.empty() ? std::string(finding.rule->says) : finding.particulars;
}

ir::Tensor table_tensor(std::string name, const ops::ChipAffine& affine) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = ir::DataType::kInt8;
  tensor.shape = ir::Shape({1, 1, 1, 256});
  tensor.has_quantization = true;
  tensor.quantization.scale = {affine.scale};
  tensor.quantization.zero_point = {affine.zero_point - kInt8Offset};
  return tensor;
}

}  // namespace

Result<TrainingGraph> make_training_graph(const std::shared_ptr<const ir::Model>& model, const PlanOptions& options,
                                          GraphUse use) {
  PlanOptions wanted = options;
  if (use == GraphUse::kTraining) wanted.rewrites.disable.emplace_back("function-table");
  REEF_ASSIGN_OR_RETURN(const Plan plan, make_faster_plan(model, wanted));
  REEF_REQUIRE(!plan.assessment.is_float(), "the model is not quantized; `reef quantize` does that");
  TrainingGraph graph;
  graph.model = plan.model;
  std::set<std::int32_t> on_chip;
  for (const partition::Part& part : plan.partition.parts) on_chip.insert(part.ops.begin(), part.ops.end());
  for (std::size_t i = 0; i < plan.model->subgraphs[0].operators.size(); ++i) {
    const bool is_left = !on_chip.contains(static_cast<std::int32_t>(i));
    graph.ops.push_back({is_left ? why_left(plan.assessment.ops[i]) : "", plan.source_op[i] < 0});
  }
  for (const passes::Application& application : plan.rewrites) {
    if (application.made) graph.rewrites.push_back(application.what);
  }
  return graph;
}

Result<ir::Model> with_edits(const ir::Model& model, std::span<const TensorEdit> edits) {
  ir::Model result = model;
  std::vector<ir::Tensor>& tensors = result.subgraphs[0].tensors;
  const std::set<std::int32_t> shared = shared_buffers(model);
  for (const TensorEdit& edit : edits) {
    REEF_REQUIRE(edit.tensor >= 0 && static_cast<std::size_t>(edit.tensor) < tensors.size(), "there is no tensor {}",
                 edit.tensor);
    ir::Tensor& tensor = tensors[at(edit.tensor)];
    if (!edit.data.empty()) REEF_RETURN_IF_ERROR(set_data(result, tensor, edit.data, shared));
    if (!edit.scales.empty()) REEF_RETURN_IF_ERROR(set_scales(tensor, edit));
  }
  REEF_RETURN_IF_ERROR(ir::verify(result));
  return result;
}

// The operator alone, on a tensor that holds every code once.
Result<FunctionCodes> chip_function_codes(const ir::Operator& op, const ops::ChipAffine& in,
                                          const ops::ChipAffine& out) {
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  graph.tensors = {table_tensor("in", in), table_tensor("out", out)};
  graph.inputs = {0};
  graph.outputs = {1};
  ir::Operator& single = graph.operators.emplace_back(op);
  single.inputs.assign(op.inputs.size(), 0);
  single.outputs = {1};
  REEF_REQUIRE(op.outputs.size() == 1 && (op.inputs.size() == 1 || ops::has_table(op)),
               "{} is no function of one tensor", op.type);
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i - kInt8Offset);
  REEF_ASSIGN_OR_RETURN(const reference::TensorBytes results,
                        reference::evaluate_tensors_as_chip(model, {{0, codes}}, {1}));
  FunctionCodes table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::int8_t>(results.at(1)[i]) + kInt8Offset;
  }
  return table;
}

}  // namespace reef::compiler
