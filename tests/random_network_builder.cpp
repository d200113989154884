// SPDX-License-Identifier: Apache-2.0
#include "random_network_builder.h"

#include <algorithm>

namespace reef::testing {
namespace {

Quantized activations(const RandomNetwork& network) {
  const ir::DataType type = network.is_signed ? ir::DataType::kInt8 : ir::DataType::kUInt8;
  return {type, 0.05f, network.zero_point - (network.is_signed ? 128 : 0)};
}

}  // namespace

NetworkBuilder::NetworkBuilder(const RandomNetwork& network) : network_(network), model_(activations(network)) {
  values_.push_back(model_.input({1, network.height, network.width, network.channels}));
}

std::optional<ir::Model> NetworkBuilder::build() {
  for (const RandomLayer& layer : network_.layers) values_.push_back(add(layer));
  std::vector<std::int32_t> outputs;
  for (const std::int32_t tensor : made_) {
    if (std::find(read_.begin(), read_.end(), tensor) == read_.end()) outputs.push_back(tensor);
  }
  if (outputs.empty()) return std::nullopt;
  return model_.finish(outputs);
}

const std::vector<NetworkBuilder::Maker>& NetworkBuilder::makers() {
  static const auto* all = new std::vector<Maker>{
      {"CONV_2D", &NetworkBuilder::convolution},
      {"DEPTHWISE_CONV_2D", &NetworkBuilder::convolution},
      {"FULLY_CONNECTED", &NetworkBuilder::fully_connected},
      {"ADD", &NetworkBuilder::two_operands},
      {"AVERAGE_POOL_2D", &NetworkBuilder::pool},
      {"MAX_POOL_2D", &NetworkBuilder::pool},
      {"MEAN", &NetworkBuilder::reduction},
      {"RELU", &NetworkBuilder::unary},
      {"RELU6", &NetworkBuilder::unary},
      {"RELU_N1_TO_1", &NetworkBuilder::unary},
      {"RESHAPE", &NetworkBuilder::reshape},
      {"SOFTMAX", &NetworkBuilder::unary},
      {"QUANTIZE", &NetworkBuilder::requantize},
      {"PAD", &NetworkBuilder::pad},
      {"CONCATENATION", &NetworkBuilder::concatenation},
      {"LOGISTIC", &NetworkBuilder::unary},
      {"TANH", &NetworkBuilder::unary},
      {"MUL", &NetworkBuilder::two_operands},
      {"SUB", &NetworkBuilder::two_operands},
      {"MAXIMUM", &NetworkBuilder::two_operands},
      {"MINIMUM", &NetworkBuilder::two_operands},
      {"RESIZE_NEAREST_NEIGHBOR", &NetworkBuilder::resize},
      {"RESIZE_BILINEAR", &NetworkBuilder::resize},
      {"STRIDED_SLICE", &NetworkBuilder::slice},
      {"SLICE", &NetworkBuilder::slice},
      {"SPLIT", &NetworkBuilder::split},
      {"PRELU", &NetworkBuilder::prelu},
      {"TRANSPOSE_CONV", &NetworkBuilder::transpose_conv},
      {"TRANSPOSE", &NetworkBuilder::transpose},
      {"SUM", &NetworkBuilder::reduction},
      {"REDUCE_MAX", &NetworkBuilder::reduction},
      {"REDUCE_MIN", &NetworkBuilder::reduction},
      {"L2_NORMALIZATION", &NetworkBuilder::unary},
      {"RSQRT", &NetworkBuilder::unary},
      {"SQUARED_DIFFERENCE", &NetworkBuilder::two_operands},
      {"SPACE_TO_DEPTH", &NetworkBuilder::blocks},
      {"DEPTH_TO_SPACE", &NetworkBuilder::blocks},
      {"TILE", &NetworkBuilder::tile},
      {"SPLIT_V", &NetworkBuilder::split},
      {"PACK", &NetworkBuilder::pack},
      {"UNPACK", &NetworkBuilder::unpack},
      {"SQUEEZE", &NetworkBuilder::other_rank},
      {"EXPAND_DIMS", &NetworkBuilder::other_rank},
      {"BATCH_MATMUL", &NetworkBuilder::matrix_product},
      {"GELU", &NetworkBuilder::unary},
      {"HARD_SWISH", &NetworkBuilder::unary},
      {"ELU", &NetworkBuilder::unary},
      {kAttentionBlock, &NetworkBuilder::attention},
      {kNormBlock, &NetworkBuilder::layer_norm},
  };
  return *all;
}

const std::vector<std::string>& NetworkBuilder::ops() {
  static const auto* names = [] {
    auto* made = new std::vector<std::string>;
    for (const Maker& maker : makers()) made->emplace_back(maker.op);
    return made;
  }();
  return *names;
}

std::int32_t NetworkBuilder::add(const RandomLayer& layer) {
  const std::int32_t x = pick(layer.a);
  const auto maker =
      std::find_if(makers().begin(), makers().end(), [&](const Maker& candidate) { return candidate.op == layer.op; });
  if (maker == makers().end()) return x;
  const std::int32_t made = (this->*maker->make)(layer, x, layer.numbers);
  return made == kNoValue ? x : made;
}

std::int32_t NetworkBuilder::op(std::string_view type, std::vector<std::int32_t> inputs,
                                std::vector<std::int32_t> outputs, std::string_view options, ir::Attributes attributes,
                                int version) {
  read_.insert(read_.end(), inputs.begin(), inputs.end());
  made_.insert(made_.end(), outputs.begin(), outputs.end());
  return model_.op(type, std::move(inputs), std::move(outputs), options, std::move(attributes), version);
}

Quantized NetworkBuilder::of(std::int32_t x) {
  const ir::Quantization& q = model_.tensor(x).quantization;
  return {type(), q.scale[0], q.zero_point[0]};
}

bool NetworkBuilder::same_quantization(std::int32_t a, std::int32_t b) {
  return of(a).scale == of(b).scale && of(a).zero_point == of(b).zero_point;
}

std::int32_t NetworkBuilder::other(int from, const std::function<bool(std::int32_t)>& suits) const {
  const std::size_t count = values_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t value = values_[(static_cast<std::size_t>(from) + count - i) % count];
    if (suits(value)) return value;
  }
  return kNoValue;
}

}  // namespace reef::testing
