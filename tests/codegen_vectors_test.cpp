// SPDX-License-Identifier: Apache-2.0
// Generated networks of fully connected layers, with images and vectors before, between and behind them, through the
// code generator and the virtual device: outputs must be those of the chip reference to the last bit.
//
// Races are looked for in our own way of gathering vectors (Level::kBetter); Google's rests on timing, which
// ring_copies_test.cpp shows.
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "generated_code.h"
#include "quantized_model.h"
#include "random_choice.h"
#include "trials.h"

namespace reef::testing {
namespace {

ir::AttributeValue word(const char* name) { return ir::EnumName{name}; }

class RandomNetwork {
 public:
  explicit RandomNetwork(unsigned seed) : choice_(seed) {
    type_ = choice_.likely(60) ? ir::DataType::kInt8 : ir::DataType::kUInt8;
    model_ = QuantizedModel(Quantized{type_, 0.05f, choice_.zero_point(type_)});
  }

  ir::Model make() {
    std::int32_t x = model_.input(input_shape());
    const int layers = choice_.between(1, 4);
    std::vector<std::int32_t> outputs;
    bool dense = false;
    for (int i = 0; i < layers; ++i) {
      x = layer(x, dense);
      if (i + 1 < layers && choice_.likely(10)) outputs.push_back(x);
    }
    if (!dense) x = fully_connected(x);
    outputs.push_back(x);
    return model_.finish(outputs);
  }

 private:
  ir::Shape input_shape() {
    const int n = choice_.likely(50) ? choice_.between(1, 300) : choice_.between(300, 2500);
    switch (choice_.between(0, 5)) {
      case 0:
        return {1, choice_.between(1, 12), choice_.between(1, 12), choice_.among({1, 2, 3, 4, 5, 8, 16, 20})};
      case 1:
        return {1, choice_.between(2, 20), choice_.between(1, 30)};
      case 2:
        return {choice_.between(2, 20), choice_.between(1, 30)};
      case 3:
        return {1, 1, 1, n};
      default:
        return {1, n};
    }
  }

  void requantize(std::int32_t tensor, float about) {
    ir::Quantization& q = model_.tensor(tensor).quantization;
    q.scale = {about * static_cast<float>(choice_.between(70, 150)) / 100};
    q.zero_point = {choice_.zero_point(type_)};
  }

  std::int32_t layer(std::int32_t x, bool& dense) {
    const ir::Shape shape = model_.shape(x);
    const int kind = choice_.between(0, 9);
    if (kind < 4) {
      dense = true;
      return fully_connected(x);
    }
    if (kind < 6) return function(x);
    if (kind < 8) return reshaped(x);
    if (shape.rank() == 4) {
      const std::int32_t y = model_.conv(x, choice_.among({1, 3, 6, 8, 16, 70}), choice_.among({1, 1, 3}));
      requantize(y, 0.08f);
      return y;
    }
    return function(x);
  }

  std::int32_t function(std::int32_t x) {
    const bool is_tanh = choice_.likely(50);
    const std::int32_t y =
        model_.computed(model_.shape(x), Quantized{type_, is_tanh ? 1 / 128.0f : 1 / 256.0f,
                                                   (type_ == ir::DataType::kInt8 ? -128 : 0) + (is_tanh ? 128 : 0)});
    return model_.op(is_tanh ? "TANH" : "LOGISTIC", {x}, {y});
  }

  std::int32_t reshaped(std::int32_t x) {
    const auto n = static_cast<std::int32_t>(model_.shape(x).elements());
    std::int32_t a = choice_.between(1, 6), b = choice_.between(1, 6);
    while (n % a != 0) --a;
    while (n / a % b != 0) --b;
    switch (choice_.between(0, 3)) {
      case 0:
        return model_.reshape(x, {1, n});
      case 1:
        return model_.reshape(x, {1, 1, 1, n});
      case 2:
        return model_.reshape(x, {1, a, n / a});
      default:
        return model_.reshape(x, {1, a, b, n / a / b});
    }
  }

  std::int32_t fully_connected(std::int32_t x) {
    const ir::Shape shape = model_.shape(x);
    const auto elements = static_cast<std::int32_t>(shape.elements());
    const bool rows = shape.rank() <= 3 && elements != shape.last() && choice_.likely(60);
    const std::int32_t inputs = rows ? shape.last() : elements;
    int outputs = choice_.likely(50) ? choice_.between(1, 70) : choice_.among({64, 65, 100, 128, 256, 300});
    if (!rows && inputs < 100 && choice_.likely(15)) outputs = choice_.among({1000, 1024, 1025, 1100, 2050});
    const float weight_scale = 0.02f;
    const std::int32_t weights = model_.weights({outputs, inputs}, weight_scale);
    ir::Quantization& q = model_.tensor(weights).quantization;
    if (type_ == ir::DataType::kInt8 && choice_.likely(50)) {
      q.dimension = 0;
      q.scale.assign(static_cast<std::size_t>(outputs), weight_scale);
      q.zero_point.assign(static_cast<std::size_t>(outputs), 0);
      if (choice_.likely(80)) {
        for (std::size_t c = 0; c < q.scale.size(); ++c) q.scale[c] *= 1.0f + 0.03f * static_cast<float>(c % 7);
      }
    } else if (type_ == ir::DataType::kUInt8) {
      q.zero_point = {choice_.among({0, 100, 128, 140, 255})};
    }
    const float in_scale = model_.tensor(x).quantization.scale[0];
    const std::int32_t y = model_.computed({elements / inputs, outputs}, Quantized{type_, 1.0f, 0});
    requantize(y, static_cast<float>(in_scale * weight_scale * 73 * 74 * std::sqrt(double(inputs)) / 60));
    std::vector<std::int32_t> operands = {x, weights};
    if (choice_.likely(70)) {
      std::vector<std::int32_t> bias(static_cast<std::size_t>(outputs));
      for (auto& b : bias) b = static_cast<std::int32_t>(choice_.random() % 20001) - 10000;
      operands.push_back(model_.ints(bias));
      model_.tensor(operands.back()).quantization.scale = {in_scale * weight_scale};
      model_.tensor(operands.back()).quantization.zero_point = {0};
    } else if (choice_.likely(50)) {
      operands.push_back(-1);
    }
    ir::Attributes attributes;
    attributes.set("fused_activation_function", word(choice_.likely(30) ? "RELU" : "NONE"));
    return model_.op("FULLY_CONNECTED", operands, {y}, "FullyConnectedOptions", attributes,
                     type_ == ir::DataType::kInt8 ? 4 : 1);
  }

