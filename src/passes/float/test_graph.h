// SPDX-License-Identifier: Apache-2.0
// What the tests of simplification share: models made in code, channels first as an importer makes them; runs before
// and after; the difference between them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "execute/cpu/evaluate.h"
#include "formats/tflite/operator_codes.h"
#include "formats/tflite/writer.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/simplify.h"

namespace reef::passes::testing {

using ir::DataType;
using ir::Shape;
using Values = std::vector<std::vector<std::uint8_t>>;

inline std::int64_t count(const ir::Model& model, std::string_view type) {
  const auto& operators = model.subgraphs[0].operators;
  return std::count_if(operators.begin(), operators.end(), [&](const ir::Operator& op) { return op.type == type; });
}

// Types of all operators in order: "CONV_2D RELU".
inline std::string operators_of(const ir::Model& model) {
  std::string result;
  for (const ir::Operator& op : model.subgraphs[0].operators) result += (result.empty() ? "" : " ") + op.type;
  return result;
}

class Maker {
 public:
  explicit Maker(std::uint32_t seed = 1) : random(seed) {
    model_.buffers.resize(1);
    model_.subgraphs.resize(1);
  }

  Shape shape(int tensor) const { return graph().tensors[at(tensor)].shape; }
  ir::Tensor& tensor(int id) { return graph().tensors[at(id)]; }
  int add_tensor(Shape shape, DataType type = DataType::kFloat32) {
    ir::Tensor tensor;
    tensor.name = "t" + std::to_string(graph().tensors.size());
    tensor.type = type;
    tensor.shape = std::move(shape);
    if (type == DataType::kInt8) {
      tensor.quantization.scale = {0.05f};
      tensor.quantization.zero_point = {3};
      tensor.has_quantization = true;
    }
    graph().tensors.push_back(std::move(tensor));
    return static_cast<int>(graph().tensors.size()) - 1;
  }
  int input(Shape shape, DataType type = DataType::kFloat32) {
    graph().inputs.push_back(add_tensor(std::move(shape), type));
    return graph().inputs.back();
  }
  template <typename T>
  int constant(std::vector<T> values, Shape shape, DataType type) {
    const int id = add_tensor(std::move(shape), type);
    std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    tensor(id).buffer = static_cast<std::int32_t>(model_.buffers.size());
    model_.buffers.push_back({Bytes(std::move(bytes))});
    return id;
  }
  int ints(std::vector<std::int32_t> values) {
    const auto size = static_cast<std::int32_t>(values.size());
    return constant(std::move(values), {size}, DataType::kInt32);
  }
  int scalar(std::int32_t value) { return constant(std::vector<std::int32_t>{value}, {}, DataType::kInt32); }
  int number(float value, Shape shape = {}) {
    return constant(std::vector<float>(static_cast<std::size_t>(shape.elements()), value), shape, DataType::kFloat32);
  }
  // Random numbers from low to high.
  int numbers(Shape shape, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> draw(low, high);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& value : values) value = draw(random);
    return constant(std::move(values), std::move(shape), DataType::kFloat32);
  }

  int op(std::string_view type, std::string_view options, ir::Attributes attributes, std::vector<int> inputs,
         Shape result, DataType result_type = DataType::kFloat32) {
    const int y = add_tensor(std::move(result), result_type);
    add(type, options, std::move(attributes), std::move(inputs), {y});
    return y;
  }
  void add(std::string_view type, std::string_view options, ir::Attributes attributes, std::vector<int> inputs,
           std::vector<int> outputs) {
    ir::Operator made;
    made.type = type;
    made.builtin_code = tflite::builtin_code(type);
    made.version = tflite::operator_version(type, tensor(outputs[0]).type);
    made.options_type = options;
    made.attributes = std::move(attributes);
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    graph().operators.push_back(std::move(made));
  }

