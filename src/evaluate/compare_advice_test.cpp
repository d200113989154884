// SPDX-License-Identifier: Apache-2.0
// Each cause by itself, in numbers made for it: the sentence that names it appears.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "evaluate/compare.h"

namespace reef::evaluate {
namespace {

Representable int8_range(float low, float high) {
  ir::Quantization quantization;
  const float scale = (high - low) / 255;
  quantization.scale = {scale};
  quantization.zero_point = {std::llround(-128 - low / scale)};
  return Representable::of(ir::DataType::kInt8, quantization);
}

// A layer that alone makes all of the error at the outputs.
std::string advice_for(LayerReport layer) {
  layer.effect = 0.05;
  layer.share = 1;
  Comparison comparison;
  comparison.effect_samples = 1;
  comparison.layers.push_back(std::move(layer));
  comparison.ranking = {0};
  add_advice({}, comparison);
  std::string text;
  for (const std::string& sentence : comparison.layers[0].advice) text += sentence + "\n";
  return text;
}

LayerReport layer_of(const Representable& range, const std::vector<float>& values, std::int64_t channels = 1) {
  LayerReport layer;
  layer.type = "CONV_2D";
  layer.name = layer.float_name = "features/conv";
  layer.range = range;
  layer.values = ValueStatistics(range);
  layer.values.add(values, channels);
  for (const float value : values) layer.own.add(range.nearest(value), value);
  return layer;
}

std::vector<float> normal_values(std::size_t count, float deviation) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(CompareAdvice, OutliersThatSetTheRange) {
  std::vector<float> values = normal_values(100000, 1);
  values[5] = 100;
  values[900] = -80;
  const std::string text = advice_for(layer_of(int8_range(-100, 100), values));
  EXPECT_NE(text.find("is set by about 10 outliers of 100000 values"), std::string::npos) << text;
  EXPECT_NE(text.find("--calibration percentile"), std::string::npos) << text;
}

TEST(CompareAdvice, ARangeThatIsTooNarrowOrTooWide) {
  const std::vector<float> values = normal_values(100000, 1);
  EXPECT_NE(advice_for(layer_of(int8_range(-1.5F, 1.5F), values)).find("of the values saturate"), std::string::npos);
  EXPECT_NE(advice_for(layer_of(int8_range(-50, 50), values)).find("is used (the data lie in"), std::string::npos);
  const std::string fitting = advice_for(layer_of(int8_range(-4.5F, 4.5F), values));
  EXPECT_EQ(fitting.find("range"), std::string::npos) << fitting;
  EXPECT_EQ(fitting, "keep it float: --keep-float features/conv\n");
}

TEST(CompareAdvice, ChannelsThatMixRanges) {
  std::vector<float> values;
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    const auto unit = static_cast<float>(random() % 1000) / 1000;
    values.insert(values.end(), {100 * unit, 90 * unit, 0.5F * unit});
  }
  LayerReport layer = layer_of(int8_range(0, 100), values, 3);
  layer.own = {};
  for (const float value : values) layer.own.add(value * 0.97, value);  // about 30 dB
  EXPECT_EQ(advice_for(layer).find("mix ranges"), std::string::npos);
  layer.is_output = true;
  const std::string text = advice_for(layer);
  EXPECT_NE(text.find("channel 0 reaches 99.9, channel 2 only 0.5"), std::string::npos) << text;
}

TEST(CompareAdvice, WeightsUnderOneScale) {
  LayerReport layer = layer_of(int8_range(-4.5F, 4.5F), normal_values(10000, 1));
  layer.weights = WeightsReport{25, 1, 120, false};
  EXPECT_NE(advice_for(layer).find("channels differ 120 times"), std::string::npos);
  layer.weights = WeightsReport{40, 1, 120, true};
  EXPECT_EQ(advice_for(layer).find("channels"), std::string::npos);
  layer.weights = WeightsReport{-6, 1.5, 2, true};
  EXPECT_NE(advice_for(layer).find("weights are 1.5 times"), std::string::npos);
}

TEST(CompareAdvice, ErrorsOfOneSign) {
  LayerReport layer = layer_of(int8_range(-4.5F, 4.5F), normal_values(10000, 1));
  layer.own = {};
  for (int i = 0; i < 100; ++i) layer.own.add(1.3, 1);
  EXPECT_NE(advice_for(layer).find("one-sided, +0.3 on average"), std::string::npos) << advice_for(layer);
}

TEST(CompareAdvice, SmallHarmIsLeftAlone) {
  LayerReport layer = layer_of(int8_range(-1.5F, 1.5F), normal_values(1000, 1));
  layer.effect = 1e-6;
  layer.share = 0.9;
  Comparison comparison;
  comparison.effect_samples = 1;
  comparison.layers.push_back(layer);
  comparison.ranking = {0};
  add_advice({}, comparison);
  EXPECT_TRUE(comparison.layers[0].advice.empty());
}

}  // namespace
}  // namespace reef::evaluate
