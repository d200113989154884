// SPDX-License-Identifier: Apache-2.0
// Figures of parts have the bits of figures that were computed in one piece, for every metric, any division and any
// order of parts; parts that do not belong together are refused.
#include "evaluate/partial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "evaluate/box_truth.h"

namespace reef::evaluate {
namespace {

constexpr std::int64_t kSamples = 37;

struct Case {
  const char* name;
  std::unique_ptr<Metric> (*make)();
  // Output and truth of a sample.
  void (*fill)(std::mt19937& random, TensorValues& output, data::Truth& truth);
};

double uniform(std::mt19937& random) { return static_cast<double>(random()) / 4294967296.0; }

const Case kCases[] = {
    {"top1", [] { return make_top_k(1, {}); },
     [](std::mt19937& random, TensorValues& output, data::Truth& truth) {
       for (int i = 0; i < 5; ++i) output.values.push_back(std::floor(4 * uniform(random)));
       truth.values = {static_cast<double>(random() % 5)};
     }},
    {"psnr", [] { return make_psnr({}); },
     [](std::mt19937& random, TensorValues& output, data::Truth& truth) {
       truth.type = ir::DataType::kFloat32;
       truth.shape = {3, 4};
       output.shape = ir::Shape({1, 3, 4});
       for (int i = 0; i < 12; ++i) {
         truth.values.push_back(uniform(random));
         output.values.push_back(truth.values.back() + uniform(random) / 3);
       }
     }},
    {"miou", [] { return make_mean_iou({}); },
     [](std::mt19937& random, TensorValues& output, data::Truth& truth) {
       truth.shape = {4, 4};
       output.shape = ir::Shape({1, 4, 4});
       for (int i = 0; i < 16; ++i) {
         truth.values.push_back(static_cast<double>(random() % 3));
         output.values.push_back(static_cast<double>(random() % 3));
       }
     }},
    {"map50",
     [] {
       MetricOptions options;
       options.detector = "yolo5";
       return make_map50(options, {BoxForm::Corners::kCentre, false, true});
     },
     [](std::mt19937& random, TensorValues& output, data::Truth& truth) {
       truth.type = ir::DataType::kFloat32;
       truth.shape = {2, 5};
       output.shape = ir::Shape({1, 9, 7});
       for (int i = 0; i < 2; ++i) {
         for (const double value : {0.3 + 0.3 * i, 0.5, 0.2, 0.2, static_cast<double>(random() % 2)})
           truth.values.push_back(value);
       }
       for (int i = 0; i < 9; ++i) {
         for (const double value : {0.3 + 0.3 * (i % 2) + 0.05 * uniform(random), 0.5, 0.2, 0.2, uniform(random),
                                    uniform(random), uniform(random)})
           output.values.push_back(value);
       }
     }},
};

class Partial : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::mt19937 random(7);
    for (std::int64_t i = 0; i < kSamples; ++i) {
      outputs_.emplace_back();
      truths_.emplace_back();
      GetParam().fill(random, outputs_.back(), truths_.back());
      keys_.push_back(fmt::format("folder/picture {}.png", i));
    }
  }

  std::unique_ptr<Metric> measured(std::int64_t begin, std::int64_t end) const {
    auto metric = GetParam().make();
    metric->start(end - begin);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Status status =
          metric->add(i - begin, {std::span(&outputs_[at], 1), truths_[at], data::Placement{}, {10, 10}});
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return metric;
  }

  std::string text(std::int64_t begin, std::int64_t end) const {
    return partial_text(
        *measured(begin, end), "settings",
        std::span(keys_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  }

  std::vector<TensorValues> outputs_;
  std::vector<data::Truth> truths_;
  std::vector<std::string> keys_;
};

std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

TEST_P(Partial, FiguresOfPartsHaveTheSameBits) {
  const auto whole = measured(0, kSamples)->finish();
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  for (const std::int64_t parts : {1, 2, 5, 37}) {
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < parts; ++i) texts.push_back(text(kSamples * i / parts, kSamples * (i + 1) / parts));
    std::reverse(texts.begin(), texts.end());
    auto metric = GetParam().make();
    metric->start(kSamples);
    PartialMerger merger(*metric, "settings", keys_);
    for (const std::string& one : texts) {
      EXPECT_FALSE(merger.check_complete().ok());
      const Status status = merger.add(one);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_TRUE(merger.check_complete().ok());
    const auto figure = metric->finish();
    ASSERT_TRUE(figure.ok());
    EXPECT_EQ(bits_of(figure->value), bits_of(whole->value)) << parts;
    EXPECT_EQ(bits_of(figure->standard_error), bits_of(whole->standard_error)) << parts;
    ASSERT_EQ(figure->details.size(), whole->details.size());
    for (std::size_t i = 0; i < figure->details.size(); ++i)
      EXPECT_EQ(bits_of(figure->details[i].second), bits_of(whole->details[i].second));
  }
}

TEST_P(Partial, NothingCountsTwiceAndStrangersAreRefused) {
  auto metric = GetParam().make();
  metric->start(kSamples);
  PartialMerger merger(*metric, "settings", keys_);
  ASSERT_TRUE(merger.add(text(0, 10)).ok());
  const auto expect = [&](const std::string& part, const char* words) {
    const Status status = merger.add(part);
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  expect(text(9, 12), "is in another part, too");
  expect(partial_text(*measured(12, 13), "other settings", std::span(keys_).subspan(12, 1)), "another model");
  const std::vector<std::string> strange = {"elsewhere.png"};
  expect(partial_text(*measured(12, 13), "settings", strange), "is none of these");
  expect("{", "no part of an evaluation");
  expect(R"({"reef_partial": 9, "settings": "settings", "samples": {}})", "another version");
  expect(R"({"reef_partial": 1, "settings": "settings", "samples": {"folder/picture 30.png": {"x": []}}})",
         "picture 30");
}

INSTANTIATE_TEST_SUITE_P(Metrics, Partial, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Partial, NumbersWithoutAWordInJsonSurvive) {
  auto metric = make_psnr({});
  metric->start(2);
  const double infinite = std::numeric_limits<double>::infinity();
  const TensorValues output{"x", ir::Shape({1}), {infinite}};
  const data::Truth truth{ir::DataType::kFloat32, {1}, {0.5}};
  ASSERT_TRUE(metric->add(0, {std::span(&output, 1), truth, {}, {0, 0}}).ok());
  auto other = make_psnr({});
  other->start(2);
  ASSERT_TRUE(other->restore(0, metric->kept(0)).ok());
  EXPECT_EQ(other->kept(0), metric->kept(0));
  EXPECT_EQ(metric->kept(0)[0], "inf");
}

}  // namespace
}  // namespace reef::evaluate
