// SPDX-License-Identifier: Apache-2.0
#include "learn/imprinting_head.h"

#include <algorithm>
#include <cmath>

#include "learn/head_builder.h"
#include "learn/metadata.h"
#include "learn/vector_math.h"

namespace reef::learn {
namespace {

using ir::DataType;

// Room that a new uint8 head leaves for weights of classes to come.
constexpr double kWeightRoom = 2;
// Room beyond the cosines seen in training, as a share of their span.
constexpr double kCosineRoom = 0.1;
constexpr double kLeastReach = 1.0 / 64;

// All classes' weights, as the layer holds them.
struct LayerWeights {
  std::vector<std::uint8_t> bytes;
  std::vector<float> scales;  // one, or one for each class
  std::int32_t zero_point = 0;
  std::vector<std::string> notes;
};

std::string name_of(const ImprintedClass& each, std::size_t number) {
  return each.name.empty() ? fmt::format("class {}", number) : fmt::format("class {} '{}'", number, each.name);
}

bool keeps_bytes(const ImprintedClass& each, std::size_t size, float scale) {
  return !each.has_changed && each.stored && each.stored->bytes.size() == size &&
         (scale == 0 || each.stored->scale == scale);
}

// A scale for each class: nobody's weights depend on anybody else's.
LayerWeights int8_weights(const std::vector<ImprintedClass>& classes) {
  LayerWeights layer;
  for (const ImprintedClass& each : classes) {
    if (keeps_bytes(each, each.sum.size(), 0)) {
      layer.bytes.insert(layer.bytes.end(), each.stored->bytes.begin(), each.stored->bytes.end());
      layer.scales.push_back(each.stored->scale);
      continue;
    }
    const std::vector<float> weights = each.weights();
    float most = 0;
    for (const float weight : weights) most = std::max(most, std::abs(weight));
    const Affine affine{most > 0 ? most / 127 : 1.0f / 127, 0};
    for (const float weight : weights) layer.bytes.push_back(quantized(weight, affine, DataType::kInt8));
    layer.scales.push_back(affine.scale);
  }
  return layer;
}

// Range for a new head: what the classes need, times the room, within what a weight can be. If embeddings are never
// negative, neither are weights.
Affine uint8_range(const std::vector<ImprintedClass>& classes, bool can_be_negative) {
  double low = 0, high = 0;
  for (const ImprintedClass& each : classes) {
    for (const float weight : each.weights()) {
      low = std::min(low, static_cast<double>(weight));
      high = std::max(high, static_cast<double>(weight));
    }
  }
  const double most = std::min(1.0, kWeightRoom * std::max(high, -low));
  return affine_between(can_be_negative || low < 0 ? -most : 0, most, DataType::kUInt8);
}

LayerWeights uint8_weights(const std::vector<ImprintedClass>& classes, const Affine& affine) {
  LayerWeights layer;
  layer.scales = {affine.scale};
  layer.zero_point = affine.zero_point;
  const double low = (0 - affine.zero_point - 0.5) * affine.scale,
               high = (255 - affine.zero_point + 0.5) * affine.scale;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const ImprintedClass& each = classes[c];
    if (keeps_bytes(each, each.sum.size(), affine.scale)) {
      layer.bytes.insert(layer.bytes.end(), each.stored->bytes.begin(), each.stored->bytes.end());
      continue;
    }
    std::int64_t clipped = 0;
    for (const float weight : each.weights()) {
      layer.bytes.push_back(quantized(weight, affine, DataType::kUInt8));
      clipped += weight < low || weight > high;
    }
    if (clipped == 0) continue;
    layer.notes.push_back(fmt::format(
        "{}: {} of {} weights lie beyond the head's range and were clipped; train all classes at once to get "
        "a range that holds them",
        name_of(each, c), clipped, each.sum.size()));
  }
  return layer;
}

LayerWeights float_weights(const std::vector<ImprintedClass>& classes) {
  std::vector<float> all;
  for (const ImprintedClass& each : classes) {
    const std::vector<float> weights = each.weights();
    all.insert(all.end(), weights.begin(), weights.end());
  }
  return {bytes_of(all), {}, 0, {}};
}

// A head's range for cosines, never narrower than before.
void widen(ImprintingHeadState& state, const CosineRange& seen) {
  const double room = kCosineRoom * (seen.high - seen.low);
  const double low = seen.low - room, high = seen.high + room;
  if (!state.has_range) {
    state.middle = (low + high) / 2;
    state.reach = kLeastReach;
    state.has_range = true;
  }
  state.reach = std::max({state.reach, high - state.middle, state.middle - low});
}

ir::Attributes convolution_attributes() {
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("stride_w", std::int64_t{1});
  attributes.set("stride_h", std::int64_t{1});
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  attributes.set("dilation_w_factor", std::int64_t{1});
  attributes.set("dilation_h_factor", std::int64_t{1});
  return attributes;
}

ir::Attributes no_activation() {
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  return attributes;
}

Learning learning_of(const std::vector<ImprintedClass>& classes) {
  Learning learning{"imprinting", {}};
  for (const ImprintedClass& each : classes) {
    LearnedClass learned{each.name, each.images, {}};
    if (each.is_trainable) learned.sum_length = each.sum_length();
    learning.classes.push_back(std::move(learned));
  }
  return learning;
}

// [1, 1, 1, D], of length 1.
std::int32_t normalized_embedding(HeadBuilder& builder, bool is_normalized) {
  const std::int32_t dimension = builder.tensor(builder.input()).shape.last();
  const ir::Shape shape({1, 1, 1, dimension});
  std::int32_t x = builder.input();
  if (builder.tensor(x).shape != shape) x = builder.reshape(x, shape, "imprinting/embedding");
  if (is_normalized) return x;
  const std::int32_t zero = builder.type() == DataType::kUInt8 ? 128 : 0;
  const std::int32_t output = builder.computed("imprinting/normalized", shape, {1.0f / 128, zero});
  return builder.op(Op::L2_NORMALIZATION, "L2NormOptions", no_activation(), {x}, output);
}

bool can_be_negative(const ir::Tensor& tensor) {
  return tensor.quantization.zero_point.empty() || tensor.quantization.zero_point[0] > lowest_of(tensor.type);
}

}  // namespace