  static ir::Attributes attributes(std::initializer_list<std::pair<const char*, ir::AttributeValue>> rows) {
    ir::Attributes result;
    for (const auto& [name, value] : rows) result.set(name, value);
    return result;
  }
  static ir::Attributes no_activation() { return attributes({{"fused_activation_function", ir::EnumName{"NONE"}}}); }

  // ---- Movement ----
  int transpose(int x, std::vector<std::int32_t> order) {
    Shape result;
    for (const std::int32_t axis : order) result.push_back(shape(x)[axis]);
    return op("TRANSPOSE", "TransposeOptions", {}, {x, ints(order)}, result, tensor(x).type);
  }
  int to_nhwc(int x) { return transpose(x, {0, 2, 3, 1}); }
  int to_nchw(int x) { return transpose(x, {0, 3, 1, 2}); }
  int reshape(int x, Shape result) {
    const int target = ints({result.begin(), result.end()});
    return op("RESHAPE", "ReshapeOptions",
              attributes({{"new_shape", std::vector<std::int64_t>(result.begin(), result.end())}}), {x, target}, result,
              tensor(x).type);
  }
  int concatenation(std::vector<int> parts, int axis) {
    Shape result = shape(parts[0]);
    for (std::size_t i = 1; i < parts.size(); ++i) result[axis] += shape(parts[i])[axis];
    const DataType type = tensor(parts[0]).type;
    return op("CONCATENATION", "ConcatenationOptions",
              attributes({{"axis", std::int64_t{axis}}, {"fused_activation_function", ir::EnumName{"NONE"}}}),
              std::move(parts), result, type);
  }
  // ---- Functions ----
  int unary(std::string_view type, int x) { return op(type, "", {}, {x}, shape(x), tensor(x).type); }
  int binary(std::string_view type, int a, int b) {
    const std::string options = type == "ADD"   ? "AddOptions"
                                : type == "SUB" ? "SubOptions"
                                : type == "MUL" ? "MulOptions"
                                : type == "DIV" ? "DivOptions"
                                                : "";
    Shape result = shape(a).rank() >= shape(b).rank() ? shape(a) : shape(b);
    const Shape other = shape(a).rank() >= shape(b).rank() ? shape(b) : shape(a);
    for (int i = 0; i < other.rank(); ++i) {
      result[result.rank() - 1 - i] = std::max(result.last(i), other.last(i));
    }
    return op(type, options, options.empty() ? ir::Attributes() : no_activation(), {a, b}, result, tensor(a).type);
  }
  int reduce(std::string_view type, int x, std::vector<std::int32_t> axes, bool keep) {
    Shape result;
    for (int i = 0; i < shape(x).rank(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
      if (!reduced || keep) result.push_back(reduced ? 1 : shape(x)[i]);
    }
    return op(type, "ReducerOptions", attributes({{"keep_dims", keep}}), {x, ints(axes)}, result, tensor(x).type);
  }
  // ---- Layers, channels first as an importer makes them ----
  static ir::Attributes window(std::string_view padding, int stride) {
    return attributes({{"padding", ir::EnumName{std::string(padding)}},
                       {"stride_w", std::int64_t{stride}},
                       {"stride_h", std::int64_t{stride}},
                       {"fused_activation_function", ir::EnumName{"NONE"}},
                       {"dilation_w_factor", std::int64_t{1}},
                       {"dilation_h_factor", std::int64_t{1}}});
  }
  // x is [n, h, w, c].
  int conv_nhwc(int x, int channels, int filter, int stride, std::string_view padding) {
    const Shape from = shape(x);
    const auto out = [&](int size) {
      return padding == "SAME" ? (size + stride - 1) / stride : (size - filter) / stride + 1;
    };
    const Shape result = {from[0], out(from[1]), out(from[2]), channels};
    const float range = 1.0f / std::sqrt(static_cast<float>(filter * filter * from[3]));
    const int weights = numbers({channels, filter, filter, from[3]}, -range, range);
    const int bias = numbers({channels});
    return op("CONV_2D", "Conv2DOptions", window(padding, stride), {x, weights, bias}, result);
  }
  int conv(int x, int channels, int filter, int stride = 1, std::string_view padding = "SAME") {
    return to_nchw(conv_nhwc(to_nhwc(x), channels, filter, stride, padding));
  }
  int depthwise(int x, int filter, int stride = 1) {
    const int turned = to_nhwc(x);
    const Shape from = shape(turned);
    const auto out = [&](int size) { return (size + stride - 1) / stride; };
    const Shape result = {from[0], out(from[1]), out(from[2]), from[3]};
    const int weights = numbers({1, filter, filter, from[3]}, -0.4f, 0.4f);
    const int bias = numbers({from[3]});
    ir::Attributes options = window("SAME", stride);
    options.set("depth_multiplier", std::int64_t{1});
    return to_nchw(op("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", options, {turned, weights, bias}, result));
  }
  int pool(int x, std::string_view type, int filter, int stride) {
    const int turned = to_nhwc(x);
    const Shape from = shape(turned);
    const Shape result = {from[0], (from[1] + stride - 1) / stride, (from[2] + stride - 1) / stride, from[3]};
    const ir::Attributes options = attributes({{"padding", ir::EnumName{"SAME"}},
                                               {"stride_w", std::int64_t{stride}},
                                               {"stride_h", std::int64_t{stride}},
                                               {"filter_width", std::int64_t{filter}},
                                               {"filter_height", std::int64_t{filter}},
                                               {"fused_activation_function", ir::EnumName{"NONE"}}});
    return to_nchw(op(type, "Pool2DOptions", options, {turned}, result, tensor(x).type));
  }
  int resize(int x, int factor) {
    const int turned = to_nhwc(x);
    const Shape from = shape(turned);
    const Shape result = {from[0], from[1] * factor, from[2] * factor, from[3]};
    return to_nchw(op("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions", {},
                      {turned, ints({result[1], result[2]})}, result, tensor(x).type));
  }
  int dense(int x, int outputs) {
    const int depth = shape(x).last();
    const float range = 1.0f / std::sqrt(static_cast<float>(depth));
    const int weights = numbers({outputs, depth}, -range, range);
    const int bias = numbers({outputs});
    Shape result = shape(x);
    result[result.rank() - 1] = outputs;
    ir::Attributes options = no_activation();
    options.set("keep_num_dims", result.rank() > 2);
    const int y = op("FULLY_CONNECTED", "FullyConnectedOptions", options, {x, weights, bias}, result);
    if (result.rank() > 2) graph().operators.back().version = 5;
    return y;
  }

  ir::Model finish(std::vector<int> outputs) {
    graph().outputs = std::move(outputs);
    const Status status = ir::verify(model_);
    EXPECT_TRUE(status.ok()) << status.message();
    return model_;
  }

  std::mt19937 random;
  int draw(int below) { return static_cast<int>(random() % static_cast<std::uint32_t>(below)); }

 private:
  ir::Subgraph& graph() { return model_.subgraphs[0]; }
  const ir::Subgraph& graph() const { return model_.subgraphs[0]; }
  ir::Model model_;
};

inline Values random_inputs(const ir::Model& model, std::uint32_t seed) {
  std::mt19937 random(seed);
  Values result;
  for (const std::int32_t id : model.subgraphs[0].inputs) {
    const ir::Tensor& tensor = model.subgraphs[0].tensors[at(id)];
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(*ir::byte_size(tensor.shape, tensor.type)));
    if (tensor.type == DataType::kFloat32) {
      std::uniform_real_distribution<float> draw(-2, 2);
      for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        const float value = draw(random);
        std::memcpy(&bytes[i], &value, 4);
      }
    } else if (tensor.type == DataType::kInt32 || tensor.type == DataType::kInt64) {  // indices, mostly
      const std::size_t size = tensor.type == DataType::kInt32 ? 4 : 8;
      for (std::size_t i = 0; i < bytes.size(); i += size) bytes[i] = static_cast<std::uint8_t>(random() % 8);
    } else {
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    }
    result.push_back(std::move(bytes));
  }
  return result;
}

