// SPDX-License-Identifier: Apache-2.0
// What the user wants of a point, and which of several comes nearest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace reef::tune {

// Conditions that must all hold. Empty: the whole front is wanted.
struct Goal {
  std::optional<double> latency_ms;  // at most, of one inference, simulated
  std::optional<double> drop;      // less accuracy than the float model, at most: a share of 1; of metrics in dB, of it
  std::optional<double> accuracy;  // at least
  bool fit = false;                // no parameters are sent with every inference

  bool empty() const { return !latency_ms && !drop && !accuracy && !fit; }
};

// "latency<5ms", "drop<1%", "accuracy>80%", "fit", or several with commas between them.
Result<Goal> parse_goal(const std::string& text);

// The figures of a point that goals speak of.
struct GoalFigures {
  double ms = 0;
  double accuracy = 0, float_accuracy = 0;
  bool is_share = true;  // the metric is a share of 1, else in dB
  bool streams = false;
};

// By how much a point misses the goal, relative to what is asked; 0: it meets it.
double miss_of(const Goal& goal, const GoalFigures& point);
// What is missed and by how much, in words; empty: nothing.
std::string describe_miss(const Goal& goal, const GoalFigures& point);
// Whether `a` is to be preferred: it misses the goal less; of two that meet it, the more accurate one if the goal is
// about time or size, else the faster one.
bool is_better(const Goal& goal, const GoalFigures& a, const GoalFigures& b);
// The best point; -1: there are none.
int choose_point(const Goal& goal, const std::vector<GoalFigures>& points);

}  // namespace reef::tune
