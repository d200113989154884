// SPDX-License-Identifier: Apache-2.0
// Whole models: the shipped float network and the int8 version that TensorFlow's converter made of it.
#include "quantize/quantize.h"

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "formats/tflite/operator_codes.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "quantize/fold_quantization.h"
#include "quantize/graph_constants.h"
#include "small_models.h"

namespace reef::quantize {
namespace {

const std::string kFloatModel = REEF_SOURCE_DIR "/models/reef_creatures_float.tflite";
const std::string kInt8Model = REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite";

// Blobs of colour: values in [0, 1], neighbours alike.
class Pictures : public data::SampleSource {
 public:
  explicit Pictures(std::int64_t count) : count_(count) {}
  std::int64_t size() const override { return count_; }
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    std::mt19937 random(static_cast<unsigned>(sample) + 17u);
    const double fx = 0.02 + random() % 100 / 400.0, fy = 0.02 + random() % 100 / 400.0, phase = random() % 7;
    const std::int64_t elements = input.shape.elements();
    for (std::int64_t i = 0; i < elements; ++i) {
      const double c = static_cast<double>(i % 3), x = static_cast<double>(i / 3 % 96),
                   y = static_cast<double>(i / 288);
      const auto v =
          static_cast<float>(broken_ ? NAN : 0.5 + 0.5 * std::sin(fx * x + c + phase) * std::cos(fy * y - c));
      put(input, i, v, target);
    }
    return ok_status();
  }
  void break_samples() { broken_ = true; }

