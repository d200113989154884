// SPDX-License-Identifier: Apache-2.0
// Small float networks for the tests of pruning, channels last, with every structure that channels can be tied by.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/sample_source.h"
#include "execute/cpu/evaluate.h"
#include "formats/tflite/operator_codes.h"
#include "ir/constants.h"
#include "ir/model.h"
#include "ir/verify.h"
#include "ops/settled_shapes.h"

namespace reef::prune::testing {

class Network {
 public:
  Network() {
    model.buffers.resize(1);
    model.subgraphs.resize(1);
  }

  std::int32_t tensor(ir::Shape shape, ir::DataType type = ir::DataType::kFloat32) {
    ir::Tensor made;
    made.name = "t" + std::to_string(graph().tensors.size());
    made.shape = std::move(shape);
    made.type = type;
    graph().tensors.push_back(std::move(made));
    return static_cast<std::int32_t>(graph().tensors.size() - 1);
  }
  std::int32_t input(ir::Shape shape) {
    graph().inputs.push_back(tensor(std::move(shape)));
    return graph().inputs.back();
  }
  std::int32_t numbers(ir::Shape shape, double scale) {
    std::normal_distribution<float> normal(0, static_cast<float>(scale));
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& v : values) v = normal(random_);
    const std::int32_t t = tensor(std::move(shape));
    ir::set_constant(model, graph().tensors[at(t)], values);
    return t;
  }
  std::int32_t ints(const std::vector<std::int32_t>& values, bool is_scalar = false) {
    const std::int32_t t =
        tensor(is_scalar ? ir::Shape() : ir::Shape({static_cast<std::int32_t>(values.size())}), ir::DataType::kInt32);
    ir::set_constant(model, graph().tensors[at(t)], values);
    return t;
  }
  const ir::Shape& shape(std::int32_t t) { return graph().tensors[at(t)].shape; }

  // The results' shapes are inferred by finish().
  std::int32_t op(std::string_view type, std::string_view options, std::vector<std::int32_t> inputs, ir::Shape result,
                  std::vector<std::pair<std::string, ir::AttributeValue>> attributes = {}) {
    return ops(type, options, std::move(inputs), {std::move(result)}, std::move(attributes))[0];
  }
  std::vector<std::int32_t> ops(std::string_view type, std::string_view options, std::vector<std::int32_t> inputs,
                                std::vector<ir::Shape> results,
                                std::vector<std::pair<std::string, ir::AttributeValue>> attributes) {
    ir::Operator made;
    made.type = type;
    made.builtin_code = tflite::builtin_code(type);
    made.options_type = options;
    made.inputs = std::move(inputs);
    for (ir::Shape& each : results) made.outputs.push_back(tensor(std::move(each)));
    for (auto& [name, value] : attributes) made.attributes.set(name, std::move(value));
    graph().operators.push_back(made);
    return made.outputs;
  }

