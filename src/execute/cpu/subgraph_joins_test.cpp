// SPDX-License-Identifier: Apache-2.0
// Ops computed together give the bits that they give one by one, and are joined where that is allowed and nowhere else.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "execute/cpu/interpreter.h"
#include "ir/verify.h"
#include "small_models.h"

namespace reef::cpu {
namespace {

using ir::DataType;
using testing::op;
using testing::tensor;

struct Graph {
  ir::Model model;
  ir::Subgraph graph;
  std::mt19937 random{7};

  Graph() { model.buffers.resize(1); }
  std::int32_t add(DataType type, ir::Shape shape, float scale = 0, std::int64_t zero_point = 0) {
    graph.tensors.push_back(tensor(type, std::move(shape)));
    if (scale > 0) {
      graph.tensors.back().quantization.scale = {scale};
      graph.tensors.back().quantization.zero_point = {zero_point};
    }
    return static_cast<std::int32_t>(graph.tensors.size()) - 1;
  }
  template <typename T>
  std::int32_t constant(DataType type, ir::Shape shape, const std::vector<T>& values, float scale = 0,
                        std::int64_t zero_point = 0) {
    const std::int32_t index = add(type, std::move(shape), scale, zero_point);
    graph.tensors.back().buffer = static_cast<std::int32_t>(model.buffers.size());
    model.buffers.emplace_back().data =
        Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)});
    return index;
  }
  ir::Operator& emit(const char* type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs) {
    graph.operators.push_back(op(type, std::move(inputs), std::move(outputs)));
    return graph.operators.back();
  }
  std::shared_ptr<const ir::Model> done(std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs) {
    graph.inputs = std::move(inputs);
    graph.outputs = std::move(outputs);
    model.subgraphs.push_back(std::move(graph));
    EXPECT_TRUE(ir::verify(model).ok());
    return std::make_shared<const ir::Model>(std::move(model));
  }
};

struct Ran {
  std::vector<std::vector<std::byte>> outputs;
  std::vector<bool> did_work;  // per op
};

Ran run(const std::shared_ptr<const ir::Model>& model, bool one_by_one, int threads) {
  InterpreterOptions options;
  options.threads = threads;
  options.profile = true;
  options.one_by_one = one_by_one;
  auto interpreter = Interpreter::create(model, options);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status().message();
  const Status prepared = (*interpreter)->prepare();
  EXPECT_TRUE(prepared.ok()) << prepared.message();
  std::mt19937 random(1);
  for (int i = 0; i < (*interpreter)->input_count(); ++i) {
    const std::span<std::byte> bytes = (*interpreter)->input_bytes(i);
    if ((*interpreter)->input(i).type == DataType::kFloat32) {
      for (std::size_t k = 0; k < bytes.size(); k += 4) {
        const float value = static_cast<float>(random() % 2001) / 100.0f - 10.0f;
        std::memcpy(bytes.data() + k, &value, 4);
      }
    } else {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    }
  }
  Ran result;
  for (int repeat = 0; repeat < 2; ++repeat) {  // inputs must have survived the first time
    EXPECT_TRUE((*interpreter)->invoke().ok());
  }
  for (int i = 0; i < (*interpreter)->output_count(); ++i) {
    const ops::Tensor& output = (*interpreter)->output(i);
    result.outputs.emplace_back(output.data, output.data + output.bytes);
  }
  for (const OpTiming& timing : (*interpreter)->timings()) result.did_work.push_back(timing.least_ms > 0);
  return result;
}

// Runs in all ways; returns which ops did work when joined.
std::vector<bool> expect_same_results(const std::shared_ptr<const ir::Model>& model) {
  const Ran expected = run(model, true, 1);
  const Ran joined = run(model, false, 1);
  EXPECT_EQ(joined.outputs, expected.outputs);
  EXPECT_EQ(run(model, false, 3).outputs, expected.outputs);
  return joined.did_work;
}