inline Result<Values> evaluate(const ir::Model& model, const Values& inputs) {
  REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::prepared(std::make_shared<const ir::Model>(model)));
  Values given = inputs;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (interpreter->input_bytes(static_cast<int>(i)).empty()) given[i].clear();  // a constant
  }
  REEF_ASSIGN_OR_RETURN(std::vector<cpu::Value> results, cpu::run_once(*interpreter, given));
  Values outputs;
  for (cpu::Value& result : results) outputs.push_back(std::move(result.bytes));
  return outputs;
}

// Where REEF_SIMPLIFY_PAIRS names a folder, both models are left there, to be compared in another runtime.
inline void keep_pair(const ir::Model& before, const ir::Model& after) {
  const char* folder = std::getenv("REEF_SIMPLIFY_PAIRS");
  if (folder == nullptr) return;
  static int number = 0;
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string base = fmt::format("{}/{}_{}_{}", folder, test->test_suite_name(), test->name(), ++number);
  for (const auto& [model, name] : {std::pair(&before, "_before.tflite"), std::pair(&after, "_after.tflite")}) {
    const auto bytes = tflite::write_model(*model);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    ASSERT_TRUE(write_file(base + name, *bytes).ok());
  }
}

// Simplifies a copy and compares what both compute: to `tolerance` times the largest value of an output (0: to the
// bit).
inline ir::Model expect_same(const ir::Model& before, double tolerance, const SimplifyOptions& options = {}) {
  ir::Model after = before;
  const auto report = simplify(after, options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  if (!report.ok()) return before;
  const Values inputs = random_inputs(before, 17);
  const auto expected = evaluate(before, inputs), actual = evaluate(after, inputs);
  EXPECT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_TRUE(actual.ok()) << actual.status().message() << "\n" << ir::print(after, {.max_constant_bytes = 64});
  if (!expected.ok() || !actual.ok()) return after;
  EXPECT_EQ(expected->size(), actual->size());
  for (std::size_t k = 0; k < expected->size(); ++k) {
    const std::vector<std::uint8_t>& a = (*expected)[k];
    const std::vector<std::uint8_t>& b = (*actual)[k];
    EXPECT_EQ(a.size(), b.size());
    const auto output = static_cast<std::size_t>(before.subgraphs[0].outputs[k]);
    const auto now = static_cast<std::size_t>(after.subgraphs[0].outputs[k]);
    EXPECT_EQ(before.subgraphs[0].tensors[output].name, after.subgraphs[0].tensors[now].name);
    EXPECT_EQ(before.subgraphs[0].tensors[output].shape, after.subgraphs[0].tensors[now].shape);
    if (a.size() != b.size() || a == b) continue;
    const bool is_float = before.subgraphs[0].tensors[output].type == DataType::kFloat32;
    EXPECT_TRUE(is_float && tolerance > 0) << "output " << k << " differs\n"
                                           << ir::print(after, {.max_constant_bytes = 64});
    if (!is_float || tolerance == 0) continue;
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i + 4 <= a.size(); i += 4) {
      float x = 0, y = 0;
      std::memcpy(&x, &a[i], 4);
      std::memcpy(&y, &b[i], 4);
      largest = std::max(largest, std::abs(x));
      if (!(std::abs(x - y) <= difference)) difference = std::abs(x - y);  // also where it is not a number
    }
    EXPECT_LE(difference, tolerance * largest) << "output " << k << "\n"
                                               << ir::print(after, {.max_constant_bytes = 64});
  }
  keep_pair(before, after);
  return after;
}

}  // namespace reef::passes::testing
