// SPDX-License-Identifier: Apache-2.0
#include "learn/softmax_head.h"

#include <algorithm>
#include <cmath>

#include "learn/head_builder.h"
#include "learn/metadata.h"

namespace reef::learn {
namespace {

using ir::DataType;

// Scores can lie beyond those seen in training; this share of their span is added on both sides.
constexpr double kScoreRoom = 0.1;

// The common part of all classes' weights and biases changes no decision; without it scores stay small.
LinearClassifier centred(LinearClassifier layer) {
  const auto classes = static_cast<std::size_t>(layer.classes), size = static_cast<std::size_t>(layer.dimension);
  for (std::size_t i = 0; i < size; ++i) {
    double mean = 0;
    for (std::size_t c = 0; c < classes; ++c) mean += layer.weights[c * size + i];
    mean /= static_cast<double>(classes);
    for (std::size_t c = 0; c < classes; ++c) layer.weights[c * size + i] -= static_cast<float>(mean);
  }
  double mean = 0;
  for (const float bias : layer.biases) mean += bias / static_cast<double>(classes);
  for (float& bias : layer.biases) bias -= static_cast<float>(mean);
  return layer;
}

Affine weight_affine(const std::vector<float>& weights, DataType type) {
  const auto [low, high] = std::minmax_element(weights.begin(), weights.end());
  if (type == DataType::kUInt8) return affine_between(*low, *high, type);
  const float most = std::max(std::abs(*low), std::abs(*high));
  return {most > 0 ? most / 127 : 1.0f, 0};
}

Affine score_affine(const LinearClassifier& layer, const Embeddings& embeddings, DataType type) {
  double low = 0, high = 0;
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    for (const float score : layer.scores(embeddings.row(i))) {
      low = std::min(low, static_cast<double>(score));
      high = std::max(high, static_cast<double>(score));
    }
  }
  const double room = kScoreRoom * (high - low);
  return affine_between(low - room, high + room, type);
}

}  // namespace

Result<ir::Model> softmax_head(const ir::Tensor& embedding, const LinearClassifier& classifier,
                               const std::vector<std::string>& class_names, const Embeddings& embeddings) {
  REEF_REQUIRE(classifier.classes > 0 && classifier.dimension == embedding.shape.last(),
               "the layer takes embeddings of {} numbers, the extractor gives {}", classifier.dimension,
               embedding.shape.last());
  const auto is_finite = [](float value) { return std::isfinite(value); };
  REEF_REQUIRE(std::all_of(classifier.weights.begin(), classifier.weights.end(), is_finite) &&
                   std::all_of(classifier.biases.begin(), classifier.biases.end(), is_finite),
               "weights and biases must be finite");
  HeadBuilder builder(embedding);
  const LinearClassifier layer = centred(classifier);
  const ir::Shape shape({layer.classes, layer.dimension});
  Affine affine;
  std::vector<std::uint8_t> bytes = bytes_of(layer.weights);
  std::vector<double> bias_scales;
  if (builder.is_quantized()) {
    affine = weight_affine(layer.weights, builder.type());
    bytes.clear();
    for (const float weight : layer.weights) bytes.push_back(quantized(weight, affine, builder.type()));
    bias_scales = {static_cast<double>(affine.scale) * embedding.quantization.scale[0]};
  }
  const std::int32_t weights =
      builder.weights("softmax_regression/weights", shape, std::move(bytes), {affine.scale}, affine.zero_point);
  const std::int32_t biases =
      builder.biases("softmax_regression/biases", {layer.biases.begin(), layer.biases.end()}, bias_scales);
  const std::int32_t scores = builder.computed("softmax_regression/logits", ir::Shape({1, layer.classes}),
                                               score_affine(layer, embeddings, builder.type()));
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  attributes.set("keep_num_dims", false);
  attributes.set("asymmetric_quantize_inputs", false);
  builder.op(Op::FULLY_CONNECTED, "FullyConnectedOptions", std::move(attributes), {builder.input(), weights, biases},
             scores);
  ir::Model model = builder.take(builder.softmax(scores, "softmax_regression/scores"));
  Learning learning{"softmax", {}};
  const auto counts = images_per_class(embeddings, layer.classes);
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const bool is_named = c < class_names.size();
    learning.classes.push_back({is_named ? class_names[c] : "", is_named ? counts[c] : 0, {}});
  }
  store_learning(learning, model);
  return model;
}

}  // namespace reef::learn
