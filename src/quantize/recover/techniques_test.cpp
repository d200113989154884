// SPDX-License-Identifier: Apache-2.0
#include "quantize/recover/techniques.h"

#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "quantize/measure.h"
#include "random_samples.h"

namespace reef::quantize {
namespace {

constexpr std::int64_t kCount = 60;
const testing::RandomSamples kNoise(kCount, 0, 1);
const std::vector<std::int64_t> kSamples = [] {
  std::vector<std::int64_t> all(kCount);
  std::iota(all.begin(), all.end(), 0);
  return all;
}();

// The shipped network, what was seen of it, and a copy to change.
struct Creatures {
  Creatures() {
    auto loaded = tflite::load_model(REEF_SOURCE_DIR "/models/reef_creatures_float.tflite");
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    model = std::make_shared<const ir::Model>(std::move(loaded).value());
    auto seen = calibrate(model, kNoise, kSamples, {});
    EXPECT_TRUE(seen.ok()) << seen.status().message();
    calibration = std::move(seen).value();
    changed = std::make_shared<ir::Model>(*model);
  }
  void expect_same_outputs() const {
    const auto before = run_outputs(model, kNoise, kSamples, {}), after = run_outputs(changed, kNoise, kSamples, {});
    ASSERT_TRUE(before.ok() && after.ok());
    for (std::size_t s = 0; s < kSamples.size(); ++s) {
      for (std::size_t i = 0; i < (*before)[s][0].size(); ++i) {
        EXPECT_NEAR((*before)[s][0][i], (*after)[s][0][i], 2e-5) << s << " " << i;
      }
    }
  }

  std::shared_ptr<const ir::Model> model;
  std::shared_ptr<ir::Model> changed;
  Calibration calibration;
  ChannelFactors factors;
};

TEST(QuantizeTechniques, EqualizationDoesNotChangeWhatIsComputed) {
  Creatures at;
  EXPECT_GT(equalize_layers(*at.changed, at.calibration, at.factors), 3);
  at.expect_same_outputs();
  // And the channels between two layers are nearer to each other: compare the spread of their ranges.
  const auto again = calibrate(at.changed, kNoise, kSamples, {});
  ASSERT_TRUE(again.ok());
  const auto spread = [](const Calibration& c) {
    double sum = 0;
    for (const TensorStatistics& t : c.tensors) {
      double low = 1e30, high = 0;
      for (std::size_t i = 0; i < t.channels.max.size() && t.channels.count > 4; ++i) {
        const double range = std::max<double>(std::abs(t.channels.min[i]), std::abs(t.channels.max[i]));
        if (range > 1e-3) low = std::min(low, range);
        high = std::max(high, range);
      }
      if (high > 0) sum += std::log(high / low);
    }
    return sum;
  };
  EXPECT_LT(spread(*again), spread(at.calibration));
}

// The fewer samples were seen, the more room a channel has beyond them; none gets more than the largest.
TEST(QuantizeTechniques, ChannelsOfFewSamplesHaveMoreRoom) {
  Calibration seen;
  seen.tensors.resize(1);
  ChannelStatistics& channels = seen.tensors[0].channels;
  channels.count = 1;
  channels.min = {-1, -0.5f, -8};
  channels.max = {0.5f, 1, 7.9f};
  channels.sum = {0, 0, 0};
  seen.samples = 4;
  EXPECT_EQ(channel_limits(seen, 0), (std::vector<float>{1.5f, 1.5f, 8}));
  seen.samples = 396;
  EXPECT_NEAR(channel_limits(seen, 0)[0], 1.01f, 1e-5);
  channels.count = 0;
  EXPECT_TRUE(channel_limits(seen, 0).empty());
}

TEST(QuantizeTechniques, EqualizedStreamsComputeTheSame) {
  Creatures at;
  EXPECT_EQ(equalize_streams(*at.changed, at.calibration, at.factors), 2);
  at.expect_same_outputs();
}

TEST(QuantizeTechniques, AdaptiveRoundingLowersTheErrorOfOutputs) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  constexpr std::size_t kLength = 40, kPatches = 300;
  // Inputs that go together, as neighbouring pixels do.
  std::vector<double> moments(kLength * kLength, 0);
  std::vector<std::vector<float>> patches;
  for (std::size_t p = 0; p < kPatches; ++p) {
    const float common = normal(random);
    std::vector<float> x(kLength);
    for (float& v : x) v = common + 0.3f * normal(random);
    for (std::size_t i = 0; i < kLength; ++i) {
      for (std::size_t j = 0; j < kLength; ++j) moments[i * kLength + j] += static_cast<double>(x[i]) * x[j];
    }
    patches.push_back(std::move(x));
  }
  std::vector<float> weights(kLength);
  for (float& w : weights) w = normal(random);
  const double scale = 0.1;
  std::vector<std::int8_t> nearest(kLength);
  for (std::size_t i = 0; i < kLength; ++i) nearest[i] = static_cast<std::int8_t>(std::round(weights[i] / scale));
  std::vector<std::int8_t> adapted = nearest;
  round_for_outputs(moments, weights, scale, adapted);
  const auto error = [&](const std::vector<std::int8_t>& q) {
    double sum = 0;
    for (const auto& x : patches) {
      double difference = 0;
      for (std::size_t i = 0; i < kLength; ++i) difference += x[i] * (q[i] * scale - weights[i]);
      sum += difference * difference;
    }
    return sum;
  };
  EXPECT_LT(error(adapted), 0.8 * error(nearest));
  for (std::size_t i = 0; i < kLength; ++i) EXPECT_LT(std::abs(adapted[i] * scale - weights[i]), scale) << i;
}

}  // namespace
}  // namespace reef::quantize
