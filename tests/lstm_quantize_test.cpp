// SPDX-License-Identifier: Apache-2.0
// An LSTM from ONNX to integers, on the CPU and on the chip: near to the float model, and without memory of earlier
// runs, as ONNX has it, though TFLite's operator keeps its state.
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "compiler/code_generator.h"
#include "compiler/convert_driver.h"
#include "execute/cpu/interpreter.h"
#include "execute/device/device.h"
#include "generated_code.h"
#include "quantize/clearing_steps.h"
#include "quantize/quantize.h"

namespace reef::testing {
namespace {

using quantize::Mode;
using quantize::QuantizeOptions;

constexpr std::string_view kLstm = "UNIDIRECTIONAL_SEQUENCE_LSTM";

// Random walks: values that depend on each other from step to step, up to about `size`.
class Walks : public data::SampleSource {
 public:
  explicit Walks(double size) : size_(size) {}
  std::int64_t size() const override { return 40; }
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    std::mt19937 random(static_cast<unsigned>(sample) + 5u);
    std::normal_distribution<double> draw(0, 0.4);
    const auto width = static_cast<std::size_t>(input.shape.last());
    std::vector<double> at(width, 0.0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(input.shape.elements()); ++i) {
      double& value = at[i % width];
      value = 0.9 * value + size_ * draw(random);
      put(input, i, value, target);
    }
    return ok_status();
  }

 private:
  static void put(const data::InputSpec& input, std::size_t i, double value, std::span<std::byte> target) {
    if (input.type == ir::DataType::kFloat32) {
      const auto real = static_cast<float>(value);
      std::memcpy(target.data() + i * sizeof real, &real, sizeof real);
      return;
    }
    const double q =
        std::nearbyint(value / input.quantization.scale[0]) + static_cast<double>(input.quantization.zero_point[0]);
    target[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::clamp(q, -128.0, 127.0)));
  }

  double size_;
};

ir::Model imported() {
  compiler::ConvertRequest request;
  request.model = REEF_SOURCE_DIR "/tests/onnx_exports/test_long_lstm/model.onnx";
  auto converted = compiler::convert_model(request);
  EXPECT_TRUE(converted.ok()) << converted.status().message();
  return converted.ok() ? converted->model : ir::Model{};
}

const ir::Operator* find_lstm(const ir::Model& model) {
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type == kLstm) return &op;
  }
  return nullptr;
}

ir::DataType input_type(const ir::Model& model, const ir::Operator& op) {
  return model.subgraphs[0].tensors[static_cast<std::size_t>(op.inputs[0])].type;
}

std::vector<std::byte> run(cpu::Interpreter& interpreter, const std::function<void(std::span<std::byte>)>& fill) {
  fill(interpreter.input_bytes(0));
  EXPECT_TRUE(interpreter.invoke().ok());
  const ops::Tensor& output = interpreter.output(0);
  return {output.data, output.data + output.bytes};
}

void fill_noise(std::span<std::byte> bytes, unsigned seed) {
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
}
void fill_extremes(std::span<std::byte> bytes, unsigned seed) {
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(seed % 3 == 0 ? 127 : random() % 2 == 0 ? 127 : 128);
}

std::unique_ptr<cpu::Interpreter> prepared(const ir::Model& model, ops::TfliteRelease release) {
  cpu::InterpreterOptions options;
  options.tflite_release = release;
  auto made = cpu::Interpreter::create(std::make_shared<const ir::Model>(model), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE((*made)->prepare().ok());
  return std::move(*made);
}

// 0.02: inputs that add little beside the state, so that many features are needed to shut the gates.
class LstmToIntegers : public ::testing::TestWithParam<double> {
 protected:
  Result<quantize::QuantizeResult> quantized(QuantizeOptions options = {}) const {
    const Walks walks(GetParam());
    return quantize::quantize(imported(), &walks, options);
  }
};

TEST_P(LstmToIntegers, IsNearToTheFloatModel) {
  const auto result = quantized();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->float_ops.empty());
  const ir::Operator* lstm = find_lstm(result->model);
  ASSERT_NE(lstm, nullptr);
  EXPECT_EQ(input_type(result->model, *lstm), ir::DataType::kInt8);
  EXPECT_EQ(result->model.subgraphs[0].tensors[static_cast<std::size_t>(lstm->inputs[19])].type, ir::DataType::kInt16);
  ASSERT_TRUE(result->error);
  EXPECT_GT(result->error->mean_sqnr_db, 30);
  EXPECT_EQ(result->float_model.subgraphs[0].operators.size(), imported().subgraphs[0].operators.size());
}

TEST_P(LstmToIntegers, StartsAnewInEveryRun) {
  const auto result = quantized();
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (const auto release : {ops::TfliteRelease::k2_9, ops::TfliteRelease::kCurrent}) {
    const auto lasting = prepared(result->model, release);
    for (unsigned seed = 0; seed < 12; ++seed) {
      const auto fresh = prepared(result->model, release);
      const auto sample = [&](std::span<std::byte> bytes) { fill_noise(bytes, seed); };
      run(*lasting, [&](std::span<std::byte> bytes) { fill_extremes(bytes, seed); });
      EXPECT_EQ(run(*lasting, sample), run(*fresh, sample)) << seed;
    }
  }
}