 private:
  static void put(const data::InputSpec& input, std::int64_t i, float v, std::span<std::byte> target) {
    if (input.type == ir::DataType::kFloat32) {
      std::memcpy(target.data() + i * 4, &v, 4);
      return;
    }
    const double q =
        std::nearbyint(v / input.quantization.scale[0]) + static_cast<double>(input.quantization.zero_point[0]);
    if (input.type == ir::DataType::kInt16) {
      const auto stored = static_cast<std::int16_t>(std::clamp(q, -32768.0, 32767.0));
      std::memcpy(target.data() + i * 2, &stored, 2);
    } else if (input.type == ir::DataType::kInt8) {
      target[at(i)] = static_cast<std::byte>(static_cast<std::int8_t>(std::clamp(q, -128.0, 127.0)));
    } else {
      target[at(i)] = static_cast<std::byte>(static_cast<std::uint8_t>(std::clamp(q, 0.0, 255.0)));
    }
  }
  std::int64_t count_;
  bool broken_ = false;
};

ir::Model load(const std::string& path) {
  auto model = tflite::load_model(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

QuantizeOptions quick() {
  QuantizeOptions options;
  options.automatic_ranges = false;
  options.equalize = options.correct_biases = options.keep_sensitive_float = Choice::kOff;
  return options;
}

QuantizeResult quantized(const ir::Model& model, const data::SampleSource* source, const QuantizeOptions& options) {
  auto result = quantize(model, source, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return std::move(result).value();
}

// Two parts, one with a hundred times the range of the other, joined into one output.
ir::Model mixed_output() {
  ir::Model model;
  model.buffers.resize(2);
  const float hundred = 100;
  std::vector<std::uint8_t> bytes(4);
  std::memcpy(bytes.data(), &hundred, 4);
  model.buffers[1].data = Bytes(std::move(bytes));
  ir::Subgraph graph;
  const ir::Shape picture{1, 96, 96, 3};
  graph.tensors = {testing::tensor(ir::DataType::kFloat32, picture), testing::tensor(ir::DataType::kFloat32, {1}),
                   testing::tensor(ir::DataType::kFloat32, picture), testing::tensor(ir::DataType::kFloat32, picture),
                   testing::tensor(ir::DataType::kFloat32, {1, 96, 96, 6})};
  const char* const names[] = {"x", "hundred", "wide", "narrow", "joined"};
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) graph.tensors[i].name = names[i];
  graph.tensors[1].buffer = 1;
  graph.inputs = {0};
  graph.outputs = {4};
  graph.operators = {testing::op("MUL", {0, 1}, {2}), testing::op("LOGISTIC", {0}, {3}),
                     testing::op("CONCATENATION", {2, 3}, {4})};
  graph.operators[2].attributes.set("axis", std::int64_t{3});
  for (ir::Operator& op : graph.operators) op.builtin_code = tflite::builtin_code(op.type);
  graph.operators[0].options_type = "MulOptions";
  graph.operators[2].options_type = "ConcatenationOptions";
  model.subgraphs.push_back(std::move(graph));
  return model;
}

TEST(Quantize, OutputsThatMixRangesAreSplit) {
  const ir::Model model = mixed_output();
  ASSERT_TRUE(ir::verify(model).ok()) << ir::verify(model).message();
  const Pictures pictures(12);
  QuantizeOptions options = quick();
  options.split_outputs = Choice::kOff;
  const QuantizeResult joined = quantized(model, &pictures, options);
  ASSERT_EQ(joined.model.subgraphs[0].outputs.size(), 1u);
  options.split_outputs = Choice::kAutomatic;
  const QuantizeResult split = quantized(model, &pictures, options);
  const ir::Subgraph& graph = split.model.subgraphs[0];
  ASSERT_EQ(graph.outputs.size(), 2u);
  const auto output = [&](std::size_t i) -> const ir::Tensor& { return graph.tensors[at(graph.outputs[i])]; };
  EXPECT_EQ(output(0).name, "wide");
  EXPECT_EQ(output(1).name, "narrow");
  EXPECT_GT(output(0).quantization.scale[0], 50 * output(1).quantization.scale[0]);
  for (const ir::Operator& op : graph.operators) EXPECT_NE(op.type, "CONCATENATION");
}

TEST(Quantize, EveryOperatorBecomesInteger) {
  const Pictures pictures(24);
  const QuantizeResult result = quantized(load(kFloatModel), &pictures, quick());
  EXPECT_TRUE(result.float_ops.empty());
  EXPECT_EQ(result.conversions, 0);
  EXPECT_GT(result.error->mean_sqnr_db, 20);
  const ir::Subgraph& graph = result.model.subgraphs[0];
  EXPECT_EQ(graph.tensors[at(graph.inputs[0])].type, ir::DataType::kInt8);
  for (const ir::Operator& op : graph.operators) {
    for (const std::int32_t t : op.outputs) {
      EXPECT_EQ(graph.tensors[at(t)].type, ir::DataType::kInt8) << op.type;
    }
  }
  // Names, signatures and the operators' order are the model's.
  const ir::Model source = load(kFloatModel);
  EXPECT_EQ(result.model.signatures.size(), source.signatures.size());
  EXPECT_EQ(graph.operators.size(), source.subgraphs[0].operators.size());
  const auto output_name = [](const ir::Model& m) {
    return m.subgraphs[0].tensors[at(m.subgraphs[0].outputs[0])].name;
  };
  EXPECT_EQ(output_name(result.model), output_name(source));
}

// TensorFlow's converter quantized the same network: operators, versions, types and dimensions of scales agree.
TEST(Quantize, LikeTensorFlowsConverter) {
  const Pictures pictures(12);
  QuantizeOptions options = quick();
  options.input_type = options.output_type = IoType::kUInt8;  // as that file has it
  const QuantizeResult result = quantized(load(kFloatModel), &pictures, options);
  const ir::Model theirs = load(kInt8Model);
  const ir::Subgraph &a = result.model.subgraphs[0], &b = theirs.subgraphs[0];
  ASSERT_EQ(a.operators.size(), b.operators.size());
  for (std::size_t i = 0; i < a.operators.size(); ++i) {
    const ir::Operator &x = a.operators[i], &y = b.operators[i];
    EXPECT_EQ(x.type, y.type) << i;
    EXPECT_EQ(x.version, y.version) << i << " " << x.type;
    ASSERT_EQ(x.inputs.size(), y.inputs.size());
    for (std::size_t k = 0; k < x.inputs.size(); ++k) {
      const ir::Tensor &s = a.tensors[at(x.inputs[k])], &t = b.tensors[at(y.inputs[k])];
      EXPECT_EQ(s.type, t.type) << i << " " << x.type << " input " << k;
      EXPECT_EQ(s.shape, t.shape);
      // Their converter of today scales dense weights per channel; ours does where it is asked to.
      if (x.type == "FULLY_CONNECTED" && k > 0) continue;
      EXPECT_EQ(s.quantization.scale.size(), t.quantization.scale.size()) << i << " " << x.type << " input " << k;
      if (k == 1 && x.type.find("CONV") != std::string::npos) {
        EXPECT_EQ(s.quantization.dimension, t.quantization.dimension);
        for (std::size_t c = 0; c < s.quantization.scale.size(); ++c) {
          EXPECT_NEAR(s.quantization.scale[c], t.quantization.scale[c], 1e-5f * t.quantization.scale[c]);
        }
        EXPECT_EQ(ir::constant_data(result.model, s), ir::constant_data(theirs, t)) << i;
      }
    }
  }
}

TEST(Quantize, SameBytesForAnyNumberOfThreads) {
  const Pictures pictures(20);
  const ir::Model model = load(kFloatModel);
  QuantizeOptions options;
  std::vector<std::uint8_t> first;
  for (const int threads : {1, 2, 5}) {
    options.threads = threads;
    const auto bytes = tflite::write_model(quantized(model, &pictures, options).model);
    ASSERT_TRUE(bytes.ok());
    if (first.empty()) first = *bytes;
    EXPECT_TRUE(first == *bytes) << threads;
  }
}

TEST(Quantize, OtherModes) {
  const Pictures pictures(12);
  const ir::Model model = load(kFloatModel);
  const auto bytes_of = [](const ir::Model& m) { return tflite::write_model(m)->size(); };
  QuantizeOptions options = quick();
  const double with_8_bits = quantized(model, &pictures, options).error->mean_sqnr_db;
  options.mode = Mode::kInt16x8;
  EXPECT_GT(quantized(model, &pictures, options).error->mean_sqnr_db, with_8_bits);
  options.mode = Mode::kDynamic;
  const QuantizeResult dynamic = quantized(model, &pictures, options);
  EXPECT_GT(dynamic.error->mean_sqnr_db, 20);
  EXPECT_LT(bytes_of(dynamic.model), bytes_of(model) / 2);
  options.mode = Mode::kFloat16;
  const QuantizeResult half = quantized(model, nullptr, options);
  EXPECT_LT(bytes_of(half.model), bytes_of(model) * 2 / 3);
}

TEST(Quantize, KeepFloat) {
  const Pictures pictures(12);
  const ir::Model model = load(kFloatModel);
  const ir::Subgraph& graph = model.subgraphs[0];
  QuantizeOptions options = quick();
  const ir::Operator& chosen = graph.operators[4];
  options.keep_float = {graph.tensors[at(chosen.outputs[0])].name};
  const QuantizeResult result = quantized(model, &pictures, options);
  ASSERT_EQ(result.float_ops.size(), 1u);
  EXPECT_NE(result.float_ops[0].op.find(chosen.type), std::string::npos);
  EXPECT_EQ(result.conversions, 2);
  options.full_integer = true;
  EXPECT_FALSE(quantize(model, &pictures, options).ok());
  options.keep_float = {"no such tensor"};
  const auto refused = quantize(model, &pictures, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("no such tensor"), std::string::npos);
}

TEST(Quantize, BadSamplesAreSaidLoudly) {
  const ir::Model model = load(kFloatModel);
  Pictures broken(5);
  broken.break_samples();
  const auto refused = quantize(model, &broken, quick());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("not numbers"), std::string::npos) << refused.status().message();
  const Pictures few(3);
  const QuantizeResult result = quantized(model, &few, quick());
  ASSERT_FALSE(result.warnings.empty());
  EXPECT_NE(result.warnings[0].find("only 3 samples"), std::string::npos) << result.warnings[0];
  EXPECT_FALSE(quantize(load(kInt8Model), &few, quick()).ok());  // quantized already
}

// The int8 network in the form that ONNX's QDQ models have: float operators between DEQUANTIZE and QUANTIZE.
ir::Model as_qdq(const ir::Model& model) {
  ir::Model result = model;
  ir::Subgraph& graph = result.subgraphs[0];
  std::vector<ir::Operator> operators;
  const auto convert = [&](std::string type, std::int32_t from, std::int32_t to) {
    ir::Operator op;
    op.type = std::move(type);
    op.builtin_code = tflite::builtin_code(op.type);
    op.inputs = {from};
    op.outputs = {to};
    operators.push_back(op);
  };
  const auto float_like = [&](std::int32_t t) {
    ir::Tensor tensor = graph.tensors[at(t)];
    tensor.type = ir::DataType::kFloat32;
    tensor.quantization = {};
    tensor.has_quantization = false;
    tensor.buffer = 0;
    tensor.name += "/float";
    graph.tensors.push_back(tensor);
    return static_cast<std::int32_t>(graph.tensors.size() - 1);
  };
  for (ir::Operator op : std::vector<ir::Operator>(graph.operators)) {
    if (op.type == "QUANTIZE") {
      operators.push_back(op);
      continue;
    }
    for (std::int32_t& t : op.inputs) {
      const ir::DataType type = graph.tensors[at(t)].type;
      const bool is_quantized =
          graph.tensors[at(t)].has_quantization && !graph.tensors[at(t)].quantization.scale.empty();
      if (!is_quantized ||
          (type != ir::DataType::kInt8 && type != ir::DataType::kInt32 && type != ir::DataType::kUInt8)) {
        continue;
      }
      const std::int32_t real = float_like(t);
      convert("DEQUANTIZE", t, real);
      t = real;
    }
    const std::int32_t out = op.outputs[0];
    op.outputs[0] = float_like(out);
    op.version = 1;
    const std::int32_t real = op.outputs[0];
    operators.push_back(op);
    convert("QUANTIZE", real, out);
  }
  graph.operators = std::move(operators);
  return result;
}

TEST(FoldQuantization, QdqFormGivesTheIntegerModelBack) {
  const ir::Model original = load(kInt8Model);
  const ir::Model qdq = as_qdq(original);
  ASSERT_TRUE(ir::verify(qdq).ok()) << ir::verify(qdq).message();
  QuantizeOptions options;
  options.input_type = options.output_type = IoType::kUInt8;
  const QuantizeResult result = quantized(qdq, nullptr, options);
  EXPECT_TRUE(result.float_ops.empty()) << result.float_ops[0].op << ": " << result.float_ops[0].why;
  const Pictures pictures(6);
  std::vector<std::int64_t> samples = {0, 1, 2, 3, 4, 5};
  const auto before = run_outputs(std::make_shared<const ir::Model>(original), pictures, samples, {});
  const auto after = run_outputs(std::make_shared<const ir::Model>(result.model), pictures, samples, {});
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(*before, *after);
}

// A model of 16-bit activations is as good a start as the float one.
TEST(FoldQuantization, SixteenBitsAreTakenOff) {
  const Pictures pictures(12);
  const ir::Model model = load(kFloatModel);
  QuantizeOptions wide = quick();
  wide.mode = Mode::kInt16x8;
  const ir::Model in_16_bits = quantized(model, &pictures, wide).model;
  ASSERT_TRUE(computes_in_16_bits(in_16_bits));
  EXPECT_FALSE(computes_in_16_bits(load(kInt8Model)));
  const QuantizeResult from_float = quantized(model, &pictures, quick());
  const QuantizeResult from_16_bits = quantized(in_16_bits, &pictures, quick());
  EXPECT_GT(from_16_bits.error->mean_sqnr_db, from_float.error->mean_sqnr_db - 2);
  EXPECT_TRUE(from_16_bits.float_ops.empty());
  for (const ir::Tensor& tensor : from_16_bits.model.subgraphs[0].tensors) {
    EXPECT_NE(tensor.type, ir::DataType::kInt16) << tensor.name;
    EXPECT_NE(tensor.type, ir::DataType::kFloat32) << tensor.name;
  }
}

TEST(FoldQuantization, FakeQuantGivesItsRange) {
  ir::Model model = load(kFloatModel);
  ir::Subgraph& graph = model.subgraphs[0];
  // A FAKE_QUANT behind every operator, as training leaves them.
  std::vector<ir::Operator> operators;
  std::vector<std::pair<float, std::int32_t>> expected;
  int number = 0;
  std::map<std::int32_t, std::int32_t> now;
  const auto fake = [&](std::int32_t t, double min, double max) {
    ir::Tensor copy = graph.tensors[at(t)];
    copy.name += "/fake";
    graph.tensors.push_back(copy);
    ir::Operator op;
    op.type = "FAKE_QUANT";
    op.builtin_code = tflite::builtin_code(op.type);
    op.options_type = "FakeQuantOptions";
    op.attributes.set("min", min);
    op.attributes.set("max", max);
    op.attributes.set("num_bits", std::int64_t{8});
    op.attributes.set("narrow_range", false);
    op.inputs = {t};
    op.outputs = {static_cast<std::int32_t>(graph.tensors.size() - 1)};
    operators.push_back(op);
    now[t] = op.outputs[0];
  };
  fake(graph.inputs[0], 0, 1);
  for (ir::Operator op : std::vector<ir::Operator>(graph.operators)) {
    for (std::int32_t& t : op.inputs) {
      if (now.contains(t)) t = now[t];
    }
    operators.push_back(op);
    if (op.type != "SOFTMAX") fake(op.outputs[0], -1 - 0.1 * number, 2 + 0.3 * number), ++number;
  }
  graph.operators = std::move(operators);
  ASSERT_TRUE(ir::verify(model).ok()) << ir::verify(model).message();
  const QuantizeResult result = quantized(model, nullptr, {});
  EXPECT_TRUE(result.float_ops.empty());
  const ir::Subgraph& made = result.model.subgraphs[0];
  number = 0;
  for (const ir::Operator& op : made.operators) {
    if (op.type == "SOFTMAX") continue;
    const ir::Quantization& q = made.tensors[at(op.outputs[0])].quantization;
    // As the operator's kernel rounds.
    const auto min = static_cast<float>(-1 - 0.1 * number), max = static_cast<float>(2 + 0.3 * number);
    const float scale = (max - min) / 255;
    EXPECT_EQ(q.scale[0], scale) << op.type;
    EXPECT_EQ(q.zero_point[0], static_cast<std::int64_t>(std::round(0 - min / scale)) - 128) << op.type;
    ++number;
  }
}

}  // namespace
}  // namespace reef::quantize
