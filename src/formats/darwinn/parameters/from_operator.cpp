// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/from_operator.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/describe.h"
#include "ir/op.h"
#include "numeric/chip_activation.h"

namespace reef::darwinn {
namespace {

constexpr Op kConv2d = Op::CONV_2D;
constexpr Op kDepthwiseConv2d = Op::DEPTHWISE_CONV_2D;
constexpr Op kFullyConnected = Op::FULLY_CONNECTED;
constexpr std::uint8_t kSignBit = 0x80;

// An operator's tensors, found and checked for what every layer needs.
struct Operands {
  const ir::Tensor* input = nullptr;
  const ir::Tensor* weights = nullptr;
  const ir::Tensor* output = nullptr;
  std::span<const std::uint8_t> weight_bytes;
  std::vector<std::int32_t> biases;  // empty: no bias operand
};

Status require_byte_tensor(const ir::Tensor& tensor, std::string_view role) {
  if (ir::is_integer_8(tensor.type)) return ok_status();
  return unsupported("{} '{}' is {}; the chip computes on int8 or uint8", role, ir::describe_name(tensor.name),
                     ir::type_name(tensor.type));
}

Result<float> scale_of(const ir::Tensor& tensor, std::string_view role, std::size_t index = 0) {
  const std::vector<float>& scales = tensor.quantization.scale;
  REEF_REQUIRE(index < scales.size(), "{} '{}' has no scale: quantize the model first", role,
               ir::describe_name(tensor.name));
  REEF_REQUIRE(std::isfinite(scales[index]) && scales[index] > 0,
               "{} '{}' has scale {}, which is not a positive number", role, ir::describe_name(tensor.name),
               scales[index]);
  return scales[index];
}

// The chip's zero point, 0..255.
Result<std::uint8_t> zero_point_of(const ir::Tensor& tensor, std::string_view role) {
  const std::vector<std::int64_t>& points = tensor.quantization.zero_point;
  const std::int64_t point = points.empty() ? 0 : points[0];
  if (std::any_of(points.begin(), points.end(), [&](std::int64_t other) { return other != point; })) {
    return unsupported("{} '{}' has different zero points per channel; no layout for that is known", role,
                       ir::describe_name(tensor.name));
  }
  const int shift = tensor.type == ir::DataType::kInt8 ? 128 : 0;
  REEF_REQUIRE(point >= -shift && point <= 255 - shift, "{} '{}' has zero point {}, which {} cannot hold", role,
               ir::describe_name(tensor.name), point, ir::type_name(tensor.type));
  return static_cast<std::uint8_t>(point + shift);
}

Status require_per_tensor(const ir::Tensor& tensor, std::string_view role) {
  if (tensor.quantization.scale.size() == 1) return scale_of(tensor, role).status();
  if (tensor.quantization.scale.empty()) return scale_of(tensor, role).status();
  return unsupported("{} '{}' has {} scales; only weights can have one per channel", role,
                     ir::describe_name(tensor.name), tensor.quantization.scale.size());
}

const ir::Tensor* tensor_at(const ir::Subgraph& graph, const std::vector<std::int32_t>& indices, std::size_t position) {
  if (position >= indices.size() || indices[position] < 0) return nullptr;
  const auto index = static_cast<std::size_t>(indices[position]);
  return index < graph.tensors.size() ? &graph.tensors[index] : nullptr;
}

Result<std::vector<std::int32_t>> read_biases(const ir::Model& model, const ir::Tensor& bias) {
  if (bias.type != ir::DataType::kInt32) {
    return unsupported("bias '{}' is {}; the chip's is int32", ir::describe_name(bias.name), ir::type_name(bias.type));
  }
  const Bytes& bytes = ir::constant_data(model, bias);
  if (bytes.empty()) return unsupported("bias '{}' is computed, not constant", ir::describe_name(bias.name));
  std::vector<std::int32_t> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

Result<Operands> operands_of(const ir::Model& model, const ir::Subgraph& graph, const ir::Operator& op) {
  if (!has_layer_parameters(op)) return unsupported("{} has no layer parameters", op.type);
  Operands found;
  found.input = tensor_at(graph, op.inputs, 0);
  found.weights = tensor_at(graph, op.inputs, 1);
  found.output = tensor_at(graph, op.outputs, 0);
  REEF_REQUIRE(found.input && found.weights && found.output, "{} lacks its input, weights or output", op.type);
  REEF_RETURN_IF_ERROR(require_byte_tensor(*found.input, "input"));
  REEF_RETURN_IF_ERROR(require_byte_tensor(*found.weights, "weights"));
  REEF_RETURN_IF_ERROR(require_byte_tensor(*found.output, "output"));
  REEF_RETURN_IF_ERROR(require_per_tensor(*found.input, "input"));
  REEF_RETURN_IF_ERROR(require_per_tensor(*found.output, "output"));
  if (found.weights->sparsity) {
    return unsupported("weights '{}' are sparse; make them dense first", ir::describe_name(found.weights->name));
  }
  found.weight_bytes = ir::constant_data(model, *found.weights).span();
  if (found.weight_bytes.empty()) {
    return unsupported("weights '{}' are computed, not constant", ir::describe_name(found.weights->name));
  }
  if (const ir::Tensor* bias = tensor_at(graph, op.inputs, 2)) {
    REEF_ASSIGN_OR_RETURN(found.biases, read_biases(model, *bias));
  }
  return found;
}

Result<LayerShape> convolution_shape(const Operands& operands) {
  const ir::Shape& weights = operands.weights->shape;
  const ir::Shape& input = operands.input->shape;
  REEF_REQUIRE(weights.rank() == 4 && input.rank() == 4, "a convolution's input {} and weights {} must have rank 4",
               input.to_string(), weights.to_string());
  if (weights[3] != input[3]) {
    return unsupported("the convolution is grouped ({} input channels, weights for {}); no layout for that is known",
                       input[3], weights[3]);
  }
  return LayerShape{LayerKind::kConvolution, weights[1], weights[2], weights[3], weights[0]};
}

Result<LayerShape> depthwise_shape(const Operands& operands) {
  const ir::Shape& weights = operands.weights->shape;
  const ir::Shape& input = operands.input->shape;
  REEF_REQUIRE(weights.rank() == 4 && input.rank() == 4 && weights[0] == 1,
               "a depthwise convolution's input {} and weights {} must have rank 4, the weights with a leading 1",
               input.to_string(), weights.to_string());
  if (input[3] == 1) return LayerShape{LayerKind::kConvolution, weights[1], weights[2], 1, weights[3]};
  if (weights[3] != input[3]) {
    return unsupported(
        "the depthwise convolution makes {} channels of {}; the chip's layout is known for one input channel or as "
        "many "
        "outputs as inputs",
        weights[3], input[3]);
  }
  return LayerShape{LayerKind::kDepthwise, weights[1], weights[2], input[3], weights[3]};
}

Result<LayerShape> fully_connected_shape(const ir::Operator& op, const Operands& operands) {
  const ir::Shape& weights = operands.weights->shape;
  REEF_REQUIRE(weights.rank() == 2, "weights {} of a fully connected layer must have rank 2", weights.to_string());
  const std::string_view format = op.attributes.get_enum("weights_format", "DEFAULT");
  if (format != "DEFAULT") return unsupported("weights in format {} are not known here", format);
  return LayerShape{LayerKind::kFullyConnected, 1, 1, weights[1], weights[0]};
}

Result<LayerShape> shape_of(const ir::Operator& op, const Operands& operands) {
  Result<LayerShape> shape = op.type == kConv2d            ? convolution_shape(operands)
                             : op.type == kDepthwiseConv2d ? depthwise_shape(operands)
                                                           : fully_connected_shape(op, operands);
  if (!shape.ok()) return shape;
  REEF_RETURN_IF_ERROR(validate(*shape));
  const std::size_t outputs = static_cast<std::size_t>(shape->output_channels);
  const ir::Quantization& q = operands.weights->quantization;
  const std::int32_t dimension = op.type == kDepthwiseConv2d ? 3 : 0;
  REEF_REQUIRE(q.scale.size() <= 1 || (q.scale.size() == outputs && q.dimension == dimension),
               "weights '{}' have {} scales along dimension {}, but {} output channels along dimension {}",
               ir::describe_name(operands.weights->name), q.scale.size(), q.dimension, outputs, dimension);
  REEF_REQUIRE(operands.biases.empty() || operands.biases.size() == outputs,
               "the bias has {} values for {} output channels", operands.biases.size(), outputs);
  return shape;
}

bool all_equal(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [&](float v) { return v == values[0]; });
}

bool any_nonzero(const std::vector<std::int32_t>& values) {
  return std::any_of(values.begin(), values.end(), [](std::int32_t v) { return v != 0; });
}

Result<Presence> choose_presence(const Operands& operands, const LayerOptions& options) {
  const std::vector<float>& scales = operands.weights->quantization.scale;
  const bool scales_differ = !all_equal(scales);
  const bool biased = any_nonzero(operands.biases);
  if (!options.presence) {
    return Presence{scales_differ, biased || (options.keep_zero_biases && !operands.biases.empty()), scales.size() > 1};
  }
  REEF_REQUIRE(
      options.presence->multipliers || !scales_differ,
      "the layer has weight scales per channel, but there is no room for them in the chunk: make the scales of "
      "'{}' equal, or compile the model",
      ir::describe_name(operands.weights->name));
  REEF_REQUIRE(options.presence->biases || !biased,
               "the layer has a bias, but there is no room for one in the chunk: make it zero, or compile the model");
  return *options.presence;
}

// The weights with unsigned values; [ky][kx][out] becomes [out][ky][kx] where a depthwise layer turns convolution.
std::vector<std::uint8_t> chip_weights(const ir::Operator& op, const LayerShape& shape, const Operands& operands) {
  const std::span<const std::uint8_t> bytes = operands.weight_bytes;
  const std::uint8_t flip = operands.weights->type == ir::DataType::kInt8 ? kSignBit : 0;
  std::vector<std::uint8_t> values(bytes.size());
  if (op.type == kDepthwiseConv2d && shape.kind == LayerKind::kConvolution) {
    const auto outputs = static_cast<std::size_t>(shape.output_channels);
    const std::size_t positions = bytes.size() / outputs;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      values[i % outputs * positions + i / outputs] = static_cast<std::uint8_t>(bytes[i] ^ flip);
    }
    return values;
  }
  std::transform(bytes.begin(), bytes.end(), values.begin(),
                 [flip](std::uint8_t b) { return static_cast<std::uint8_t>(b ^ flip); });
  return values;
}

Result<float> multiplier_of(const Operands& operands, std::size_t channel) {
  const std::size_t index = operands.weights->quantization.scale.size() > 1 ? channel : 0;
  REEF_ASSIGN_OR_RETURN(const float input, scale_of(*operands.input, "input"));
  REEF_ASSIGN_OR_RETURN(const float weight, scale_of(*operands.weights, "weights", index));
  REEF_ASSIGN_OR_RETURN(const float output, scale_of(*operands.output, "output"));
  return numeric::chip_layer_multiplier(input, weight, output);
}

Result<numeric::ChipActivation> activation_of(const ir::Operator& op) {
  const std::string_view name = op.attributes.get_enum("fused_activation_function", "NONE");
  if (const auto known = numeric::chip_activation(name)) return *known;
  return unsupported("the fused activation {} is not one the chip clamps to", name);
}

}  // namespace

