// SPDX-License-Identifier: Apache-2.0
// Generated networks through the code generator and the virtual device: outputs must be those of the chip reference
// (chip_reference.h), which shares no code with either, to the last bit, in the usual and in other orders of execution.
#include <cmath>
#include <map>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "generated_code.h"
#include "isa/opcode.h"
#include "quantized_model.h"
#include "trials.h"

namespace reef::testing {
namespace {

struct Choice {
  explicit Choice(unsigned seed) : random(seed) {}
  int among(std::initializer_list<int> values) {
    return *(values.begin() + std::uniform_int_distribution<int>(0, static_cast<int>(values.size()) - 1)(random));
  }
  bool likely(int percent) { return std::uniform_int_distribution<int>(0, 99)(random) < percent; }
  std::mt19937 random;
};

ir::AttributeValue word(const char* name) { return ir::EnumName{name}; }

// A chain of convolutions. Scales are such that results use most of their range.
class RandomNetwork {
 public:
  RandomNetwork(unsigned seed, bool uneven) : choice_(seed), uneven_(uneven) {
    type_ = choice_.likely(70) ? ir::DataType::kInt8 : ir::DataType::kUInt8;
    model_ = QuantizedModel(Quantized{type_, 0.05f, zero_point()});
  }

  ir::Model make() {
    int channels = choice_.among({1, 3, 4, 8, 16, 20, 64, 68});
    int width = channels == 1 || channels == 3 ? choice_.among({16, 32, 48}) : choice_.among({4, 8, 12, 20, 24});
    int height = choice_.among({4, 8, 12, 16, 20});
    if (uneven_) {
      channels = choice_.among({1, 2, 3, 4, 5, 6, 7, 8, 20, 67});
      width = std::uniform_int_distribution<int>(1, 40)(choice_.random);
      height = std::uniform_int_distribution<int>(1, 30)(choice_.random);
    }
    std::int32_t x = model_.input({1, height, width, channels});
    const int layers = choice_.among({1, 1, 2, 3, 4});
    for (int i = 0; i < layers; ++i) {
      const bool last = i + 1 == layers;
      x = layer(x, last);
    }
    return model_.finish({x});
  }

 private:
  std::int64_t zero_point() {
    const int offset = type_ == ir::DataType::kInt8 ? -128 : 0;
    return offset + choice_.among({0, 3, 100, 128, 255});
  }

  struct Axis {
    int kernel, stride, dilation, outputs;
  };
  Axis axis(int size, bool same) {
    Axis a{choice_.among({1, 1, 3, 3, 3, 5, 2, 7}), choice_.among({1, 1, 1, 2, 3}), 1, 0};
    if (a.stride == 1 && choice_.likely(15)) a.dilation = 2;
    while (!same && (a.kernel - 1) * a.dilation + 1 > size) a = {1, 1, 1, 0};
    const int reach = (a.kernel - 1) * a.dilation + 1;
    a.outputs = same ? (size + a.stride - 1) / a.stride : (size - reach) / a.stride + 1;
    return a;
  }