// PAD, then a convolution without padding. `value`: what to pad with, relative to the zero point.
struct PaddedConvolution {
  DataType type = DataType::kInt8;
  bool depthwise = false, has_value = false, second_reader = false;
  std::int32_t value = 0;
  std::int32_t top = 1, bottom = 1, left = 1, right = 1, stride = 1, dilation = 1, window = 3;
  std::int32_t height = 7, width = 6, channels = 5, pad_channels = 0;
  float odd_weight = 0.25f;
};

std::shared_ptr<const ir::Model> model_of(const PaddedConvolution& c) {
  Graph g;
  const bool is_float = c.type == DataType::kFloat32;
  const float scale = is_float ? 0.0f : 0.5f;
  const std::int64_t zero = is_float ? 0 : c.type == DataType::kUInt8 ? 131 : -7;
  const std::int32_t x = g.add(c.type, {1, c.height, c.width, c.channels}, scale, zero);
  const std::vector<std::int32_t> table = {0, 0, c.top, c.bottom, c.left, c.right, 0, c.pad_channels};
  const std::int32_t paddings = g.constant<std::int32_t>(DataType::kInt32, {4, 2}, table);
  const std::int32_t all = c.channels + c.pad_channels;
  const ir::Shape padded_shape = {1, c.height + c.top + c.bottom, c.width + c.left + c.right, all};
  const std::int32_t padded = g.add(c.type, padded_shape, scale, zero);
  std::vector<std::int32_t> operands = {x, paddings};
  if (c.has_value) {
    operands.push_back(
        is_float ? g.constant<float>(c.type, {1}, {static_cast<float>(c.value)})
                 : g.constant<std::uint8_t>(c.type, {1}, {static_cast<std::uint8_t>(zero + c.value)}, scale, zero));
  }
  g.emit(c.has_value ? "PADV2" : "PAD", operands, {padded});
  const std::int32_t outputs = c.depthwise ? all : 4;
  const ir::Shape weights_shape =
      c.depthwise ? ir::Shape({1, c.window, c.window, outputs}) : ir::Shape({outputs, c.window, c.window, all});
  const auto count = static_cast<std::size_t>(weights_shape.elements());
  std::int32_t weights = 0;
  if (is_float) {
    std::vector<float> values(count);
    for (float& v : values) v = static_cast<float>(g.random() % 200) / 100.0f - 1.0f;
    values[0] = c.odd_weight;
    weights = g.constant<float>(c.type, weights_shape, values);
  } else {
    std::vector<std::uint8_t> values(count);
    for (std::uint8_t& v : values) v = static_cast<std::uint8_t>(g.random());
    weights = g.constant<std::uint8_t>(c.type, weights_shape, values, 0.01f, c.type == DataType::kUInt8 ? 120 : 0);
  }
  const std::int32_t reach = (c.window - 1) * c.dilation + 1;
  const ir::Shape result = {1, (padded_shape[1] - reach) / c.stride + 1, (padded_shape[2] - reach) / c.stride + 1,
                            outputs};
  const std::int32_t y = g.add(c.type, result, is_float ? 0.0f : 0.7f, zero);
  ir::Operator& conv = g.emit(c.depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", {padded, weights}, {y});
  conv.attributes.set("padding", ir::EnumName{"VALID"});
  for (const char* name : {"stride_h", "stride_w"}) conv.attributes.set(name, std::int64_t{c.stride});
  for (const char* name : {"dilation_h_factor", "dilation_w_factor"})
    conv.attributes.set(name, std::int64_t{c.dilation});
  std::vector<std::int32_t> results = {y};
  if (c.second_reader) {
    const std::int32_t z = g.add(c.type, padded_shape, scale, zero);
    g.emit("RELU", {padded}, {z});
    results.push_back(z);
  }
  return g.done({x}, results);
}

TEST(Joins, PaddingBecomesTheConvolutions) {
  for (const DataType type : {DataType::kInt8, DataType::kUInt8, DataType::kFloat32}) {
    for (const bool depthwise : {false, true}) {
      EXPECT_EQ(expect_same_results(model_of({.type = type, .depthwise = depthwise})),
                (std::vector<bool>{false, true}));
      EXPECT_EQ(expect_same_results(model_of({.type = type, .depthwise = depthwise, .has_value = true})),
                (std::vector<bool>{false, true}));
    }
  }
}

TEST(Joins, PaddingOfAllSizes) {
  std::mt19937 random(5);
  int joined = 0;
  for (int i = 0; i < 200; ++i) {
    PaddedConvolution c;
    constexpr DataType kTypes[] = {DataType::kInt8, DataType::kUInt8, DataType::kFloat32};
    c.type = kTypes[random() % 3];
    c.depthwise = random() % 2;
    c.window = 1 + static_cast<std::int32_t>(random() % 5);
    c.stride = 1 + static_cast<std::int32_t>(random() % 3);
    c.dilation = 1 + static_cast<std::int32_t>(random() % 2);
    for (std::int32_t* margin : {&c.top, &c.bottom, &c.left, &c.right})
      *margin = static_cast<std::int32_t>(random() % 4);
    c.height = 9 + static_cast<std::int32_t>(random() % 8);
    c.width = 9 + static_cast<std::int32_t>(random() % 20);
    c.channels = 1 + static_cast<std::int32_t>(random() % 40);
    joined += !expect_same_results(model_of(c))[0];
  }
  EXPECT_GT(joined, 50);
}

TEST(Joins, PaddingThatIsNotZeroStays) {
  const std::vector<bool> both = {true, true};
  EXPECT_EQ(expect_same_results(model_of({.has_value = true, .value = 1})), both);
  EXPECT_EQ(expect_same_results(model_of({.type = DataType::kFloat32, .has_value = true, .value = 1})), both);
  EXPECT_EQ(expect_same_results(model_of({.pad_channels = 1})), both) << "channels";
  EXPECT_EQ(expect_same_results(model_of({.top = 3})), both) << "windows beside the image";
  EXPECT_EQ(expect_same_results(model_of({.second_reader = true})), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(
      expect_same_results(model_of({.type = DataType::kFloat32, .odd_weight = std::numeric_limits<float>::infinity()})),
      both);
}

TEST(Joins, ChainsOfMapsAreOneTable) {
  Graph g;
  const std::int32_t x = g.add(DataType::kInt8, {3, 100}, 0.1f, 3);
  const std::int32_t real = g.add(DataType::kFloat32, {3, 100});
  const std::int32_t curve = g.add(DataType::kFloat32, {3, 100});
  const std::int32_t bytes = g.add(DataType::kUInt8, {3, 100}, 1 / 256.0f, 0);
  const std::int32_t factor = g.constant<std::uint8_t>(DataType::kUInt8, {1}, {200}, 0.02f, 100);
  const std::int32_t y = g.add(DataType::kUInt8, {3, 100}, 0.013f, 17);
  g.emit("DEQUANTIZE", {x}, {real});
  g.emit("LOGISTIC", {real}, {curve});
  g.emit("QUANTIZE", {curve}, {bytes});
  g.emit("MUL", {factor, bytes}, {y});
  EXPECT_EQ(expect_same_results(g.done({x}, {y})), (std::vector<bool>{false, false, false, true}));
}

TEST(Joins, ChainsEndWhereOthersReadAndWhereChannelsHaveScales) {
  Graph g;
  const std::int32_t x = g.add(DataType::kInt8, {4, 30}, 0.1f, 3);
  const std::int32_t a = g.add(DataType::kUInt8, {4, 30}, 0.1f, 131);
  const std::int32_t b = g.add(DataType::kUInt8, {4, 30}, 0.2f, 128);
  const std::int32_t c = g.add(DataType::kInt8, {4, 30}, 0.2f, 0);
  g.emit("QUANTIZE", {x}, {a});
  g.emit("QUANTIZE", {a}, {b});
  g.emit("QUANTIZE", {b}, {c});
  EXPECT_EQ(expect_same_results(g.done({x}, {b, c})), (std::vector<bool>{false, true, true}));

  Graph per_channel;
  const std::int32_t p = per_channel.add(DataType::kInt8, {4, 30}, 0.1f, 3);
  const std::int32_t q = per_channel.add(DataType::kFloat32, {4, 30});
  const std::int32_t r = per_channel.add(DataType::kInt8, {4, 30});
  per_channel.graph.tensors.back().quantization.scale = {0.1f, 0.2f, 0.3f, 0.4f};
  per_channel.graph.tensors.back().quantization.zero_point = {0, 1, 2, 3};
  per_channel.emit("DEQUANTIZE", {p}, {q});
  per_channel.emit("QUANTIZE", {q}, {r});
  EXPECT_EQ(expect_same_results(per_channel.done({p}, {r})), (std::vector<bool>{true, true}));
}

// x * logistic(x), of which the second operand may be the other, and x * relu6(x + 3) * constant.
TEST(Joins, ChainsThatComeBackToTheirInputAreOneTable) {
  for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
    const std::int64_t middle = type == DataType::kInt8 ? 0 : 128;
    for (const bool is_first : {false, true}) {
      Graph g;
      const std::int32_t x = g.add(type, {5, 40}, 0.05f, middle + 3);
      const std::int32_t gate = g.add(type, {5, 40}, 1 / 256.0f, middle - 128);
      const std::int32_t y = g.add(type, {5, 40}, 0.03f, middle - 90);
      g.emit("LOGISTIC", {x}, {gate});
      g.emit("MUL", is_first ? std::vector{x, gate} : std::vector{gate, x}, {y});
      EXPECT_EQ(expect_same_results(g.done({x}, {y})), (std::vector<bool>{false, true}));
    }
    Graph g;
    const std::int32_t x = g.add(type, {5, 40}, 0.05f, middle + 3);
    const std::int32_t three =
        g.constant<std::uint8_t>(type, {1}, {static_cast<std::uint8_t>(middle + 60)}, 0.05f, middle);
    const std::int32_t raised = g.add(type, {5, 40}, 0.07f, middle);
    const std::int32_t limited = g.add(type, {5, 40}, 6 / 255.0f, middle - 128);
    const std::int32_t product = g.add(type, {5, 40}, 0.1f, middle);
    const std::int32_t sixth =
        g.constant<std::uint8_t>(type, {1}, {static_cast<std::uint8_t>(middle + 100)}, 0.00166f, middle);
    const std::int32_t y = g.add(type, {5, 40}, 0.04f, middle - 100);
    g.emit("ADD", {x, three}, {raised});
    g.emit("RELU6", {raised}, {limited});
    g.emit("MUL", {x, limited}, {product});
    g.emit("MUL", {product, sixth}, {y});
    EXPECT_EQ(expect_same_results(g.done({x}, {y})), (std::vector<bool>{false, false, false, true}));
  }
}

TEST(Joins, ChainsDoNotReadOtherTensors) {
  // The gate of another tensor, a gate that somebody else reads, and a broadcast product.
  Graph other;
  const std::int32_t x = other.add(DataType::kInt8, {5, 40}, 0.05f, 3),
                     z = other.add(DataType::kInt8, {5, 40}, 0.06f, 1);
  const std::int32_t gate = other.add(DataType::kInt8, {5, 40}, 1 / 256.0f, -128);
  const std::int32_t y = other.add(DataType::kInt8, {5, 40}, 0.03f, -90);
  other.emit("LOGISTIC", {x}, {gate});
  other.emit("MUL", {z, gate}, {y});
  EXPECT_EQ(expect_same_results(other.done({x, z}, {y})), (std::vector<bool>{true, true}));

  Graph read;
  const std::int32_t a = read.add(DataType::kInt8, {5, 40}, 0.05f, 3);
  const std::int32_t b = read.add(DataType::kInt8, {5, 40}, 1 / 256.0f, -128);
  const std::int32_t c = read.add(DataType::kInt8, {5, 40}, 0.03f, -90);
  read.emit("LOGISTIC", {a}, {b});
  read.emit("MUL", {a, b}, {c});
  EXPECT_EQ(expect_same_results(read.done({a}, {b, c})), (std::vector<bool>{true, true}));

  Graph wide;
  const std::int32_t row = wide.add(DataType::kInt8, {1, 40}, 0.05f, 3);
  const std::int32_t rows = wide.add(DataType::kInt8, {5, 40}, 0.05f, 3);
  const std::int32_t curve = wide.add(DataType::kInt8, {1, 40}, 1 / 256.0f, -128);
  const std::int32_t result = wide.add(DataType::kInt8, {5, 40}, 0.03f, -90);
  wide.emit("LOGISTIC", {row}, {curve});
  wide.emit("MUL", {rows, curve}, {result});
  EXPECT_EQ(expect_same_results(wide.done({row, rows}, {result})), (std::vector<bool>{true, true}));
}

TEST(Joins, ElementwiseOpsInPlaceAndViewsForNothing) {
  Graph g;
  const std::int32_t x = g.add(DataType::kFloat32, {2, 50});
  const std::int32_t like = g.constant<std::int32_t>(DataType::kInt32, {1}, {100});
  const std::int32_t a = g.add(DataType::kFloat32, {2, 50}), b = g.add(DataType::kFloat32, {100});
  const std::int32_t c = g.add(DataType::kFloat32, {100}), d = g.add(DataType::kFloat32, {100});
  const std::int32_t row = g.add(DataType::kFloat32, {1});
  g.emit("RELU", {x}, {a});
  g.emit("RESHAPE", {a, like}, {b});
  g.emit("ADD", {b, row}, {c});
  g.emit("MUL", {c, c}, {d});
  const auto model = g.done({x, row}, {d});
  EXPECT_EQ(expect_same_results(model), (std::vector<bool>{true, false, true, true}));
  auto interpreter = Interpreter::create(model);
  ASSERT_TRUE((*interpreter)->prepare().ok());
  EXPECT_EQ((*interpreter)->memory().arena_bytes, 448 + 448 + 64) << "the inputs, and one place for the rest";
}

TEST(Joins, KeptTensorsAreNotOverwritten) {
  Graph g;
  const std::int32_t x = g.add(DataType::kFloat32, {4}), a = g.add(DataType::kFloat32, {4});
  const std::int32_t b = g.add(DataType::kFloat32, {2, 2}), c = g.add(DataType::kFloat32, {2, 2});
  g.emit("NEG", {x}, {a});
  g.emit("RESHAPE", {a}, {b}).attributes.set("new_shape", std::vector<std::int64_t>{2, 2});
  g.emit("NEG", {b}, {c});
  InterpreterOptions options;
  options.keeps_all_tensors = true;
  auto interpreter = Interpreter::create(g.done({x}, {c}), options);
  ASSERT_TRUE((*interpreter)->prepare().ok());
  const float one = 1;
  std::memcpy((*interpreter)->input_bytes(0).data(), &one, sizeof one);
  ASSERT_TRUE((*interpreter)->invoke().ok());
  EXPECT_EQ((*interpreter)->tensor(a).values<float>()[0], -1.0f);
  EXPECT_EQ((*interpreter)->tensor(b).values<float>()[0], -1.0f);
  EXPECT_EQ((*interpreter)->tensor(c).values<float>()[0], 1.0f);
}

TEST(Joins, ObserversSeeEveryOpByItself) {
  const auto model = model_of({});
  int ops = 0;
  InterpreterOptions options;
  options.after_op = [&](const OpRun& run) {
    ++ops;
    EXPECT_NE(run.inputs[0]->data, run.outputs[0]->data);
    return ok_status();
  };
  auto interpreter = Interpreter::create(model, options);
  ASSERT_TRUE((*interpreter)->prepare().ok());
  ASSERT_TRUE((*interpreter)->invoke().ok());
  EXPECT_EQ(ops, 2);
}

}  // namespace
}  // namespace reef::cpu
