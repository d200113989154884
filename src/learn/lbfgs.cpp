// SPDX-License-Identifier: Apache-2.0
#include "learn/lbfgs.h"

#include <algorithm>
#include <deque>

#include "learn/vector_math.h"

namespace reef::learn {
namespace {

constexpr double kSufficientDecrease = 1e-4;
constexpr int kMaxHalvings = 30;

struct Step {
  std::vector<float> moved, turned;  // change of x, change of the gradient
  double curvature = 0;              // their product, positive
};

double product(const std::vector<float>& a, const std::vector<float>& b) { return dot(a.data(), b.data(), a.size()); }

// Minus the gradient, multiplied with the inverse curvature that the steps tell (the "two-loop recursion").
std::vector<float> direction_of(const std::vector<float>& gradient, const std::deque<Step>& steps) {
  std::vector<float> d(gradient.size());
  std::transform(gradient.begin(), gradient.end(), d.begin(), [](float g) { return -g; });
  std::vector<double> shares(steps.size());
  for (std::size_t i = steps.size(); i-- > 0;) {
    shares[i] = product(steps[i].moved, d) / steps[i].curvature;
    add_scaled(static_cast<float>(-shares[i]), steps[i].turned.data(), d.data(), d.size());
  }
  if (!steps.empty()) {
    const Step& last = steps.back();
    const auto scale = static_cast<float>(last.curvature / product(last.turned, last.turned));
    for (float& value : d) value *= scale;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double share = shares[i] - product(steps[i].turned, d) / steps[i].curvature;
    add_scaled(static_cast<float>(share), steps[i].moved.data(), d.data(), d.size());
  }
  return d;
}

Step step_between(const std::vector<float>& x0, const std::vector<float>& x1, const std::vector<float>& g0,
                  const std::vector<float>& g1) {
  Step step{x1, g1, 0};
  add_scaled(-1, x0.data(), step.moved.data(), x0.size());
  add_scaled(-1, g0.data(), step.turned.data(), g0.size());
  step.curvature = product(step.moved, step.turned);
  return step;
}

}  // namespace

LbfgsResult minimize(const Objective& objective, std::vector<float>& x, const LbfgsOptions& options,
                     const Progress& progress) {
  LbfgsResult result;
  std::vector<float> gradient(x.size()), next_gradient(x.size()), next(x.size());
  result.value = objective(x, gradient);
  std::deque<Step> steps;
  while (result.iterations < options.max_iterations) {
    const double steepness = length(gradient);
    if (steepness <= options.gradient_tolerance * std::max(1.0, length(x))) break;
    std::vector<float> direction = direction_of(gradient, steps);
    double slope = product(direction, gradient);
    if (!(slope < 0)) {  // rounding has spoiled the picture: forget it
      steps.clear();
      direction = direction_of(gradient, steps);
      slope = -steepness * steepness;
    }
    double size = steps.empty() ? std::min(1.0, 1 / steepness) : 1;
    double value = 0;
    int halvings = 0;
    for (; halvings < kMaxHalvings; ++halvings, size /= 2) {
      next = x;
      add_scaled(static_cast<float>(size), direction.data(), next.data(), next.size());
      value = objective(next, next_gradient);
      if (value <= result.value + kSufficientDecrease * size * slope) break;
    }
    if (halvings == kMaxHalvings) break;  // as low as float numbers tell
    Step step = step_between(x, next, gradient, next_gradient);
    if (step.curvature > 1e-12 * product(step.turned, step.turned)) {
      steps.push_back(std::move(step));
      if (static_cast<int>(steps.size()) > options.memory) steps.pop_front();
    }
    x.swap(next);
    gradient.swap(next_gradient);
    result.value = value;
    ++result.iterations;
    if (progress && !progress(result.iterations, value, x)) break;
  }
  return result;
}

}  // namespace reef::learn
