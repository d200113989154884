// SPDX-License-Identifier: Apache-2.0
// Both methods against NumPy's results in double precision (tools/oracle/record_learning.py), and their rules.
#include <cmath>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "learn/advice.h"
#include "learn/imprinting.h"
#include "learn/softmax_regression.h"

namespace reef::learn {
namespace {

using Json = nlohmann::json;

struct Recorded {
  Embeddings embeddings;
  int classes = 0;
  double l2 = 0;
  std::vector<double> class_weights, imprinted, sum_lengths, weights, biases;
};

std::vector<Recorded> recorded() {
  std::ifstream file(REEF_SOURCE_DIR "/tests/data/learning.json");
  const Json json = Json::parse(file);
  std::vector<Recorded> cases;
  for (const Json& each : json["cases"]) {
    Recorded made;
    made.classes = each["classes"];
    made.l2 = each["l2"];
    made.embeddings.dimension = each["dimension"];
    made.embeddings.values = each["rows"].get<std::vector<float>>();
    made.embeddings.labels = each["labels"].get<std::vector<std::int32_t>>();
    made.class_weights = each["class_weights"].get<std::vector<double>>();
    made.imprinted = each["imprinted"].get<std::vector<double>>();
    made.sum_lengths = each["sum_lengths"].get<std::vector<double>>();
    made.weights = each["weights"].get<std::vector<double>>();
    made.biases = each["biases"].get<std::vector<double>>();
    cases.push_back(std::move(made));
  }
  EXPECT_EQ(cases.size(), 3u);
  return cases;
}

Imprinting imprinted(const Recorded& each) {
  Imprinting imprinting(each.embeddings.dimension);
  for (std::size_t i = 0; i < each.embeddings.size(); ++i) {
    EXPECT_TRUE(imprinting.train(each.embeddings.row(i), each.embeddings.labels[i]).ok());
  }
  return imprinting;
}

TEST(Imprinting, WeightsAreTheNormalizedMeanOfNormalizedEmbeddings) {
  for (const Recorded& each : recorded()) {
    const Imprinting imprinting = imprinted(each);
    ASSERT_EQ(imprinting.classes().size(), static_cast<std::size_t>(each.classes));
    for (std::size_t c = 0; c < imprinting.classes().size(); ++c) {
      EXPECT_NEAR(imprinting.classes()[c].sum_length(), each.sum_lengths[c], 1e-5);
      const std::vector<float> weights = imprinting.classes()[c].weights();
      for (std::size_t i = 0; i < weights.size(); ++i) {
        EXPECT_NEAR(weights[i], each.imprinted[c * weights.size() + i], 1e-6);
      }
    }
  }
}

TEST(Imprinting, RefusesWhatCoralRefuses) {
  Imprinting imprinting(3);
  const std::vector<float> row = {1, 2, 2};
  EXPECT_FALSE(imprinting.train(row, 1).ok()) << "class ids are consecutive";
  EXPECT_FALSE(imprinting.train(row, -1).ok());
  ASSERT_TRUE(imprinting.train(row, 0).ok());
  ASSERT_TRUE(imprinting.train(row, 1).ok());
  EXPECT_FALSE(imprinting.train(std::vector<float>{1, 2}, 0).ok()) << "another dimension";
  EXPECT_FALSE(imprinting.train(std::vector<float>{0, 0, 0}, 0).ok()) << "no direction";
  EXPECT_FALSE(imprinting.train(std::vector<float>{NAN, 0, 0}, 0).ok());
  ImprintedClass base;
  base.sum = {1, 0, 0};
  base.is_trainable = false;
  Imprinting kept(3, {base});
  EXPECT_FALSE(kept.train(row, 0).ok()) << "classes of the base model stay as they are";
  EXPECT_TRUE(kept.train(row, 1).ok());
}

TEST(SoftmaxRegression, FindsTheMinimumThatNumpyFinds) {
  for (const Recorded& each : recorded()) {
    SoftmaxOptions options;
    options.l2 = each.l2;
    options.class_weights = each.class_weights;
    options.held_back = 0;
    options.max_iterations = 1000;
    const auto result = train_softmax(each.embeddings, each.classes, options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    double largest = 0;
    for (const double weight : each.weights) largest = std::max(largest, std::abs(weight));
    for (std::size_t i = 0; i < each.weights.size(); ++i) {
      EXPECT_NEAR(result->classifier.weights[i], each.weights[i], 0.005 * largest);
    }
    double mean = 0;
    for (const float bias : result->classifier.biases) mean += bias / each.classes;
    for (std::size_t c = 0; c < each.biases.size(); ++c) {
      EXPECT_NEAR(result->classifier.biases[c] - mean, each.biases[c], 0.02);
    }
  }
}

TEST(SoftmaxRegression, SgdComesNearTheSameMinimum) {
  const Recorded each = recorded()[0];
  SoftmaxOptions options;
  options.solver = Solver::kSgd;
  options.l2 = each.l2;
  options.held_back = 0;
  options.max_iterations = 3000;
  options.batch_size = 8;
  const auto result = train_softmax(each.embeddings, each.classes, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  double largest = 0;
  for (const double weight : each.weights) largest = std::max(largest, std::abs(weight));
  for (std::size_t i = 0; i < each.weights.size(); ++i) {
    EXPECT_NEAR(result->classifier.weights[i], each.weights[i], 0.05 * largest);
  }
  EXPECT_EQ(train_softmax(each.embeddings, each.classes, options)->classifier.weights, result->classifier.weights);
}

TEST(SoftmaxRegression, StopsEarlyWhereTheRowsHeldBackGetWorse) {
  // Labels without any meaning: whatever is learned beyond the start is wrong for the others.
  Embeddings noise;
  noise.dimension = 40;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 60; ++i) {
    std::vector<float> row(40);
    for (float& value : row) value = normal(random);
    noise.add(row, i % 2);
  }
  SoftmaxOptions options;
  options.l2 = 0;
  const auto result = train_softmax(noise, 2, options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->has_stopped_early);
  EXPECT_LT(result->iterations, 20);
  EXPECT_EQ(result->rows_held_back, 12);
}

TEST(SoftmaxRegression, BalancedClassesMakeUpForFewRows) {
  Embeddings rows;
  rows.dimension = 2;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 220; ++i) {
    const int label = i < 200 ? 0 : 1;
    rows.add(std::vector<float>{5 + normal(random) + (label == 0 ? 0.0f : 1.2f), 5 + normal(random)}, label);
  }
  SoftmaxOptions options;
  options.l2 = 1e-4;
  const auto plain = train_softmax(rows, 2, options);
  options.are_classes_balanced = true;
  const auto balanced = train_softmax(rows, 2, options);
  ASSERT_TRUE(plain.ok() && balanced.ok());
  int found_plain = 0, found_balanced = 0;
  for (std::size_t i = 200; i < 220; ++i) {
    found_plain += plain->classifier.best(rows.row(i));
    found_balanced += balanced->classifier.best(rows.row(i));
  }
  EXPECT_LT(found_plain, 5);
  EXPECT_GT(found_balanced, 12);
}

TEST(SoftmaxRegression, RefusesWhatCannotBeTrained) {
  Embeddings rows;
  rows.dimension = 2;
  rows.add(std::vector<float>{1, 2}, 0);
  EXPECT_FALSE(train_softmax(rows, 1, {}).ok());
  EXPECT_FALSE(train_softmax(rows, 2, {}).ok()) << "class 1 has no row";
  rows.add(std::vector<float>{1, INFINITY}, 1);
  EXPECT_FALSE(train_softmax(rows, 2, {}).ok());
  rows.values.back() = 0;
  EXPECT_TRUE(train_softmax(rows, 2, {}).ok());
  rows.labels.back() = 7;
  EXPECT_FALSE(train_softmax(rows, 2, {}).ok());
}

TEST(LearningAdvice, NamesThePairThatFallsTogether) {
  Embeddings rows;
  rows.dimension = 8;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 90; ++i) {
    std::vector<float> row(8, 0.0f);
    for (float& value : row) value = 0.3f * normal(random);
    row[i % 3 == 0 ? 0 : 1] += 2;  // classes 1 and 2 look alike
    rows.add(row, i % 3);
  }
  const auto pairs = collapsed_pairs(rows, 3);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].a, 1);
  EXPECT_EQ(pairs[0].b, 2);
  EXPECT_LT(pairs[0].right, kCollapsedBelow);
  EXPECT_GT(pairs[0].cosine, 0.95);
}

