// SPDX-License-Identifier: Apache-2.0
#include "quantized_model.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "formats/tflite/schema_generated.h"
#include "ir/verify.h"

namespace reef::testing {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

ir::Attributes attributes(std::initializer_list<std::pair<std::string_view, ir::AttributeValue>> rows) {
  ir::Attributes result;
  for (const auto& [name, value] : rows) result.set(name, value);
  return result;
}

ir::EnumName enum_name(std::string_view name) { return ir::EnumName{std::string(name)}; }

std::int32_t builtin_code(std::string_view type) {
  for (const auto code : tflite_schema::EnumValuesBuiltinOperator()) {
    if (type == tflite_schema::EnumNameBuiltinOperator(code)) return static_cast<std::int32_t>(code);
  }
  return ir::kCustomBuiltinCode;
}

std::int32_t after_stride(std::int32_t size, int stride) { return (size + stride - 1) / stride; }

}  // namespace

QuantizedModel::QuantizedModel(Quantized activations) : activations_(activations) {
  model_.buffers.resize(1);
  model_.subgraphs.resize(1);
  model_.subgraphs[0].name = "main";
}

std::int32_t QuantizedModel::input(ir::Shape shape, std::string_view name) {
  const std::int32_t tensor = computed(std::move(shape), activations_, std::string(name));
  model_.subgraphs[0].inputs.push_back(tensor);
  return tensor;
}

std::int32_t QuantizedModel::float_input(ir::Shape shape, std::string_view name) {
  const std::int32_t tensor = computed_plain(std::move(shape), ir::DataType::kFloat32, std::string(name));
  model_.subgraphs[0].inputs.push_back(tensor);
  return tensor;
}

std::int32_t QuantizedModel::computed_plain(ir::Shape shape, ir::DataType type, std::string name) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.shape = std::move(shape);
  model_.subgraphs[0].tensors.push_back(std::move(tensor));
  return static_cast<std::int32_t>(model_.subgraphs[0].tensors.size()) - 1;
}

std::int32_t QuantizedModel::computed(ir::Shape shape, Quantized quantization, std::string name) {
  const std::int32_t index = computed_plain(std::move(shape), quantization.type, std::move(name));
  ir::Tensor& made = tensor(index);
  made.has_quantization = true;
  made.quantization.scale = {quantization.scale};
  made.quantization.zero_point = {quantization.zero_point};
  return index;
}

std::int32_t QuantizedModel::like(std::int32_t x, ir::Shape shape) {
  const ir::Tensor& source = tensor(x);
  if (!source.quantization.is_quantized()) return computed_plain(std::move(shape), source.type);
  return computed(std::move(shape), {source.type, source.quantization.scale[0], source.quantization.zero_point[0]});
}

std::int32_t QuantizedModel::constant_bytes(std::vector<std::uint8_t> bytes, ir::Shape shape, ir::DataType type) {
  const std::int32_t index = computed_plain(std::move(shape), type, "");
  tensor(index).name = "constant_" + std::to_string(index);
  tensor(index).buffer = static_cast<std::int32_t>(model_.buffers.size());
  model_.buffers.push_back({Bytes(std::move(bytes)), false, false});
  return index;
}

std::int32_t QuantizedModel::ints(std::vector<std::int32_t> values, ir::Shape shape) {
  std::vector<std::uint8_t> bytes(values.size() * 4);
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return constant_bytes(std::move(bytes), std::move(shape), ir::DataType::kInt32);
}

std::int32_t QuantizedModel::ints(std::vector<std::int32_t> values) {
  const auto count = static_cast<std::int32_t>(values.size());
  return ints(std::move(values), {count});
}

std::int32_t QuantizedModel::weights(ir::Shape shape, float scale) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(shape.elements()));
  for (std::uint8_t& byte : bytes) {
    seed_ = seed_ * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(seed_ >> 24);
    if (activations_.type == ir::DataType::kInt8 && byte == 0x80) byte = 0x81;  // symmetric weights do not use -128
  }
  const std::int32_t index = constant_bytes(std::move(bytes), std::move(shape), activations_.type);
  tensor(index).has_quantization = true;
  tensor(index).quantization.scale = {scale};
  tensor(index).quantization.zero_point = {activations_.type == ir::DataType::kUInt8 ? 128 : 0};
  return index;
}

std::int32_t QuantizedModel::bias(int channels, float scale) {
  const std::int32_t index = ints(std::vector<std::int32_t>(static_cast<std::size_t>(channels), 17));
  tensor(index).has_quantization = true;
  tensor(index).quantization.scale = {scale};
  tensor(index).quantization.zero_point = {0};
  return index;
}

