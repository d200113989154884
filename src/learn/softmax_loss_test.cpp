// SPDX-License-Identifier: Apache-2.0
#include "learn/softmax_loss.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace reef::learn {
namespace {

Embeddings random_rows(std::size_t rows, int dimension, int classes) {
  std::mt19937 random(3);
  Embeddings embeddings;
  embeddings.dimension = dimension;
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<float> row;
    for (int k = 0; k < dimension; ++k) row.push_back(static_cast<float>(random() % 2000) / 1000 - 1);
    embeddings.add(row, static_cast<std::int32_t>(random() % static_cast<unsigned>(classes)));
  }
  return embeddings;
}

// Devices and threads only share the rows out: the sums are the same bits.
TEST(SoftmaxLoss, GradientDoesNotDependOnThreads) {
  constexpr int kDimension = 9, kClasses = 4;
  for (const std::size_t rows : {1, 256, 257, 1000, 6000}) {
    const Embeddings embeddings = random_rows(rows, kDimension, kClasses);
    const std::vector<double> weights = {1, 2, 0.5, 1};
    std::vector<float> x(kClasses * (kDimension + 1), 0.1F);
    const SoftmaxLoss alone(embeddings, kClasses, weights, 1e-3);
    std::vector<float> expected(x.size());
    const double loss = alone.evaluate(x, &expected);
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      const SoftmaxLoss shared(embeddings, kClasses, weights, 1e-3, &pool);
      std::vector<float> gradient(x.size());
      EXPECT_EQ(shared.evaluate(x, &gradient), loss) << rows << " rows on " << threads << " threads";
      EXPECT_EQ(gradient, expected) << rows << " rows on " << threads << " threads";
    }
  }
}

TEST(SoftmaxLoss, GradientIsTheSlope) {
  constexpr int kDimension = 3, kClasses = 3;
  const Embeddings embeddings = random_rows(700, kDimension, kClasses);
  const SoftmaxLoss loss(embeddings, kClasses, {1, 1, 3}, 1e-2);
  std::vector<float> x(kClasses * (kDimension + 1));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.05F * static_cast<float>(i) - 0.2F;
  std::vector<float> gradient(x.size());
  (void)loss.evaluate(x, &gradient);
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<float> up = x, down = x;
    up[i] += 1e-2F;
    down[i] -= 1e-2F;
    const double slope = (loss.evaluate(up, nullptr) - loss.evaluate(down, nullptr)) / (double{up[i]} - down[i]);
    EXPECT_NEAR(gradient[i], slope, 2e-4) << i;
  }
}

}  // namespace
}  // namespace reef::learn