bool has_layer_parameters(const ir::Operator& op) {
  return !op.is_custom() && (op.type == kConv2d || op.type == kDepthwiseConv2d || op.type == kFullyConnected);
}

Result<LayerParameters> layer_parameters_of(const ir::Model& model, const ir::Subgraph& graph, const ir::Operator& op,
                                            const LayerOptions& options) {
  REEF_ASSIGN_OR_RETURN(const Operands operands, operands_of(model, graph, op));
  LayerParameters layer;
  REEF_ASSIGN_OR_RETURN(layer.shape, shape_of(op, operands));
  REEF_ASSIGN_OR_RETURN(const Presence presence, choose_presence(operands, options));
  REEF_ASSIGN_OR_RETURN(layer.weight_zero_point, zero_point_of(*operands.weights, "weights"));
  layer.order = options.order;
  layer.has_zero_points = presence.zero_points;
  layer.weights = chip_weights(op, layer.shape, operands);
  const auto outputs = static_cast<std::size_t>(layer.shape.output_channels);
  if (presence.multipliers) {
    for (std::size_t c = 0; c < outputs; ++c) {
      REEF_ASSIGN_OR_RETURN(const float multiplier, multiplier_of(operands, c));
      layer.multipliers.push_back(multiplier);
    }
  }
  if (presence.biases) {
    layer.biases = operands.biases;
    layer.biases.resize(outputs, 0);
  }
  return layer;
}