  RandomChoice choice_;
  ir::DataType type_;
  QuantizedModel model_;
};

Result<darwinn::Package> compiled(const ir::Model& model, tiled::Level level) {
  return compiler::generate_code_with(WholeModel(model).part(7), {.level = level});
}

TEST(CodegenVectors, RandomNetworksAreBitExact) {
  int ran = 0;
  std::map<std::string, int> refused;
  const auto [begin, end] = seeds_to_try(200);
  for (unsigned seed = begin; seed < end; ++seed) {
    const ir::Model model = RandomNetwork(seed).make();
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, describe(model)));
    const auto ours = compiled(model, tiled::Level::kBetter);
    if (!ours.ok()) {
      EXPECT_EQ(ours.status().code(), StatusCode::kUnsupported) << ours.status().message();
      ++refused[ours.status().message().substr(0, 110)];
      continue;
    }
    const device::Schedule schedule = schedule_of(seed);
    const Status status = runs_as_chip_reference(model, *ours, seed, &schedule);
    EXPECT_TRUE(status.ok()) << status.message();
    if (seed % 4 == 0) {
      const Status races = has_no_races(*ours);
      EXPECT_TRUE(races.ok()) << races.message();
    }
    if (seed % 4 == 1) {
      const Status audited = passes_audit(*ours);
      EXPECT_TRUE(audited.ok()) << audited.message();
    }
    const auto googles = compiled(model, tiled::Level::kAsGoogle);
    ASSERT_TRUE(googles.ok()) << googles.status().message();
    const Status google_status = runs_as_chip_reference(model, *googles, seed);
    EXPECT_TRUE(google_status.ok()) << google_status.message();
    ++ran;
  }
  std::printf("%d networks ran\n", ran);
  for (const auto& [reason, times] : refused) std::printf("%4d refused: %s\n", times, reason.c_str());
  EXPECT_GE(ran, static_cast<int>(end - begin) * 9 / 10);
}

void expect_exact(const ir::Model& model) {
  const auto package = compiled(model, tiled::Level::kBetter);
  ASSERT_TRUE(package.ok()) << package.status().message();
  const Status runs = runs_as_chip_reference(model, *package, 1);
  EXPECT_TRUE(runs.ok()) << runs.message();
  const Status audited = passes_audit(*package);
  EXPECT_TRUE(audited.ok()) << audited.message();
}

// A vector that layers on the CPU read: no layer here says which tiles need it.
TEST(CodegenVectors, AVectorThatOnlyLeaves) {
  QuantizedModel quantized;
  const std::int32_t x = quantized.input({1, 5, 7, 3});
  const std::int32_t vector = quantized.reshape(x, {1, 105});
  const ir::Model model = quantized.finish({quantized.fully_connected(vector, 9)});
  for (const tiled::Level level : {tiled::Level::kAsGoogle, tiled::Level::kBetter}) {
    const compiler::PartProgram first{
        .model = model, .ops = {0}, .inputs = {x}, .outputs = {vector}, .caching_token = 7};
    const auto package = compiler::generate_code_with(first, {.level = level});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const Status runs = runs_as_chip_reference(model, *package, 1);
    EXPECT_TRUE(runs.ok()) << runs.message();
  }
}

// No layer stands between the transfer of the input and the copies of a row that SOFTMAX is spread over tiles with.
TEST(CodegenVectors, SoftmaxRightBehindTheInput) {
  for (const int size : {65, 300, 1001, 2000}) {
    QuantizedModel quantized;
    const ir::Model model = quantized.finish({quantized.softmax(quantized.input({1, size}))});
    for (const auto level : {tiled::Level::kAsGoogle, tiled::Level::kBetter, tiled::Level::kFast}) {
      SCOPED_TRACE(fmt::format("{} elements, level {}", size, static_cast<int>(level)));
      const auto package = compiled(model, level);
      ASSERT_TRUE(package.ok()) << package.status().message();
      const Status runs = runs_as_chip_reference(model, *package, 1);
      EXPECT_TRUE(runs.ok()) << runs.message();
    }
  }
}

// More weights than the tiles of the outputs can keep: they pass by one tile.
TEST(CodegenVectors, ManyInputs) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 40, 50, 4}), 8);
  expect_exact(model.finish({model.fully_connected(model.reshape(x, {1, 16000}), 3)}));
}

// Parameters of several layers that do not fit side by side are brought before each use.
TEST(CodegenVectors, MoreLayersThanFit) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 1024});
  for (int i = 0; i < 9; ++i) x = model.fully_connected(x, 1024);
  expect_exact(model.finish({x}));
}

TEST(CodegenVectors, ConvolutionsOfOnePixel) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 1, 1, 70}), 96);
  const std::int32_t y = model.depthwise(x, 3);
  expect_exact(model.finish({model.conv(y, 10), x}));
}

}  // namespace
}  // namespace reef::testing