TEST(LearningAdvice, SaysWhenMorePicturesHelp) {
  const std::vector<CurvePoint> rising = {{1, 0.5, 0, 5}, {10, 0.7, 0, 5}, {20, 0.8, 0, 1}};
  EXPECT_NE(curve_advice(rising, 1000).find("more pictures would probably help"), std::string::npos);
  EXPECT_NE(curve_advice(rising, 5).find("cannot tell"), std::string::npos);
  const std::vector<CurvePoint> flat = {{1, 0.5, 0, 5}, {10, 0.8, 0, 5}, {20, 0.8, 0, 1}};
  EXPECT_NE(curve_advice(flat, 1000).find("not help much"), std::string::npos);
  EXPECT_EQ(imbalance_notes({10, 10, 2}, {"a", "b", "c"}).size(), 1u);
  EXPECT_TRUE(imbalance_notes({10, 8, 9}, {}).empty());
}

TEST(Division, HoldsBackAShareOfEveryClassAndNeverItsLastRow) {
  const std::vector<std::int32_t> labels = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2};
  const Division parts = divide(labels, 3, 0.2, 1);
  EXPECT_EQ(parts.held_back.size(), 2u);
  EXPECT_EQ(parts.train.size(), 11u);
  EXPECT_EQ(divide(labels, 3, 0.9, 1).train.size(), 3u);
  EXPECT_NE(divide(labels, 3, 0.2, 2).held_back, parts.held_back);
}

}  // namespace
}  // namespace reef::learn
