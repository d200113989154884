// SPDX-License-Identifier: Apache-2.0
// Classes out of a model's last layer.
#include <cmath>
#include <cstring>

#include "learn/head_builder.h"
#include "learn/imprinting_head.h"
#include "learn/metadata.h"

namespace reef::learn {
namespace {

using ir::DataType;

const ir::Tensor& operand(const ir::Model& model, std::int32_t op, std::size_t input) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Operator& found = graph.operators[reef::at(op)];
  return graph.tensors[reef::at(found.inputs[input])];
}
const ir::Tensor& result_of(const ir::Model& model, std::int32_t op) {
  const ir::Subgraph& graph = model.subgraphs[0];
  return graph.tensors[reef::at(graph.operators[reef::at(op)].outputs[0])];
}

// Weight i of a class, as a real number.
Result<std::vector<double>> real_weights(const ir::Tensor& tensor, const Bytes& bytes, std::size_t c,
                                         std::size_t size) {
  std::vector<double> result(size);
  if (tensor.type == DataType::kFloat32) {
    for (std::size_t i = 0; i < size; ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + (c * size + i) * sizeof(float), sizeof(float));
      REEF_REQUIRE(std::isfinite(value), "weight {} of class {} is not finite", i, c);
      result[i] = value;
    }
    return result;
  }
  const ir::Quantization& q = tensor.quantization;
  const std::size_t at = q.scale.size() > 1 ? c : 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint8_t byte = bytes.data()[c * size + i];
    const int stored = tensor.type == DataType::kInt8 ? static_cast<std::int8_t>(byte) : byte;
    result[i] = q.scale[at] * (stored - static_cast<double>(q.zero_point[at]));
  }
  return result;
}

Status check_weights(const ir::Tensor& tensor, const Head& head) {
  const bool is_8bit = ir::is_integer_8(tensor.type);
  REEF_REQUIRE(is_8bit || tensor.type == DataType::kFloat32, "weights '{}' are {}; float32, int8 or uint8 is needed",
               tensor.name, ir::type_name(tensor.type));
  if (!is_8bit) return ok_status();
  const std::size_t scales = tensor.quantization.scale.size();
  REEF_REQUIRE(
      (scales == 1 || (scales == static_cast<std::size_t>(head.classes) && tensor.quantization.dimension == 0)) &&
          tensor.quantization.zero_point.size() == scales,
      "weights '{}' have {} scales and {} zero points for {} classes", tensor.name, scales,
      tensor.quantization.zero_point.size(), head.classes);
  return ok_status();
}

// The factor of MUL; 0: not to be read.
double factor_of(const ir::Model& model, const Head& head) {
  const ir::Tensor& tensor = operand(model, head.factor, 1);
  const ir::Quantization& q = tensor.quantization;
  const bool is_8bit = ir::is_integer_8(tensor.type) && q.scale.size() == 1 && q.zero_point.size() == 1;
  if (tensor.type != DataType::kFloat32 && !is_8bit) return 0;
  const auto value = real_weights(tensor, ir::constant_data(model, tensor), 0, 1);
  return value.ok() && (*value)[0] > 0 ? (*value)[0] : 0;
}

// Reads the number that the biases subtract, if it is the same for all classes, and the range of the layer's result.
void read_range(const ir::Model& model, const Head& head, ImprintingHeadState& state) {
  const ir::Tensor& cosines = result_of(model, head.layer);
  const ir::Operator& layer = model.subgraphs[0].operators[reef::at(head.layer)];
  if (cosines.quantization.scale.size() != 1 || layer.inputs.size() < 3 || layer.inputs[2] < 0) return;
  const ir::Tensor& biases = operand(model, head.layer, 2);
  const Bytes& bytes = ir::constant_data(model, biases);
  if (biases.type != DataType::kInt32 || biases.quantization.scale.empty() || bytes.size() < sizeof(std::int32_t))
    return;
  std::int32_t first = 0;
  std::memcpy(&first, bytes.data(), sizeof(first));
  state.middle = -static_cast<double>(first) * biases.quantization.scale[0];
  state.reach = 127.0 * cosines.quantization.scale[0];
  state.has_range = true;
}

}  // namespace

Result<ReadImprinting> read_classes(const ir::Model& model, const Head& head) {
  REEF_REQUIRE(head.kind != HeadKind::kNone, "the model has no classes");
  const ir::Tensor& weights = operand(model, head.layer, 1);
  REEF_RETURN_IF_ERROR(check_weights(weights, head));
  const Bytes& bytes = ir::constant_data(model, weights);
  REEF_ASSIGN_OR_RETURN(const std::optional<Learning> learning, stored_learning(model));
  ReadImprinting read;
  const auto size = static_cast<std::size_t>(head.dimension);
  const bool is_8bit = ir::is_integer_8(weights.type);
  const bool is_imprinted = head.kind == HeadKind::kImprinting;
  for (std::size_t c = 0; c < static_cast<std::size_t>(head.classes); ++c) {
    ImprintedClass each;
    REEF_ASSIGN_OR_RETURN(each.sum, real_weights(weights, bytes, c, size));
    each.is_trainable = false;
    each.has_changed = false;
    if (learning && c < learning->classes.size()) {
      const LearnedClass& known = learning->classes[c];
      each.name = known.name;
      each.images = known.images;
      if (is_imprinted && known.sum_length) {
        each.is_trainable = true;
        const double scale = *known.sum_length / std::max(1e-12, each.sum_length());
        for (double& value : each.sum) value *= scale;
      }
    }
    if (is_8bit && is_imprinted) {
      const std::size_t at = weights.quantization.scale.size() > 1 ? c : 0;
      each.stored =
          StoredWeights{{bytes.data() + c * size, bytes.data() + (c + 1) * size}, weights.quantization.scale[at]};
    }
    read.classes.push_back(std::move(each));
  }
  if (!is_imprinted) return read;
  read.state.factor = factor_of(model, head);
  if (weights.type == DataType::kUInt8) {
    read.state.weight_scale = weights.quantization.scale[0];
    read.state.weight_zero_point = static_cast<std::int32_t>(weights.quantization.zero_point[0]);
  }
  if (is_8bit) read_range(model, head, read.state);
  return read;
}

}  // namespace reef::learn