Result<LayerRequantization> layer_requantization_of(const ir::Model& model, const ir::Subgraph& graph,
                                                    const ir::Operator& op, Presence presence) {
  REEF_ASSIGN_OR_RETURN(const Operands operands, operands_of(model, graph, op));
  REEF_RETURN_IF_ERROR(shape_of(op, operands).status());
  LayerRequantization constants;
  if (!presence.multipliers) {
    REEF_REQUIRE(all_equal(operands.weights->quantization.scale),
                 "the layer has weight scales per channel, but its chunk has no multipliers");
    REEF_ASSIGN_OR_RETURN(constants.multiplier, multiplier_of(operands, 0));
  }
  REEF_ASSIGN_OR_RETURN(constants.input_zero_point, zero_point_of(*operands.input, "input"));
  REEF_ASSIGN_OR_RETURN(constants.output_zero_point, zero_point_of(*operands.output, "output"));
  if (!presence.zero_points) {
    REEF_ASSIGN_OR_RETURN(constants.weight_zero_point, zero_point_of(*operands.weights, "weights"));
  }
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, activation_of(op));
  REEF_ASSIGN_OR_RETURN(const float output_scale, scale_of(*operands.output, "output"));
  constants.clamp = numeric::chip_clamp(output_scale, constants.output_zero_point, activation);
  return constants;
}

