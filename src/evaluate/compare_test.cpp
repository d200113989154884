// SPDX-License-Identifier: Apache-2.0
// The debugger on models that are broken on purpose: whichever layer is damaged, and however, it must come first.
#include "evaluate/compare.h"

#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "formats/tflite/reader.h"
#include "quantize/equalization.h"
#include "quantize/quantize.h"

namespace reef::evaluate {
namespace {

std::shared_ptr<ir::Model> load(const std::string& name) {
  auto model = tflite::load_model(REEF_SOURCE_DIR "/models/" + name);
  EXPECT_TRUE(model.ok());
  return std::make_shared<ir::Model>(std::move(*model));
}

class CompareTest : public ::testing::Test {
 protected:
  CompareTest() : float_(load("reef_creatures_float.tflite")), int8_(load("reef_creatures_int8.tflite")) {
    data::DatasetOptions options;
    options.path = REEF_SOURCE_DIR "/models/images";
    options.preprocess = "unit";
    options.limit = 6;
    auto dataset = data::Dataset::open(options, *float_);
    EXPECT_TRUE(dataset.ok());
    data_ = *dataset;
  }

  Comparison comparison(const std::shared_ptr<const ir::Model>& quantized, int threads = 2) const {
    CompareOptions options;
    options.threads = threads;
    options.effect_samples = 2;
    auto result = compare(float_, quantized, *data_, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : Comparison{};
  }

  ir::Tensor& tensor(ir::Model& model, std::int32_t number) const { return model.subgraphs[0].tensors[at(number)]; }
  ir::Operator& op(ir::Model& model, std::int32_t number) const { return model.subgraphs[0].operators[at(number)]; }

  template <typename T>
  static void change_constant(ir::Model& model, const ir::Tensor& tensor,
                              const std::function<double(std::size_t, double)>& change) {
    Bytes& data = model.buffers[at(tensor.buffer)].data;
    std::vector<std::uint8_t> bytes(data.span().begin(), data.span().end());
    for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      value = static_cast<T>(std::llround(change(i, static_cast<double>(value))));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    data = Bytes(std::move(bytes));
  }

  // Another quantization for the result of operator `number`, with its readers' biases kept right.
  void requantize(ir::Model& model, std::int32_t number, float scale_factor, std::int64_t zero_point_shift) const {
    const std::int32_t result = op(model, number).outputs[0];
    ir::Quantization& quantization = tensor(model, result).quantization;
    quantization.scale[0] *= scale_factor;
    quantization.zero_point[0] = std::clamp<std::int64_t>(quantization.zero_point[0] + zero_point_shift, -128, 127);
    for (const ir::Operator& reader : model.subgraphs[0].operators) {
      if (reader.inputs.size() != 3 || reader.inputs[0] != result || scale_factor == 1) continue;
      ir::Tensor& bias = tensor(model, reader.inputs[2]);
      for (float& scale : bias.quantization.scale) scale *= scale_factor;
      change_constant<std::int32_t>(model, bias, [&](std::size_t, double value) { return value / scale_factor; });
    }
  }

  void expect_first(const ir::Model& damaged, std::int32_t number, const std::string& damage) const {
    const Comparison result = comparison(std::make_shared<const ir::Model>(damaged));
    ASSERT_FALSE(result.ranking.empty());
    const LayerReport& first = result.layers[result.ranking[0]];
    EXPECT_EQ(first.op, number) << damage << "\n" << comparison_text(result, 4);
    EXPECT_FALSE(first.advice.empty()) << damage;
  }

  std::shared_ptr<ir::Model> float_, int8_;
  std::shared_ptr<const data::Dataset> data_;
};

// Convolutions of all kinds and places, the last layer, and sums of two branches.
constexpr std::int32_t kWeighted[] = {1, 2, 3, 6, 8, 10, 12, 16, 18, 21};
constexpr std::int32_t kSums[] = {7, 13, 19};

TEST_F(CompareTest, ARangeThatIsTooNarrowIsFound) {
  for (const std::int32_t number : kWeighted) {
    ir::Model damaged = *int8_;
    requantize(damaged, number, 0.25F, 0);
    expect_first(damaged, number, fmt::format("scale of op {} a quarter", number));
  }
  for (const std::int32_t number : kSums) {
    ir::Model damaged = *int8_;
    requantize(damaged, number, 0.2F, 0);
    expect_first(damaged, number, fmt::format("scale of op {} a fifth", number));
  }
}

TEST_F(CompareTest, AWrongZeroPointIsFound) {
  for (const std::int32_t number : {3, 6, 7, 9, 12, 15, 18}) {
    ir::Model damaged = *int8_;
    requantize(damaged, number, 1, 110);
    expect_first(damaged, number, fmt::format("zero point of op {} moved", number));
  }
}

TEST_F(CompareTest, WrongWeightsAreFound) {
  for (const std::int32_t number : kWeighted) {
    ir::Model damaged = *int8_;
    ir::Tensor& weights = tensor(damaged, op(damaged, number).inputs[1]);
    for (float& scale : weights.quantization.scale) scale *= 2;
    for (float& scale : tensor(damaged, op(damaged, number).inputs[2]).quantization.scale) scale *= 2;
    expect_first(damaged, number, fmt::format("weights of op {} doubled", number));
    damaged = *int8_;
    const ir::Tensor& same = tensor(damaged, op(damaged, number).inputs[1]);
    change_constant<std::int8_t>(damaged, same,
                                 [](std::size_t i, double value) { return i % 3 == 0 ? -value : value; });
    expect_first(damaged, number, fmt::format("weights of op {} with signs changed", number));
  }
}

TEST_F(CompareTest, AMissingBiasIsFound) {
  for (const std::int32_t number : {1, 3, 6, 9, 15, 18}) {
    ir::Model damaged = *int8_;
    change_constant<std::int32_t>(damaged, tensor(damaged, op(damaged, number).inputs[2]),
                                  [](std::size_t, double) { return 0; });
    expect_first(damaged, number, fmt::format("bias of op {} zero", number));
  }
}

TEST_F(CompareTest, NamesTheCause) {
  const auto advice_for = [&](const ir::Model& model) {
    const Comparison result = comparison(std::make_shared<const ir::Model>(model));
    std::string text;
    for (const std::string& sentence : result.layers[result.ranking[0]].advice) text += sentence + "\n";
    return text;
  };
  ir::Model damaged = *int8_;
  requantize(damaged, 6, 0.25F, 0);
  EXPECT_NE(advice_for(damaged).find("of the values saturate"), std::string::npos) << advice_for(damaged);
  damaged = *int8_;
  for (float& scale : tensor(damaged, op(damaged, 6).inputs[1]).quantization.scale) scale *= 2;
  for (float& scale : tensor(damaged, op(damaged, 6).inputs[2]).quantization.scale) scale *= 2;
  EXPECT_NE(advice_for(damaged).find("weights are 2 times"), std::string::npos) << advice_for(damaged);
  damaged = *int8_;
  std::size_t channel = 0;
  for (const std::int32_t operand : {op(damaged, 6).inputs[1], op(damaged, 6).inputs[2]}) {
    channel = 0;
    for (float& scale : tensor(damaged, operand).quantization.scale) scale *= channel++ % 2 == 0 ? 2.0F : 0.5F;
  }
  EXPECT_NE(advice_for(damaged).find("channels rescaled, up to 4"), std::string::npos) << advice_for(damaged);
  damaged = *int8_;
  requantize(damaged, 12, 8, 0);
  EXPECT_NE(advice_for(damaged).find("of the range"), std::string::npos) << advice_for(damaged);
  EXPECT_NE(advice_for(damaged).find("--keep-float"), std::string::npos);
}

TEST_F(CompareTest, AHealthyModelIsNotFaulted) {
  const Comparison result = comparison(int8_);
  EXPECT_EQ(result.layers.size(), 25u);  // the input and every operator
  EXPECT_TRUE(result.match.unmatched.empty());
  EXPECT_GT(result.outputs[0].error.sqnr_db(), 30);
  double share = 0;
  for (const LayerReport& layer : result.layers) {
    share += layer.share;
    EXPECT_GT(layer.own.sqnr_db(), 25) << layer.name;
    for (const std::string& advice : layer.advice) ADD_FAILURE() << layer.name << ": " << advice;
  }
  EXPECT_NEAR(share, 1, 1e-9);
}

TEST_F(CompareTest, ThreadsDoNotMatter) {
  const Comparison one = comparison(int8_, 1), four = comparison(int8_, 4);
  const auto without_time = [](const Comparison& comparison) {
    auto json = nlohmann::json::parse(comparison_json(comparison, "a", "b"));
    json.erase("time");
    return json.dump();
  };
  EXPECT_EQ(without_time(one), without_time(four));
  EXPECT_EQ(comparison_html(one, "a", "b"), comparison_html(four, "a", "b"));
}

// Channels of a tensor that the quantizer equalized are the float model's divided by factors, which the model keeps.
TEST_F(CompareTest, EqualizedTensorsAreComparedChannelByChannel) {
  quantize::QuantizeOptions options;
  options.automatic_ranges = false;
  options.correct_biases = quantize::Choice::kOff;
  options.equalize = quantize::Choice::kOn;  // few samples do not prove that it helps
  const auto made = quantize::quantize(*float_, data_.get(), options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const quantize::NamedFactors factors = quantize::stored_equalization(made->model);
  ASSERT_GT(factors.size(), 4u);
  const Comparison whole = comparison(std::make_shared<const ir::Model>(made->model));
  EXPECT_TRUE(whole.match.unmatched.empty());
  EXPECT_EQ(whole.match.factors_of.size(), factors.size());
  for (const LayerReport& layer : whole.layers) {
    EXPECT_GT(layer.own.sqnr_db(), 25) << layer.name;
    for (const std::string& advice : layer.advice) EXPECT_EQ(advice.find("weights"), std::string::npos) << advice;
  }
  // Without the factors there is nothing to compare.
  ir::Model forgotten = made->model;
  forgotten.metadata.clear();
  EXPECT_EQ(match_tensors(*float_, forgotten)->unmatched.size(), factors.size());
  // And damage is found in an equalized layer, too.
  for (std::size_t i = 0; i < made->model.subgraphs[0].operators.size(); ++i) {
    const ir::Operator& layer = made->model.subgraphs[0].operators[i];
    const ir::Tensor& result = made->model.subgraphs[0].tensors[at(layer.outputs[0])];
    if (layer.type != "CONV_2D" || !factors.contains(result.name)) continue;
    ir::Model damaged = made->model;
    change_constant<std::int8_t>(damaged, tensor(damaged, layer.inputs[1]),
                                 [](std::size_t k, double value) { return k % 3 == 0 ? -value : value; });
    expect_first(damaged, static_cast<std::int32_t>(i), "every third weight has the other sign");
    break;
  }
}

// The quantizer moves what attention averages; the float model's values would be no measure for it.
TEST_F(CompareTest, TensorsThatHoldSomethingElseAreLeftOut) {
  ir::Model changed = *int8_;
  ir::Tensor& result = tensor(changed, op(changed, 6).outputs[0]);
  result.name += "_centred";
  const auto found = match_tensors(*float_, changed);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->float_of[at(op(changed, 6).outputs[0])], -1);
  EXPECT_EQ(found->unmatched.size(), 1u);
}

// Names that say nothing: everything is found by structure; a quantizer's list is believed.
TEST_F(CompareTest, TensorsAreMatchedWithoutNames) {
  ir::Model nameless = *int8_;
  for (std::size_t i = 0; i < nameless.subgraphs[0].tensors.size(); ++i)
    nameless.subgraphs[0].tensors[i].name = fmt::format("t{}", i);
  const auto named = match_tensors(*float_, *int8_), found = match_tensors(*float_, nameless);
  ASSERT_TRUE(named.ok() && found.ok());
  EXPECT_EQ(found->float_of, named->float_of);
  EXPECT_EQ(found->by_name, 0);
  EXPECT_EQ(found->by_structure, 22);
  EXPECT_GT(named->by_name, 15);
  const std::int32_t result = op(nameless, 5).outputs[0];
  const std::string& original = float_->subgraphs[0].tensors[at(named->float_of[at(result)])].name;
  const NamePair pair{original, tensor(nameless, result).name};
  const auto listed = match_tensors(*float_, nameless, {&pair, 1});
  EXPECT_EQ(listed->by_list, 1);
  EXPECT_EQ(listed->float_of, named->float_of);
}

TEST_F(CompareTest, ThePageIsWholeAndEscapesNames) {
  auto renamed = std::make_shared<ir::Model>(*int8_);
  tensor(*renamed, op(*renamed, 3).outputs[0]).name = "<script>alert(1)</script>\xff";
  const std::string html = comparison_html(comparison(renamed), "a&b.tflite", "c.tflite");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(html.find("a&amp;b.tflite"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);
  EXPECT_NE(html.find("</html>"), std::string::npos);
}

TEST_F(CompareTest, ModelsOfDifferentNetworksAreRefused) {
  ir::Model other = *float_;
  tensor(other, other.subgraphs[0].inputs[0]).shape = ir::Shape{1, 32, 32, 3};
  const auto result = match_tensors(other, *int8_);
  EXPECT_NE(result.status().message().find("[1, 32, 32, 3]"), std::string::npos);
}

}  // namespace
}  // namespace reef::evaluate