  std::int32_t layer(std::int32_t x, bool last) {
    const ir::Shape in = model_.shape(x);
    const bool same = choice_.likely(75);
    Axis y = axis(in[1], same), across = axis(in[2], same);
    if (y.dilation != across.dilation) y.dilation = across.dilation = 1;
    y = again(y, in[1], same);
    across = again(across, in[2], same);
    const bool depthwise = in.last() > 1 && choice_.likely(35);
    const int outputs = depthwise ? in.last() : choice_.among({4, 8, 12, 16, 24, 40, 64, 72, 132, 5, 10});
    (void)last;
    const ir::Shape weights_shape = depthwise ? ir::Shape{1, y.kernel, across.kernel, outputs}
                                              : ir::Shape{outputs, y.kernel, across.kernel, in.last()};
    const float weight_scale = 0.01f;
    const std::int32_t weights = model_.weights(weights_shape, weight_scale);
    ir::Quantization& q = model_.tensor(weights).quantization;
    q.dimension = depthwise ? 3 : 0;
    if (type_ == ir::DataType::kInt8 && choice_.likely(70)) {
      q.scale.assign(static_cast<std::size_t>(outputs), weight_scale);
      q.zero_point.assign(static_cast<std::size_t>(outputs), 0);
      if (choice_.likely(80)) {
        for (std::size_t c = 0; c < q.scale.size(); ++c) q.scale[c] *= 1.0f + 0.03f * static_cast<float>(c % 7);
      }
    }
    const float in_scale = model_.tensor(x).quantization.scale[0];
    const double products = double(y.kernel) * across.kernel * (depthwise ? 1 : in.last());
    const auto out_scale = static_cast<float>(in_scale * weight_scale * 73 * 74 * std::sqrt(products) / 60);
    const std::int32_t out =
        model_.computed({1, y.outputs, across.outputs, outputs}, Quantized{type_, out_scale, zero_point()});
    std::vector<std::int32_t> operands = {x, weights};
    if (choice_.likely(70)) {
      std::vector<std::int32_t> bias(static_cast<std::size_t>(outputs));
      for (auto& b : bias) b = static_cast<std::int32_t>(choice_.random() % 20001) - 10000;
      const std::int32_t tensor = model_.ints(bias);
      model_.tensor(tensor).quantization.scale = {in_scale * weight_scale};
      model_.tensor(tensor).quantization.zero_point = {0};
      operands.push_back(tensor);
    } else {
      const std::int32_t tensor = model_.ints(std::vector<std::int32_t>(static_cast<std::size_t>(outputs), 0));
      operands.push_back(tensor);
    }
    ir::Attributes a;
    a.set("padding", word(same ? "SAME" : "VALID"));
    a.set("stride_w", std::int64_t{across.stride});
    a.set("stride_h", std::int64_t{y.stride});
    if (depthwise) a.set("depth_multiplier", std::int64_t{1});
    a.set("fused_activation_function", word(choice_.likely(30) ? "RELU" : choice_.likely(20) ? "RELU6" : "NONE"));
    a.set("dilation_w_factor", std::int64_t{across.dilation});
    a.set("dilation_h_factor", std::int64_t{y.dilation});
    return model_.op(depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", operands, {out},
                     depthwise ? "DepthwiseConv2DOptions" : "Conv2DOptions", a, 3);
  }
  Axis again(Axis a, int size, bool same) const {
    const int reach = (a.kernel - 1) * a.dilation + 1;
    a.outputs = same ? (size + a.stride - 1) / a.stride : (size - reach) / a.stride + 1;
    return a;
  }

  Choice choice_;
  bool uneven_;
  ir::DataType type_;
  QuantizedModel model_;
};

// The network in few words, for failures.
TEST(CodegenDevice, RandomConvolutionsAreBitExact) {
  int ran = 0;
  std::map<std::string, int> refused;
  const auto [begin, end] = seeds_to_try(150);
  for (unsigned seed = begin; seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ir::Model model = RandomNetwork(seed, seed % 2 == 1).make();
    const WholeModel whole(model);
    const auto package = compiler::generate_code(whole.part(1 + seed));
    if (!package.ok()) {
      EXPECT_EQ(package.status().code(), StatusCode::kUnsupported) << package.status().message();
      const std::string message = package.status().message();
      ++refused[message.substr(0, 90)];
      continue;
    }
    const device::Schedule schedule = schedule_of(seed);
    const Status status = runs_as_chip_reference(model, *package, seed, &schedule);
    EXPECT_TRUE(status.ok()) << status.message() << "\n" << describe(model);
    if (seed % 4 == 0) {
      const Status races = has_no_races(*package);
      EXPECT_TRUE(races.ok()) << races.message() << "\n" << describe(model);
    }
    ++ran;
  }
  std::printf("%d networks ran\n", ran);
  for (const auto& [reason, times] : refused) std::printf("%4d refused: %s\n", times, reason.c_str());
  EXPECT_GE(ran, static_cast<int>(end - begin) * 2 / 3);
}

// Compiles the whole model; null after a failure.
std::unique_ptr<darwinn::Package> compiled(const ir::Model& model) {
  auto package = compiler::generate_code(WholeModel(model).part(7));
  EXPECT_TRUE(package.ok()) << package.status().message();
  return package.ok() ? std::make_unique<darwinn::Package>(std::move(package).value()) : nullptr;
}

void expect_exact(const ir::Model& model) {
  const auto package = compiled(model);
  if (!package) return;
  const Status runs = runs_as_chip_reference(model, *package, 1);
  EXPECT_TRUE(runs.ok()) << runs.message() << "\n" << describe(model);
  const Status races = has_no_races(*package);
  EXPECT_TRUE(races.ok()) << races.message() << "\n" << describe(model);
}

// More parameters than one tile holds: they are cut into pieces that send one after the other.
TEST(CodegenDevice, ParametersOnSeveralTiles) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 4, 4, 640});
  const std::int32_t wide = model.conv(x, 1024);
  const ir::Model network = model.finish({model.conv(wide, 640)});
  const auto package = compiled(network);
  ASSERT_NE(package, nullptr);
  const auto places = parameter_places(program_of(*package, darwinn::ExecutableType::kParameterCaching).value());
  EXPECT_GT(places[0].size() + places[1].size(), 2u);
  expect_exact(network);
}