std::int32_t QuantizedModel::op(std::string_view type, std::vector<std::int32_t> inputs,
                                std::vector<std::int32_t> outputs, std::string_view options, ir::Attributes attributes,
                                int version) {
  ir::Operator made;
  made.type = type;
  made.builtin_code = builtin_code(type);
  made.version = version;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.options_type = options;
  made.attributes = std::move(attributes);
  const auto number = model_.subgraphs[0].operators.size();
  for (std::size_t i = 0; i < made.outputs.size(); ++i) {
    std::string& name = tensor(made.outputs[i]).name;
    if (name.empty()) name = std::string(type) + "_" + std::to_string(number) + (i ? "_" + std::to_string(i) : "");
  }
  model_.subgraphs[0].operators.push_back(std::move(made));
  const std::vector<std::int32_t>& results = model_.subgraphs[0].operators.back().outputs;
  return results.empty() ? -1 : results[0];
}

std::int32_t QuantizedModel::conv(std::int32_t x, int channels, int kernel, int stride, std::string_view activation) {
  const ir::Shape in = shape(x);
  const std::int32_t w = weights({channels, kernel, kernel, in.last()});
  const float bias_scale = activations_.scale * 0.02f;
  const std::int32_t out =
      computed({in[0], after_stride(in[1], stride), after_stride(in[2], stride), channels}, activations_);
  return op("CONV_2D", {x, w, bias(channels, bias_scale)}, {out}, "Conv2DOptions",
            attributes({{"padding", enum_name("SAME")},
                        {"stride_w", std::int64_t{stride}},
                        {"stride_h", std::int64_t{stride}},
                        {"fused_activation_function", enum_name(activation)},
                        {"dilation_w_factor", std::int64_t{1}},
                        {"dilation_h_factor", std::int64_t{1}}}),
            activations_.type == ir::DataType::kInt8 ? 3 : 1);
}

std::int32_t QuantizedModel::depthwise(std::int32_t x, int kernel, int stride, std::string_view activation) {
  const ir::Shape in = shape(x);
  const std::int32_t w = weights({1, kernel, kernel, in.last()});
  tensor(w).quantization.dimension = 3;
  const std::int32_t out =
      computed({in[0], after_stride(in[1], stride), after_stride(in[2], stride), in.last()}, activations_);
  return op("DEPTHWISE_CONV_2D", {x, w, bias(in.last(), activations_.scale * 0.02f)}, {out}, "DepthwiseConv2DOptions",
            attributes({{"padding", enum_name("SAME")},
                        {"stride_w", std::int64_t{stride}},
                        {"stride_h", std::int64_t{stride}},
                        {"depth_multiplier", std::int64_t{1}},
                        {"fused_activation_function", enum_name(activation)},
                        {"dilation_w_factor", std::int64_t{1}},
                        {"dilation_h_factor", std::int64_t{1}}}),
            activations_.type == ir::DataType::kInt8 ? 3 : 1);
}

std::int32_t QuantizedModel::fully_connected(std::int32_t x, int outputs) {
  const auto inputs = static_cast<std::int32_t>(shape(x).elements() / shape(x)[0]);
  const std::int32_t w = weights({outputs, inputs});
  return op("FULLY_CONNECTED", {x, w, bias(outputs, activations_.scale * 0.02f)},
            {computed({shape(x)[0], outputs}, activations_)}, "FullyConnectedOptions",
            attributes({{"fused_activation_function", enum_name("NONE")}}),
            activations_.type == ir::DataType::kInt8 ? 4 : 1);
}

std::int32_t QuantizedModel::add(std::int32_t a, std::int32_t b) {
  return op("ADD", {a, b}, {computed(shape(a), activations_)}, "AddOptions",
            attributes({{"fused_activation_function", enum_name("NONE")}}), 2);
}

std::int32_t QuantizedModel::mul(std::int32_t a, std::int32_t b) {
  return op("MUL", {a, b}, {computed(shape(a), activations_)}, "MulOptions",
            attributes({{"fused_activation_function", enum_name("NONE")}}), 2);
}

std::int32_t QuantizedModel::unary(std::string_view type, std::int32_t x, std::string_view options,
                                   ir::Attributes attributes, int version) {
  return op(type, {x}, {like(x, shape(x))}, options, std::move(attributes), version);
}

std::int32_t QuantizedModel::logistic(std::int32_t x) {
  const std::int64_t zero = activations_.type == ir::DataType::kInt8 ? -128 : 0;
  return op("LOGISTIC", {x}, {computed(shape(x), {activations_.type, 1.0f / 256, zero})}, "", {}, 2);
}

std::int32_t QuantizedModel::softmax(std::int32_t x) {
  const std::int64_t zero = activations_.type == ir::DataType::kInt8 ? -128 : 0;
  return op("SOFTMAX", {x}, {computed(shape(x), {activations_.type, 1.0f / 256, zero})}, "SoftmaxOptions",
            attributes({{"beta", 1.0}}), 2);
}

