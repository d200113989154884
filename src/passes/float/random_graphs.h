// SPDX-License-Identifier: Apache-2.0
// Random models for the tests of simplification: convolutional networks as an importer makes them, channels first with
// every layer wrapped in TRANSPOSEs; and movement of all kinds on tensors of any rank.
#pragma once

#include "passes/float/test_graph.h"

namespace reef::passes::testing {

// A map [n, c, h, w] through one random step.
inline int step(Maker& make, int x, std::vector<int>& maps) {
  const Shape shape = make.shape(x);
  const auto same_shape = [&]() -> int {
    for (int tries = 0; tries < 4; ++tries) {
      const int other = maps[reef::at(make.draw(static_cast<int>(maps.size())))];
      if (make.shape(other) == shape) return other;
    }
    return x;
  };
  switch (make.draw(23)) {
    case 0:
      return make.conv(x, 1 + make.draw(8), 1 + 2 * make.draw(2), 1,
                       make.draw(2) == 0 || shape[2] < 3 || shape[3] < 3 ? "SAME" : "VALID");
    case 1:
      return make.conv(x, 2 + make.draw(6), 3, 2);
    case 2:
      return make.depthwise(x, 3, 1 + make.draw(2));
    case 3:
      return make.pool(x, make.draw(2) == 0 ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", 2, 2);
    case 4:
      return shape[2] * shape[3] > 200 ? x : make.resize(x, 2);
    case 5:
      return make.unary("RELU", x);
    case 6:
      return make.binary("MUL", x, make.unary("LOGISTIC", x));
    case 7:
      return make.binary("ADD", x, same_shape());
    case 8:
      return make.binary("MUL", x, make.numbers({1, shape[1], 1, 1}, 0.5f, 1.5f));
    case 9:
      return make.binary("ADD", make.numbers({shape[1], 1, 1}), x);
    case 10:
      return shape[1] > 24 ? x : make.concatenation({x, same_shape()}, 1);
    case 11: {  // halves of the channels, swapped
      if (shape[1] % 2 != 0) return x;
      const Shape half = {shape[0], shape[1] / 2, shape[2], shape[3]};
      const int axis = make.scalar(make.draw(2) == 0 ? 1 : -3), a = make.add_tensor(half), b = make.add_tensor(half);
      make.add("SPLIT", "SplitOptions", Maker::attributes({{"num_splits", std::int64_t{2}}}), {axis, x}, {a, b});
      return make.concatenation({b, make.unary("TANH", a)}, 1);
    }
    case 12: {  // squeeze and excitation
      const int mean = make.reduce("MEAN", x, {2, 3}, true);
      return make.binary("MUL", x,
                         make.unary("LOGISTIC", make.conv(make.unary("RELU", make.conv(mean, 3, 1)), shape[1], 1)));
    }
    case 13:
      return make.op("PAD", "PadOptions", {},
                     {x, make.constant(std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 0, 2}, {4, 2}, DataType::kInt32)},
                     {shape[0], shape[1], shape[2] + 2, shape[3] + 2});
    case 14: {
      if (shape[2] < 2) return x;
      return make.op("SLICE", "SliceOptions", {},
                     {x, make.ints({0, 0, 1, 0}), make.ints({shape[0], shape[1], shape[2] - 1, -1})},
                     {shape[0], shape[1], shape[2] - 1, shape[3]});
    }
    case 15: {
      const ir::Attributes options = Maker::attributes({{"begin_mask", std::int64_t{0}},
                                                        {"end_mask", std::int64_t{13}},
                                                        {"ellipsis_mask", std::int64_t{0}},
                                                        {"new_axis_mask", std::int64_t{0}},
                                                        {"shrink_axis_mask", std::int64_t{0}},
                                                        {"offset", false}});
      return make.op("STRIDED_SLICE", "StridedSliceOptions", options,
                     {x, make.ints({0, 0, 0, 0}), make.ints({0, (shape[1] + 1) / 2, 0, 0}), make.ints({1, 1, 2, 1})},
                     {shape[0], (shape[1] + 1) / 2, (shape[2] + 1) / 2, shape[3]});
    }
    case 16:
      return make.op("PRELU", "", {}, {x, make.numbers({shape[1], 1, 1}, 0, 0.5f)}, shape);
    case 17:
      return make.op("LEAKY_RELU", "LeakyReluOptions", Maker::attributes({{"alpha", 0.1}}), {x}, shape);
    case 18:
      return make.binary("MINIMUM", make.binary("MAXIMUM", x, make.number(0)), make.number(6));
    case 19:
      return make.binary("DIV", x, make.numbers({1, shape[1], 1, 1}, 1, 2));
    case 20:
      return make.binary("SUB", make.number(1), x);
    case 21: {  // branches that are one layer: RepVGG's, or MobileOne's
      const int stride = 1 + make.draw(2);
      const bool is_depthwise = make.draw(2) == 0;
      const int channels = is_depthwise || stride == 1 ? shape[1] : 1 + make.draw(6);
      const auto branch = [&](int filter) {
        const int y = is_depthwise ? make.depthwise(x, filter, stride) : make.conv(x, channels, filter, stride);
        return make.binary("MUL", y, make.numbers({1, channels, 1, 1}, 0.2f, 0.6f));
      };
      int sum = make.binary(make.draw(2) == 0 ? "ADD" : "SUB", branch(3), branch(1 + 2 * make.draw(3)));
      if (stride == 1) {
        const int scaled = make.binary("MUL", x, make.numbers({1, channels, 1, 1}, -0.6f, 0.6f));
        sum = make.binary("ADD", make.binary("ADD", scaled, make.numbers({channels, 1, 1})), sum);
      }
      return sum;
    }
    default:
      return make.binary("MUL", x, make.reduce("REDUCE_MAX", x, {1}, true));
  }
}

inline int head(Maker& make, int x) {
  const Shape shape = make.shape(x);
  const std::int32_t features = shape[1] * shape[2] * shape[3];
  switch (make.draw(4)) {
    case 0:
      return make.dense(make.reshape(make.reduce("MEAN", x, {2, 3}, true), {shape[0], shape[1]}), 5);
    case 1:
      return make.dense(make.reshape(x, {shape[0], features}), 4);
    case 2:
      return make.dense(make.unary("RELU", make.reshape(x, {shape[0], features})), 4);
    default:
      return make.to_nhwc(x);
  }
}

inline ir::Model random_network(std::uint32_t seed) {
  Maker make(seed);
  const int size = 5 + make.draw(8);
  std::vector<int> maps = {make.to_nchw(make.input({1 + make.draw(2), size, size + make.draw(3), 1 + make.draw(4)}))};
  const int steps = 3 + make.draw(12);
  for (int i = 0; i < steps; ++i) {
    const int from = make.draw(4) == 0 ? maps[reef::at(make.draw(static_cast<int>(maps.size())))] : maps.back();
    maps.push_back(step(make, from, maps));
  }
  std::vector<int> outputs = {head(make, make.conv(maps.back(), 3, 1))};
  if (make.draw(3) == 0) outputs.push_back(make.to_nhwc(maps[maps.size() / 2]));
  if (outputs.size() == 2 && outputs[0] == outputs[1]) outputs.pop_back();
  return make.finish(outputs);
}

// ---- Any operators on tensors of any rank, with TRANSPOSE and RESHAPE strewn in ----

inline std::vector<std::int32_t> random_order(Maker& make, int rank) {
  std::vector<std::int32_t> order;
  for (int i = 0; i < rank; ++i) order.insert(order.begin() + make.draw(i + 1), i);
  return order;
}

// The same elements in a shape made by joining, splitting and adding axes.
inline Shape random_shape(Maker& make, const Shape& shape) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    const int choice = make.draw(5);
    if (choice == 0 && result.rank() > 0) {
      result[result.rank() - 1] *= shape[i];
    } else if (choice == 1 && shape[i] % 2 == 0) {
      result.push_back(2);
      result.push_back(shape[i] / 2);
    } else if (choice == 2 && shape[i] == 1) {
      continue;
    } else {
      result.push_back(shape[i]);
    }
    if (make.draw(6) == 0) result.push_back(1);
  }
  return result.rank() > 5 || result.rank() == 0 ? shape : result;
}