// Whatever the states are: any numbers, not only those that a run leaves.
TEST_P(LstmToIntegers, StartsAnewOnTheChip) {
  const auto result = quantized();
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto package = compiler::generate_code(WholeModel(result->model).part(3));
  ASSERT_TRUE(package.ok()) << package.status().message();
  const Status status = runs_as_chip_reference(result->model, *package, 11);
  EXPECT_TRUE(status.ok()) << status.message();
  const auto loaded = device::LoadedPackage::load(*package);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  device::Device device({.threads = 1});
  std::vector<std::vector<std::uint8_t>> first;
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::vector<std::vector<std::uint8_t>> inputs;
    for (const darwinn::Layer& layer : (*loaded)->inputs()) {
      const bool is_state = layer.name.find("input") == std::string::npos;
      inputs.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
      fill_noise(std::as_writable_bytes(std::span(inputs.back())), is_state ? seed : 77);
    }
    const auto found = device.run(*loaded, {inputs.begin(), inputs.end()});
    ASSERT_TRUE(found.ok()) << found.status().message();
    std::vector<std::vector<std::uint8_t>> outputs;
    for (std::size_t i = 0; i < found->size(); ++i) {
      if ((*loaded)->outputs()[i].name.find("_variable_output") == std::string::npos) outputs.push_back((*found)[i]);
    }
    ASSERT_FALSE(outputs.empty());
    if (first.empty()) first = outputs;
    EXPECT_EQ(outputs, first) << seed;
  }
}

TEST_P(LstmToIntegers, KeptFloatItStillStartsAnew) {
  QuantizeOptions options;
  options.keep_float = {"*"};
  options.input_type = options.output_type = quantize::IoType::kFloat32;
  const auto result = quantized(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const ir::Operator* lstm = find_lstm(result->model);
  ASSERT_NE(lstm, nullptr);
  EXPECT_EQ(input_type(result->model, *lstm), ir::DataType::kFloat32);
  const auto lasting = prepared(result->model, ops::TfliteRelease::kCurrent);
  std::vector<std::byte> first;
  for (int i = 0; i < 2; ++i) {
    const auto sample = [&](std::span<std::byte> bytes) {
      const data::InputSpec spec = data::input_spec(result->model, 0);
      EXPECT_TRUE(Walks(GetParam()).read(3, spec, bytes).ok());
    };
    const std::vector<std::byte> found = run(*lasting, sample);
    if (first.empty()) first = found;
    EXPECT_EQ(found, first);
  }
}

// Among integers, by the name of its result in the model as given.
TEST_P(LstmToIntegers, KeptFloatByNameItStillStartsAnew) {
  const ir::Model model = imported();
  QuantizeOptions options;
  options.keep_float = {model.subgraphs[0].tensors[static_cast<std::size_t>(find_lstm(model)->outputs[0])].name};
  const auto result = quantized(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const ir::Operator* lstm = find_lstm(result->model);
  ASSERT_NE(lstm, nullptr);
  EXPECT_EQ(input_type(result->model, *lstm), ir::DataType::kFloat32);
  EXPECT_GT(result->conversions, 0);
  const auto lasting = prepared(result->model, ops::TfliteRelease::kCurrent);
  for (unsigned seed = 0; seed < 4; ++seed) {
    const auto fresh = prepared(result->model, ops::TfliteRelease::kCurrent);
    const auto sample = [&](std::span<std::byte> bytes) { fill_noise(bytes, seed); };
    run(*lasting, [&](std::span<std::byte> bytes) { fill_extremes(bytes, seed); });
    EXPECT_EQ(run(*lasting, sample), run(*fresh, sample)) << seed;
  }
}

TEST_P(LstmToIntegers, WeightsAloneKeepTheirAccuracy) {
  QuantizeOptions options;
  options.mode = Mode::kDynamic;
  const auto result = quantized(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(result->error);
  EXPECT_GT(result->error->mean_sqnr_db, 30);
}

INSTANTIATE_TEST_SUITE_P(Inputs, LstmToIntegers, ::testing::Values(1.0, 0.02));

TEST(ClearingSteps, TakenOutAndPutBackTheModelIsTheSame) {
  const ir::Model before = imported();
  ir::Model model = before;
  const quantize::ClearedLstms lstms = quantize::take_out_clearing_steps(model);
  ASSERT_EQ(lstms.size(), 1u);
  EXPECT_EQ(lstms.begin()->second, 3);
  ASSERT_TRUE(quantize::put_back_clearing_steps(model, lstms).ok());
  const auto one = prepared(before, ops::TfliteRelease::kCurrent),
             other = prepared(model, ops::TfliteRelease::kCurrent);
  const auto sample = [&](std::span<std::byte> bytes) {
    EXPECT_TRUE(Walks(1).read(1, data::input_spec(before, 0), bytes).ok());
  };
  EXPECT_EQ(run(*one, sample), run(*other, sample));
}

TEST(ClearingSteps, OtherLstmsHaveNone) {
  ir::Model model = imported();
  for (ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type == "CONCATENATION") std::swap(op.inputs[0], op.inputs[1]);  // the steps are behind, not in front
  }
  EXPECT_TRUE(quantize::take_out_clearing_steps(model).empty());
}

}  // namespace
}  // namespace reef::testing