TEST(CodegenDevice, ATensorWithTwoReadersAndTwoOutputs) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 13, 22, 3}), 12, 3);
  const std::int32_t narrow = model.conv(x, 8, 5, 2);
  const std::int32_t wide = model.depthwise(x, 3);
  expect_exact(model.finish({narrow, model.conv(wide, 4), x}));
}

TEST(CodegenDevice, PaddingBeforeAConvolution) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 16, 20, 8});
  const std::int32_t padded = model.computed({1, 17, 23, 8}, Quantized{});
  model.op("PAD", {x, model.ints({0, 0, 0, 1, 1, 2, 0, 0}, {4, 2})}, {padded}, "PadOptions");
  const std::int32_t y = model.conv(padded, 16, 3, 2);
  model.last_op().attributes.set("padding", word("VALID"));
  model.tensor(y).shape = {1, 8, 11, 16};
  expect_exact(model.finish({y}));
}

// The shape that a RESHAPE to a single number is told is a constant without elements.
TEST(CodegenDevice, TheReferenceKnowsASingleNumber) {
  const auto sum = [](ir::Shape of_mean) {
    QuantizedModel model;
    const std::int32_t x = model.input({1, 6, 10, 8});
    const std::int32_t all = model.mean(model.reshape(x, {1, 1, 480, 1}), {2});
    const std::int32_t y = model.add(x, model.reshape(all, std::move(of_mean)));
    reference::TensorBytes given;
    for (int i = 0; i < 480; ++i) given[x].push_back(static_cast<std::uint8_t>(i * 7));
    auto values = reference::evaluate_tensors_as_chip(model.finish({y}), given, {y});
    EXPECT_TRUE(values.ok()) << values.status().message();
    return values.ok() ? values->at(y) : std::vector<std::uint8_t>();
  };
  EXPECT_EQ(sum({}), sum({1, 1, 1, 1}));
}

// The same model gives the same bytes.
TEST(CodegenDevice, SameModelSamePackage) {
  const ir::Model model = RandomNetwork(3, true).make();
  const auto a = compiled(model), b = compiled(model);
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(*a == *b);
}

// A refusal names the operator for which there is no code.
TEST(CodegenDevice, RefusesWithTheReason) {
  const auto reason = [](const ir::Model& model) {
    const auto package = compiler::generate_code(WholeModel(model).part(7));
    EXPECT_EQ(package.status().code(), StatusCode::kUnsupported);
    return package.ok() ? std::string("compiled") : package.status().message();
  };
  QuantizedModel other;
  const std::int32_t x = other.input({1, 8, 8, 8});
  EXPECT_EQ(reason(other.finish({other.unary("COS", other.conv(x, 8))})),
            "op 1 COS: code for this operator is not generated yet");
}

}  // namespace
}  // namespace reef::testing