inline int movement_step(Maker& make, int x, const std::vector<int>& pool, DataType type) {
  const Shape shape = make.shape(x);
  const int axis = make.draw(shape.rank());
  const auto same_shape = [&]() -> int {
    for (const int other : pool) {
      if (other != x && make.shape(other) == shape && make.draw(2) == 0) return other;
    }
    return x;
  };
  switch (make.draw(13)) {
    case 0:
    case 1:
    case 2:
      return make.transpose(x, random_order(make, shape.rank()));
    case 3:
    case 4:
      return make.reshape(x, random_shape(make, shape));
    case 5:
      return make.unary(type == DataType::kFloat32 ? "ABS" : "RELU", x);
    case 6:
      return make.binary("MAXIMUM", x, same_shape());
    case 7:
      return shape.elements() > 2000 ? x : make.concatenation({x, same_shape()}, axis);
    case 8:
      return shape.rank() > 4 ? x : make.reduce("REDUCE_MAX", x, {axis}, make.draw(2) == 0 || shape.rank() == 1);
    case 9: {
      if (shape[axis] % 2 != 0) return x;
      Shape half = shape;
      half[axis] /= 2;
      const int position = make.scalar(axis), a = make.add_tensor(half, type), b = make.add_tensor(half, type);
      make.add("SPLIT", "SplitOptions", Maker::attributes({{"num_splits", std::int64_t{2}}}), {position, x}, {a, b});
      return make.binary("MINIMUM", a, b);
    }
    case 10: {
      std::vector<std::int32_t> begins, sizes(shape.begin(), shape.end());
      for (int i = 0; i < shape.rank(); ++i) begins.push_back(0);
      const auto at = static_cast<std::size_t>(axis);
      if (shape[axis] < 2) return x;
      begins[at] = make.draw(shape[axis] - 1);
      sizes[at] = shape[axis] - begins[at] - make.draw(2) * (begins[at] + 1 < shape[axis] ? 1 : 0);
      if (sizes[at] < 1) return x;
      return make.op("SLICE", "SliceOptions", {}, {x, make.ints(begins), make.ints(sizes)}, Shape(sizes), type);
    }
    case 11: {
      if (type != DataType::kFloat32) return x;
      Shape vector(std::vector<std::int32_t>(static_cast<std::size_t>(shape.rank()), 1));
      vector[axis] = shape[axis];
      return make.binary("MAXIMUM", x, make.numbers(vector));
    }
    default: {
      if (shape.rank() > 4 || shape.elements() > 2000) return x;
      std::vector<std::int32_t> amounts(static_cast<std::size_t>(shape.rank()) * 2, 0);
      amounts[static_cast<std::size_t>(axis) * 2] = 1;
      Shape larger = shape;
      larger[axis] += 1;
      return make.op("PAD", "PadOptions", {}, {x, make.constant(amounts, {shape.rank(), 2}, DataType::kInt32)}, larger,
                     type);
    }
  }
}

inline ir::Model random_movement(std::uint32_t seed, DataType type) {
  Maker make(seed);
  std::vector<int> pool = {make.input({1 + make.draw(2), 2 + make.draw(3), 4, 1 + make.draw(3)}, type)};
  if (make.draw(2) == 0) pool.push_back(make.input(make.shape(pool[0]), type));
  const int steps = 4 + make.draw(14);
  for (int i = 0; i < steps; ++i) {
    const int from = make.draw(3) == 0 ? pool[reef::at(make.draw(static_cast<int>(pool.size())))] : pool.back();
    pool.push_back(movement_step(make, from, pool, type));
  }
  std::vector<int> outputs = {make.unary("RELU", pool.back())};
  const int other = pool[pool.size() / 2];
  if (make.draw(2) == 0 && other != pool[0]) outputs.push_back(other);
  if (make.draw(4) == 0 && pool.size() > 3 && pool[3] != pool[0] && pool[3] != pool[1] && pool[3] != other)
    outputs.push_back(pool[3]);
  return make.finish(outputs);
}

}  // namespace reef::passes::testing
