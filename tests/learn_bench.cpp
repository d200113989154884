// SPDX-License-Identifier: Apache-2.0
// How long training takes, without embedding: 1,000 embeddings of 1,024 numbers, 10 classes, one thread.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "learn/imprinting.h"
#include "learn/softmax_regression.h"

namespace {

using namespace reef::learn;

Embeddings sample_rows(int count, int dimension, int classes) {
  Embeddings rows;
  rows.dimension = dimension;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> centres(static_cast<std::size_t>(classes));
  for (auto& centre : centres) {
    for (int i = 0; i < dimension; ++i) centre.push_back(normal(random));
  }
  for (int i = 0; i < count; ++i) {
    std::vector<float> row = centres[static_cast<std::size_t>(i % classes)];
    // Overlapping classes, cut off at 0, as embeddings of real pictures are.
    for (float& value : row) value = std::max(0.0f, 0.5f * value + normal(random));
    rows.add(row, i % classes);
  }
  return rows;
}

template <typename Work>
double milliseconds(const Work& work) {
  double best = INFINITY;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main() {
  const Embeddings rows = sample_rows(1000, 1024, 10);
  std::printf("training, 1000 embeddings of 1024 numbers, 10 classes, one thread (measured, best of 3):\n");
  std::printf("  imprinting                                %8.1f ms\n", milliseconds([&] {
                Imprinting imprinting(rows.dimension);
                for (int c = 0; c < 10; ++c) {
                  for (std::size_t i = 0; i < rows.size(); ++i) {
                    if (rows.labels[i] == c && !imprinting.train(rows.row(i), c).ok()) std::abort();
                  }
                }
              }));
  for (const bool is_chosen : {false, true}) {
    for (const Solver solver : {Solver::kLbfgs, Solver::kSgd}) {
      SoftmaxOptions options;
      options.solver = solver;
      if (!is_chosen) options.l2 = 1e-3;
      int iterations = 0;
      const double time = milliseconds([&] {
        const auto result = train_softmax(rows, 10, options);
        if (!result.ok()) std::abort();
        iterations = result->iterations;
      });
      std::printf("  softmax regression, %-6s %-16s %8.1f ms (%d iterations in the end)\n",
                  solver == Solver::kSgd ? "sgd," : "lbfgs,", is_chosen ? "l2 tried out" : "l2 given", time,
                  iterations);
    }
  }
}