CosineRange cosine_range(const std::vector<ImprintedClass>& classes, const Embeddings& embeddings) {
  std::vector<std::vector<float>> weights;
  for (const ImprintedClass& each : classes) weights.push_back(each.weights());
  CosineRange range{1, -1};
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    const std::vector<float> row = normalized(embeddings.row(i));
    if (!(dot(row, row) > 0)) continue;
    for (const std::vector<float>& each : weights) {
      const double cosine = dot(each, row);
      range.low = std::min(range.low, cosine);
      range.high = std::max(range.high, cosine);
    }
  }
  return range.low > range.high ? CosineRange{-1, 1} : range;
}

Result<MadeHead> imprinting_head(const ir::Tensor& embedding, bool is_normalized,
                                 const std::vector<ImprintedClass>& classes, const Embeddings& embeddings,
                                 const ImprintingHeadState& state) {
  REEF_REQUIRE(!classes.empty(), "no class was trained");
  const auto count = static_cast<std::int32_t>(classes.size());
  MadeHead made;
  made.state = state;
  if (made.state.factor <= 0) made.state.factor = fitted_factor(classes, embeddings);
  widen(made.state, cosine_range(classes, embeddings));
  HeadBuilder builder(embedding);
  const DataType type = builder.type();
  const std::int32_t x = normalized_embedding(builder, is_normalized);
  LayerWeights layer;
  if (type == DataType::kUInt8) {
    Affine affine{state.weight_scale, state.weight_zero_point};
    if (affine.scale <= 0) affine = uint8_range(classes, can_be_negative(embedding));
    layer = uint8_weights(classes, affine);
    made.state.weight_scale = affine.scale;
    made.state.weight_zero_point = affine.zero_point;
  } else {
    layer = type == DataType::kInt8 ? int8_weights(classes) : float_weights(classes);
  }
  made.notes = layer.notes;
  const std::int32_t weights = builder.weights("imprinting/weights", ir::Shape({count, 1, 1, embedding.shape.last()}),
                                               std::move(layer.bytes), layer.scales, layer.zero_point);
  std::vector<double> bias_scales;
  double shift = 0;
  if (builder.is_quantized()) {
    shift = made.state.middle;
    for (const float scale : layer.scales) {
      bias_scales.push_back(static_cast<double>(scale) * builder.tensor(x).quantization.scale[0]);
    }
  }
  const std::vector<double> values(classes.size(), -shift);
  const std::int32_t biases = builder.biases("imprinting/biases", values, bias_scales);
  const auto step = static_cast<float>(made.state.reach / 127);
  const std::int32_t zero = type == DataType::kUInt8 ? 128 : 0;
  const std::int32_t cosines = builder.computed("imprinting/cosines", ir::Shape({1, 1, 1, count}), {step, zero});
  builder.op(Op::CONV_2D, "Conv2DOptions", convolution_attributes(), {x, weights, biases}, cosines);
  const std::int32_t factor = builder.number("imprinting/factor", made.state.factor);
  const std::int32_t logits = builder.computed("imprinting/logits", ir::Shape({1, 1, 1, count}),
                                               {static_cast<float>(step * made.state.factor), zero});
  builder.op(Op::MUL, "MulOptions", no_activation(), {cosines, factor}, logits);
  const std::int32_t flat = builder.reshape(logits, ir::Shape({1, count}), "imprinting/flat");
  made.model = builder.take(builder.softmax(flat, "imprinting/scores"));
  store_learning(learning_of(classes), made.model);
  return made;
}

}  // namespace reef::learn
