// SPDX-License-Identifier: Apache-2.0
#include "learn/mirror.h"

#include <random>

#include <gtest/gtest.h>

#include "learn/softmax_regression.h"
#include "learn/vector_math.h"

namespace reef::learn {
namespace {

// Rows around a direction for each class; `mirrored_class` says which class's direction a mirrored picture shows.
Embeddings views(int classes, int rows, float noise, int (*mirrored_class)(int)) {
  Embeddings result;
  result.dimension = 12;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto row_of = [&](int shown) {
    std::vector<float> row(12);
    for (float& value : row) value = noise * normal(random);
    row[at(shown)] += 1;
    return row;
  };
  for (int i = 0; i < rows; ++i) {
    const int label = i % classes;
    result.add(row_of(label), label);
    const std::vector<float> view = row_of(mirrored_class(label));
    result.mirrored.insert(result.mirrored.end(), view.begin(), view.end());
  }
  return result;
}
int itself(int c) { return c; }
int other_of_pair(int c) { return c < 2 ? 1 - c : c; }  // left and right arrows, and something else

TEST(Mirror, PicturesThatShowTheSameAreTaken) {
  for (const int rows : {3, 6, 30, 300}) {
    const MirrorTest test = test_mirrored(views(3, rows, 0.3F, itself), 3);
    EXPECT_EQ(test.pictures, rows);
    EXPECT_TRUE(test.is_same_class()) << rows << ": " << test.right << " and " << test.mirrored_right;
  }
}

TEST(Mirror, ClassesThatAreEachOthersMirrorAreNot) {
  for (const int rows : {3, 6, 30, 300}) {
    EXPECT_FALSE(test_mirrored(views(3, rows, 0.1F, other_of_pair), 3).is_same_class()) << rows;
  }
}

TEST(Mirror, APicturesDirectionIsThatOfBothViews) {
  Embeddings rows;
  rows.dimension = 2;
  rows.add(std::vector<float>{3, 0}, 0);
  EXPECT_EQ(rows.direction(0), (std::vector<float>{1, 0}));
  rows.mirrored = {0, 5};
  const std::vector<float> direction = rows.direction(0);
  EXPECT_NEAR(direction[0], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(direction[1], std::sqrt(0.5), 1e-6);
}

// A picture with two views counts as one: the same minimum as with its views as rows of their own.
TEST(Mirror, SoftmaxRegressionTakesViewsAsHalves) {
  const Embeddings rows = views(3, 60, 0.5F, itself);
  Embeddings apart = rows;
  apart.mirrored.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) apart.add(rows.mirrored_row(i), rows.labels[i]);
  SoftmaxOptions options;
  options.l2 = 0.01;
  options.held_back = 0;
  const auto together = train_softmax(rows, 3, options), single = train_softmax(apart, 3, options);
  ASSERT_TRUE(together.ok() && single.ok());
  for (std::size_t i = 0; i < single->classifier.weights.size(); ++i) {
    EXPECT_NEAR(together->classifier.weights[i], single->classifier.weights[i], 0.03) << i;
  }
}

TEST(Folds, EveryRowIsHeldBackOnceAndClassesAreSpread) {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 37; ++i) labels.push_back(i % 3);
  const std::vector<Division> parts = folds(labels, 3, 5, 1);
  ASSERT_EQ(parts.size(), 5u);
  std::vector<int> seen(labels.size());
  for (const Division& part : parts) {
    EXPECT_EQ(part.train.size() + part.held_back.size(), labels.size());
    std::vector<int> of_class(3);
    for (const std::size_t row : part.held_back) {
      ++seen[row];
      ++of_class[at(labels[row])];
    }
    for (const int count : of_class) EXPECT_TRUE(count == 2 || count == 3) << count;
  }
  EXPECT_EQ(seen, std::vector<int>(labels.size(), 1));
}

}  // namespace
}  // namespace reef::learn