Result<SourceWeights> source_weights_of(const LayerParameters& layer, std::string_view op_type, ir::DataType type) {
  if (!ir::is_integer_8(type)) return unsupported("weights cannot be given back as {}", ir::type_name(type));
  const LayerShape& s = layer.shape;
  REEF_RETURN_IF_ERROR(pack(layer).status());  // all counts fit the shape
  const bool turned = op_type == kDepthwiseConv2d && s.kind == LayerKind::kConvolution;
  const bool matches = (op_type == kConv2d && s.kind == LayerKind::kConvolution) ||
                       (op_type == kDepthwiseConv2d && s.kind == LayerKind::kDepthwise) ||
                       (op_type == kFullyConnected && s.kind == LayerKind::kFullyConnected) ||
                       (turned && s.input_channels == 1);
  REEF_REQUIRE(matches, "a {} layer of {} input channels is not a {}", layer_kind_name(s.kind), s.input_channels,
               op_type);
  const std::uint8_t flip = type == ir::DataType::kInt8 ? kSignBit : 0;
  SourceWeights source;
  source.biases = layer.biases;
  source.shape = op_type == kConv2d ? ir::Shape{s.output_channels, s.kernel_height, s.kernel_width, s.input_channels}
                 : op_type == kDepthwiseConv2d ? ir::Shape{1, s.kernel_height, s.kernel_width, s.output_channels}
                                               : ir::Shape{s.output_channels, s.input_channels};
  const std::size_t outputs = static_cast<std::size_t>(s.output_channels);
  const std::size_t positions = layer.weights.size() / outputs;
  source.weights.resize(layer.weights.size());
  for (std::size_t i = 0; i < layer.weights.size(); ++i) {
    const std::size_t from = turned ? i % outputs * positions + i / outputs : i;
    source.weights[i] = static_cast<std::uint8_t>(layer.weights[from] ^ flip);
  }
  return source;
}

}  // namespace reef::darwinn
