// SPDX-License-Identifier: Apache-2.0
#include "ops/standard_forms.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/at.h"
#include "formats/tflite/operator_codes.h"

namespace reef::ops {
namespace {

bool standard_forms_is_fixed(const ir::Tensor& tensor) {
  const std::vector<std::int32_t>& signature = tensor.shape_signature;
  return tensor.shape.is_usable() &&
         std::none_of(signature.begin(), signature.end(), [](std::int32_t size) { return size < 0; });
}

std::int32_t add_ints(ir::Model& model, ir::Subgraph& graph, const std::string& name,
                      const std::array<std::int32_t, 4>& values) {
  std::vector<std::uint8_t> bytes(sizeof values);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  ir::Buffer buffer;
  buffer.data = Bytes(std::move(bytes));
  ir::Tensor tensor;
  tensor.name = name;
  tensor.type = ir::DataType::kInt32;
  tensor.shape = {4};
  tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
  model.buffers.push_back(std::move(buffer));
  graph.tensors.push_back(std::move(tensor));
  return static_cast<std::int32_t>(graph.tensors.size()) - 1;
}

// The options are the beginning of a C struct of TFLite's: padding (1 is SAME, 2 is VALID), stride_width,
// stride_height.
struct TransposeConvParams {
  std::int32_t padding = 0, stride_w = 0, stride_h = 0;
};

std::optional<TransposeConvParams> params_of(const ir::Operator& op) {
  constexpr std::int32_t kMostStride = 1 << 16;
  TransposeConvParams params;
  if (op.custom_options.size() < sizeof params) return std::nullopt;
  std::memcpy(&params, op.custom_options.data(), sizeof params);
  const bool is_sound = (params.padding == 1 || params.padding == 2) && params.stride_w >= 1 && params.stride_h >= 1 &&
                        params.stride_w <= kMostStride && params.stride_h <= kMostStride;
  return is_sound ? std::optional(params) : std::nullopt;
}

// Size of the result along an axis: TRANSPOSE_CONV finds from it the padding that the custom operator has.
std::int64_t result_size(std::int64_t input, std::int64_t filter, std::int64_t stride, bool is_same) {
  const std::int64_t padding = is_same ? std::max<std::int64_t>(0, filter - (input - 1) % stride - 1) : 0;
  return stride * (input - 1) + filter - padding;
}

bool transpose_conv(ir::Model& model, ir::Subgraph& graph, std::size_t index) {
  const ir::Operator op = graph.operators[index];
  const auto params = params_of(op);
  if (!params || op.inputs.size() != 3 || op.outputs.size() != 1) return false;
  for (const std::int32_t input : op.inputs) {
    if (input < 0 || !standard_forms_is_fixed(graph.tensors[at(input)])) return false;
    if (graph.tensors[at(input)].type != ir::DataType::kFloat32) return false;
  }
  const ir::Shape image = graph.tensors[at(op.inputs[0])].shape, filter = graph.tensors[at(op.inputs[1])].shape;
  if (image.rank() != 4 || filter.rank() != 4 || image.elements() == 0 || filter.elements() == 0) return false;
  const bool is_same = params->padding == 1;
  const std::int64_t rows = result_size(image[1], filter[1], params->stride_h, is_same);
  const std::int64_t columns = result_size(image[2], filter[2], params->stride_w, is_same);
  if (rows > INT32_MAX || columns > INT32_MAX) return false;
  const std::array<std::int32_t, 4> sizes = {image[0], static_cast<std::int32_t>(rows),
                                             static_cast<std::int32_t>(columns), filter[0]};
  const std::int32_t shape = add_ints(model, graph, graph.tensors[at(op.outputs[0])].name + "/output_shape", sizes);
  ir::Operator made;
  made.type = name_of(Op::TRANSPOSE_CONV);
  made.builtin_code = tflite::builtin_code(made.type);
  made.version = 3;  // the first with a bias
  made.options_type = "TransposeConvOptions";
  made.attributes.set("padding", ir::EnumName{is_same ? "SAME" : "VALID"});
  made.attributes.set("stride_w", std::int64_t{params->stride_w});
  made.attributes.set("stride_h", std::int64_t{params->stride_h});
  made.attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  made.inputs = {shape, op.inputs[1], op.inputs[0], op.inputs[2]};
  made.outputs = op.outputs;
  graph.operators[index] = std::move(made);
  return true;
}

}  // namespace

bool use_standard_forms(ir::Model& model) {
  bool is_changed = false;
  for (ir::Subgraph& graph : model.subgraphs) {
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const ir::Operator& op = graph.operators[i];
      if (!op.is_custom() || op.type != "Convolution2DTransposeBias") continue;
      is_changed = transpose_conv(model, graph, i) || is_changed;
    }
  }
  return is_changed;
}

}  // namespace reef::ops