std::int32_t QuantizedModel::reshape(std::int32_t x, ir::Shape to) {
  const std::int32_t target = ints(to.dims());
  const std::vector<std::int64_t> dims(to.begin(), to.end());
  return op("RESHAPE", {x, target}, {like(x, to)}, "ReshapeOptions", attributes({{"new_shape", dims}}));
}

std::int32_t QuantizedModel::transpose(std::int32_t x, std::vector<std::int32_t> permutation) {
  ir::Shape to;
  for (const std::int32_t axis : permutation) to.push_back(shape(x)[axis]);
  const std::int32_t axes = ints(std::move(permutation));
  return op("TRANSPOSE", {x, axes}, {like(x, to)}, "TransposeOptions", {}, 2);
}

std::int32_t QuantizedModel::concatenation(std::vector<std::int32_t> parts, int axis) {
  ir::Shape to = shape(parts.at(0));
  for (std::size_t i = 1; i < parts.size(); ++i) to[axis] += shape(parts[i])[axis];
  const std::int32_t first = parts[0];
  return op("CONCATENATION", std::move(parts), {like(first, to)}, "ConcatenationOptions",
            attributes({{"axis", std::int64_t{axis}}, {"fused_activation_function", enum_name("NONE")}}), 2);
}

std::int32_t QuantizedModel::mean(std::int32_t x, std::vector<std::int32_t> axes, bool keep_dims) {
  ir::Shape to;
  for (int i = 0; i < shape(x).rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced || keep_dims) to.push_back(reduced ? 1 : shape(x)[i]);
  }
  const std::int32_t over = ints(std::move(axes));
  return op("MEAN", {x, over}, {like(x, to)}, "ReducerOptions", attributes({{"keep_dims", keep_dims}}), 2);
}

std::int32_t QuantizedModel::max_pool(std::int32_t x, int size, int stride) {
  const ir::Shape in = shape(x);
  return op("MAX_POOL_2D", {x}, {like(x, {in[0], after_stride(in[1], stride), after_stride(in[2], stride), in[3]})},
            "Pool2DOptions",
            attributes({{"padding", enum_name("SAME")},
                        {"stride_w", std::int64_t{stride}},
                        {"stride_h", std::int64_t{stride}},
                        {"filter_width", std::int64_t{size}},
                        {"filter_height", std::int64_t{size}},
                        {"fused_activation_function", enum_name("NONE")}}),
            2);
}

std::int32_t QuantizedModel::resize(std::string_view type, std::int32_t x, int height, int width, bool align_corners,
                                    bool half_pixel_centers) {
  const ir::Shape in = shape(x);
  const std::int32_t size = ints({height, width});
  const bool bilinear = type == "RESIZE_BILINEAR";
  return op(type, {x, size}, {like(x, {in[0], height, width, in[3]})},
            bilinear ? "ResizeBilinearOptions" : "ResizeNearestNeighborOptions",
            attributes({{"align_corners", align_corners}, {"half_pixel_centers", half_pixel_centers}}),
            half_pixel_centers ? 3 : 2);
}

std::int32_t QuantizedModel::quantize(std::int32_t x, Quantized to) {
  return op("QUANTIZE", {x}, {computed(shape(x), to)}, "QuantizeOptions", {},
            tensor(x).type == ir::DataType::kFloat32 ? 1 : 2);
}

std::int32_t QuantizedModel::dequantize(std::int32_t x) {
  return op("DEQUANTIZE", {x}, {computed_plain(shape(x), ir::DataType::kFloat32)}, "DequantizeOptions", {}, 2);
}

std::int32_t QuantizedModel::arg_max(std::int32_t x) {
  ir::Shape to;
  for (int i = 0; i + 1 < shape(x).rank(); ++i) to.push_back(shape(x)[i]);
  const std::int32_t axis = ints({shape(x).rank() - 1}, {});
  return op("ARG_MAX", {x, axis}, {computed_plain(to, ir::DataType::kInt32)}, "ArgMaxOptions",
            attributes({{"output_type", enum_name("INT32")}}), 2);
}

const ir::Shape& QuantizedModel::shape(std::int32_t index) const {
  return model_.subgraphs[0].tensors.at(at(index)).shape;
}

ir::Tensor& QuantizedModel::tensor(std::int32_t index) { return model_.subgraphs[0].tensors.at(at(index)); }

void QuantizedModel::name(std::int32_t index, std::string name) { tensor(index).name = std::move(name); }

ir::Model QuantizedModel::finish(std::vector<std::int32_t> outputs) {
  model_.subgraphs[0].outputs = std::move(outputs);
  const Status status = ir::verify(model_);
  EXPECT_TRUE(status.ok()) << status.message();
  return model_;
}

}  // namespace reef::testing
