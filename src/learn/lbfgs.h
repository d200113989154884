// SPDX-License-Identifier: Apache-2.0
// L-BFGS (Liu, Nocedal 1989): minimizes a smooth convex function from its values and gradients, with the last few steps
// as its picture of the curvature. Every step goes downhill (Armijo's condition by halving). Single thread, so that the
// same function gives the same steps.
#pragma once

#include <functional>
#include <vector>

namespace reef::learn {

struct LbfgsOptions {
  int max_iterations = 200;
  int memory = 8;                    // steps that are remembered
  double gradient_tolerance = 1e-5;  // ends when the gradient's length falls below this share of max(1, |x|)
};

// The function's value at x; fills `gradient`, which has x's size.
using Objective = std::function<double(const std::vector<float>& x, std::vector<float>& gradient)>;
// Told after each step; false ends the search.
using Progress = std::function<bool(int iteration, double value, const std::vector<float>& x)>;

struct LbfgsResult {
  int iterations = 0;
  double value = 0;
};

// `x` is where it starts and, afterwards, the best that was found.
LbfgsResult minimize(const Objective& objective, std::vector<float>& x, const LbfgsOptions& options,
                     const Progress& progress = nullptr);

}  // namespace reef::learn
