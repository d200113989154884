// SPDX-License-Identifier: Apache-2.0
// Blocks of several operators, of described networks: what transformers consist of. Alone their operators meet in this
// order once in ten thousand networks.
#include <algorithm>
#include <cmath>

#include "random_network_builder.h"

namespace reef::testing {

std::int32_t NetworkBuilder::reshaped(std::int32_t x, const ir::Shape& to) {
  ir::Attributes a;
  a.set("new_shape", std::vector<std::int64_t>(to.begin(), to.end()));
  return op("RESHAPE", {x, model_.ints(to.dims())}, {model_.computed(to, of(x))}, "ReshapeOptions", a);
}

std::int32_t NetworkBuilder::transposed(std::int32_t x, const std::vector<std::int32_t>& order) {
  ir::Shape to;
  for (const int axis : order) to.push_back(shape(x)[axis]);
  return op("TRANSPOSE", {x, model_.ints(order)}, {model_.computed(to, of(x))}, "TransposeOptions", {}, 2);
}

std::int32_t NetworkBuilder::product(std::int32_t a, std::int32_t b, bool adj_b, float scale, int zero) {
  const ir::Shape in = shape(a), by = shape(b);
  ir::Attributes attributes;
  attributes.set("adj_x", false);
  attributes.set("adj_y", adj_b);
  attributes.set("asymmetric_quantize_inputs", false);
  const ir::Shape to{in[0], in[1], in[2], adj_b ? by[2] : by[3]};
  return op("BATCH_MATMUL", {a, b}, {model_.computed(to, quantized(scale, zero))}, "BatchMatMulOptions", attributes, 4);
}

// Attention of the pixels of an image: queries of x, keys and values of x or of another image, heads as runs of
// channels. numbers: heads, form (mask, channels in front of tokens), other keys, scale, zero point
std::int32_t NetworkBuilder::attention(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x) || type() != ir::DataType::kInt8) return kNoValue;
  const std::int32_t channels = shape(x)[3], queries = shape(x)[1] * shape(x)[2];
  std::int32_t heads = 1 + n[0] % 4;
  while (channels % heads != 0) --heads;
  const std::int32_t depth = channels / heads;
  std::int32_t memory = x;
  if (n[2] % 3 == 0) {
    memory = other(layer.b, [&](std::int32_t value) { return is_image(value) && shape(value)[3] == channels; });
    if (memory == kNoValue) memory = x;
  }
  const std::int32_t keys = shape(memory)[1] * shape(memory)[2];
  if (std::int64_t{heads} * queries * keys > kMostElements / 2) return kNoValue;
  const auto heads_of = [&](std::int32_t value, std::int32_t tokens) {
    return transposed(reshaped(value, {1, tokens, heads, depth}), {0, 2, 1, 3});
  };
  const std::int32_t q = heads_of(x, queries);
  const bool is_swapped = n[1] % 3 == 2;
  const std::int32_t k =
      is_swapped ? transposed(reshaped(memory, {1, keys, heads, depth}), {0, 2, 3, 1}) : heads_of(memory, keys);
  const std::int32_t v = heads_of(memory, keys);
  const float spread = std::sqrt(static_cast<float>(depth)) * 40;
  std::int32_t scores = product(q, k, !is_swapped, of(x).scale * of(memory).scale * spread, n[4]);
  if (n[1] % 4 == 3) {
    ir::Attributes a;
    a.set("fused_activation_function", word("NONE"));
    // One for each key, for each query and key, or for each head as well.
    const ir::Shape masks[] = {{1, 1, 1, keys}, {1, 1, queries, keys}, {1, heads, queries, keys}};
    const std::int32_t mask = model_.weights(masks[n[1] / 4 % 3], of(scores).scale);
    scores = op("ADD", {scores, mask}, {model_.computed(shape(scores), of(scores))}, "AddOptions", a, 2);
  }
  ir::Attributes softmax;
  softmax.set("beta", 1.0 / (1 + n[3] % 3));
  const std::int32_t weights =
      op("SOFTMAX", {scores}, {model_.computed(shape(scores), quantized(1.0f / 256, 0))}, "SoftmaxOptions", softmax, 2);
  const std::int32_t means = product(weights, v, false, of(memory).scale, n[4] / 2);
  return reshaped(transposed(means, {0, 2, 1, 3}), shape(x));
}

// LayerNorm or RMSNorm of each pixel's channels. numbers: form, scale, zero point
std::int32_t NetworkBuilder::layer_norm(const RandomLayer&, std::int32_t x, const Numbers& n) {
  if (!is_image(x) || type() != ir::DataType::kInt8 || shape(x)[3] < 2) return kNoValue;
  const ir::Shape all = shape(x), one = {1, all[1], all[2], 1};
  const bool is_rms = n[0] % 3 == 2;
  const float scale = of(x).scale, square = scale * scale * 128;
  ir::Attributes keep, none;
  keep.set("keep_dims", true);
  none.set("fused_activation_function", word("NONE"));
  const auto mean = [&](std::int32_t of_what, Quantized to) {
    return op("MEAN", {of_what, model_.ints({3})}, {model_.computed(one, to)}, "ReducerOptions", keep, 2);
  };
  std::int32_t centred = x, squares = -1;
  if (is_rms) {
    squares = op("MUL", {x, x}, {model_.computed(all, quantized(square, 0))}, "MulOptions", none, 2);
  } else {
    const std::int32_t average = mean(x, quantized(scale * 0.7f, n[2]));
    centred = op("SUB", {x, average}, {model_.computed(all, quantized(scale, 128))}, "SubOptions", none, 2);
    squares = op("SQUARED_DIFFERENCE", {x, average}, {model_.computed(all, quantized(square, 0))},
                 "SquaredDifferenceOptions", {}, 2);
  }
  const std::int32_t variance = mean(squares, quantized(square * 0.5f, 0));
  const std::int32_t inverse =
      op("RSQRT", {variance}, {model_.computed(one, quantized(1.0f / (scale * 900), 0))}, "", {}, 2);
  std::int32_t y = op("MUL", {centred, inverse}, {model_.computed(all, quantized(0.03f, 128))}, "MulOptions", none, 2);
  if (n[0] % 2 == 0) {
    y = op("MUL", {y, model_.weights({all[3]}, 0.01f)}, {model_.computed(all, quantized(0.03f, 120))}, "MulOptions",
           none, 2);
    y = op("ADD", {y, model_.weights({all[3]}, 0.01f)}, {model_.computed(all, quantized(0.04f, 130))}, "AddOptions",
           none, 2);
  }
  return y;
}

}  // namespace reef::testing