  std::int32_t conv(std::int32_t x, int channels, int window, int groups = 1, std::string activation = "NONE") {
    const ir::Shape from = shape(x);
    const double scale = 1.4 / std::sqrt(window * window * from.last() / groups);
    const std::int32_t w = numbers({channels, window, window, from.last() / groups}, scale);
    return op("CONV_2D", "Conv2DOptions", {x, w, numbers({channels}, 0.2)}, {1, from[1], from[2], channels},
              {{"padding", ir::EnumName{"SAME"}},
               {"stride_h", std::int64_t{1}},
               {"stride_w", std::int64_t{1}},
               {"dilation_h_factor", std::int64_t{1}},
               {"dilation_w_factor", std::int64_t{1}},
               {"fused_activation_function", ir::EnumName{std::move(activation)}}});
  }
  std::int32_t depthwise(std::int32_t x, int window) {
    const ir::Shape from = shape(x);
    const std::int32_t w = numbers({1, window, window, from.last()}, 0.5);
    return op("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", {x, w, numbers({from.last()}, 0.2)}, from,
              {{"padding", ir::EnumName{"SAME"}},
               {"stride_h", std::int64_t{1}},
               {"stride_w", std::int64_t{1}},
               {"dilation_h_factor", std::int64_t{1}},
               {"dilation_w_factor", std::int64_t{1}},
               {"depth_multiplier", std::int64_t{1}},
               {"fused_activation_function", ir::EnumName{"NONE"}}});
  }
  std::int32_t dense(std::int32_t x, int outputs, bool keeps_axes = true) {
    ir::Shape result = shape(x);
    const std::int32_t inputs = keeps_axes ? result.last() : static_cast<std::int32_t>(result.elements());
    if (keeps_axes) {
      result[result.rank() - 1] = outputs;
    } else {
      result = {1, outputs};
    }
    return op("FULLY_CONNECTED", "FullyConnectedOptions",
              {x, numbers({outputs, inputs}, 1 / std::sqrt(inputs)), numbers({outputs}, 0.2)}, result,
              {{"fused_activation_function", ir::EnumName{"NONE"}}, {"keep_num_dims", keeps_axes}});
  }
  std::int32_t relu(std::int32_t x) { return op("RELU", "", {x}, shape(x)); }
  std::int32_t binary(std::string_view type, std::string_view options, std::int32_t a, std::int32_t b) {
    return op(type, options, {a, b}, shape(a), {{"fused_activation_function", ir::EnumName{"NONE"}}});
  }
  std::int32_t add(std::int32_t a, std::int32_t b) { return binary("ADD", "AddOptions", a, b); }
  std::int32_t multiply(std::int32_t a, std::int32_t b) { return binary("MUL", "MulOptions", a, b); }
  std::int32_t reshape(std::int32_t x, ir::Shape to) {
    return op("RESHAPE", "ReshapeOptions", {x, ints(to.dims())}, to);
  }
  std::int32_t transpose(std::int32_t x, std::vector<std::int32_t> order) {
    ir::Shape result;
    for (const std::int32_t axis : order) result.push_back(shape(x)[axis]);
    return op("TRANSPOSE", "TransposeOptions", {x, ints(order)}, result);
  }
  std::int32_t concatenation(std::int32_t a, std::int32_t b) {
    ir::Shape result = shape(a);
    result[result.rank() - 1] += shape(b).last();
    return op(
        "CONCATENATION", "ConcatenationOptions", {a, b}, result,
        {{"axis", static_cast<std::int64_t>(result.rank() - 1)}, {"fused_activation_function", ir::EnumName{"NONE"}}});
  }
  std::vector<std::int32_t> split(std::int32_t x, int pieces) {
    ir::Shape piece = shape(x);
    const std::int32_t axis = piece.rank() - 1;
    piece[axis] /= pieces;
    return ops("SPLIT", "SplitOptions", {ints({axis}, true), x},
               std::vector<ir::Shape>(static_cast<std::size_t>(pieces), piece),
               {{"num_splits", static_cast<std::int64_t>(pieces)}});
  }
  std::int32_t mean(std::int32_t x) {  // over pixels
    return op("MEAN", "ReducerOptions", {x, ints({1, 2})}, {1, 1, 1, shape(x).last()}, {{"keep_dims", true}});
  }
  std::int32_t product(std::int32_t a, std::int32_t b, bool flips_b) {
    ir::Shape result = shape(a);
    result[result.rank() - 1] = flips_b ? shape(b).last(1) : shape(b).last();
    return op("BATCH_MATMUL", "BatchMatMulOptions", {a, b}, result, {{"adj_x", false}, {"adj_y", flips_b}});
  }

  ir::Model finish(std::int32_t output) {
    graph().outputs = {output};
    const Status status = ir::verify(model);
    EXPECT_TRUE(status.ok()) << status.message();
    const ops::SettledShapes shapes = ops::settle_shapes(model);
    EXPECT_TRUE(shapes.refusal.ok()) << shapes.refusal.message();
    return model;
  }

  ir::Model model;

 private:
  ir::Subgraph& graph() { return model.subgraphs[0]; }
  std::mt19937 random_{7};
};

// Samples of normally distributed numbers.
class RandomSamples : public data::SampleSource {
 public:
  explicit RandomSamples(std::int64_t count) : count_(count) {}
  std::int64_t size() const override { return count_; }
  Status read(std::int64_t sample, const data::InputSpec&, std::span<std::byte> target) const override {
    std::mt19937 random(static_cast<std::uint32_t>(sample + 1));
    std::normal_distribution<float> normal;
    std::vector<float> values(target.size() / sizeof(float));
    for (float& v : values) v = normal(random);
    std::memcpy(target.data(), values.data(), target.size());
    return ok_status();
  }

 private:
  std::int64_t count_;
};

inline std::vector<float> outputs_of(const ir::Model& model, std::int64_t sample) {
  const auto interpreter = cpu::prepared(std::make_shared<const ir::Model>(model));
  EXPECT_TRUE(interpreter.ok()) << interpreter.status().message();
  if (!interpreter.ok()) return {};
  EXPECT_TRUE(RandomSamples(100).read(sample, {}, (*interpreter)->input_bytes(0)).ok());
  EXPECT_TRUE((*interpreter)->invoke().ok());
  const auto values = (*interpreter)->output(0).values<float>();
  return {values.begin(), values.end()};
}

// Power of the difference over that of `a`, on some samples.
inline double difference(const ir::Model& a, const ir::Model& b) {
  double error = 0, power = 0;
  for (std::int64_t sample = 40; sample < 48; ++sample) {
    const std::vector<float> of_a = outputs_of(a, sample), of_b = outputs_of(b, sample);
    EXPECT_EQ(of_a.size(), of_b.size());
    for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
      error += std::pow(static_cast<double>(of_a[i]) - of_b[i], 2);
      power += std::pow(static_cast<double>(of_a[i]), 2);
    }
  }
  return power > 0 ? error / power : error;
}

}  // namespace reef::prune::testing
