// SPDX-License-Identifier: Apache-2.0
#include "tune/goal.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace reef::tune {
namespace {

// A number and what stands behind it. Not a number: false.
bool read_number(const std::string& text, double& value, std::string& unit) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  unit = end;
  return end != text.c_str() && std::isfinite(value);
}

Result<double> time_of(const std::string& text) {
  double value = 0;
  std::string unit;
  REEF_REQUIRE(
      read_number(text, value, unit) && value > 0 && (unit.empty() || unit == "ms" || unit == "s" || unit == "us"),
      "--goal: '{}' is no time such as 5ms", text);
  return unit == "s" ? value * 1000 : unit == "us" ? value / 1000 : value;
}

Result<double> share_of(const std::string& text) {
  double value = 0;
  std::string unit;
  REEF_REQUIRE(read_number(text, value, unit) && value >= 0 && (unit.empty() || unit == "%" || unit == "dB"),
               "--goal: '{}' is no share such as 1%", text);
  return unit == "%" ? value / 100 : value;
}

double drop_of(const GoalFigures& point) {
  const double drop = point.float_accuracy - point.accuracy;
  return point.is_share ? drop : drop / std::max(std::abs(point.float_accuracy), 1e-12);
}

std::string shown(double accuracy, const GoalFigures& point) {
  return point.is_share ? fmt::format("{:.2f} %", 100 * accuracy) : fmt::format("{:.2f} dB", accuracy);
}

}  // namespace

Result<Goal> parse_goal(const std::string& text) {
  Goal goal;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, comma - begin);
    std::erase_if(part, [](char c) { return c == ' ' || c == '='; });  // "latency <= 5ms"
    begin = comma + 1;
    if (part == "fit") {
      goal.fit = true;
    } else if (part.starts_with("latency<")) {
      REEF_ASSIGN_OR_RETURN(goal.latency_ms, time_of(part.substr(8)));
    } else if (part.starts_with("drop<")) {
      REEF_ASSIGN_OR_RETURN(goal.drop, share_of(part.substr(5)));
    } else if (part.starts_with("accuracy>")) {
      REEF_ASSIGN_OR_RETURN(goal.accuracy, share_of(part.substr(9)));
    } else {
      return invalid_input("--goal: '{}' is no goal; there are latency<5ms, drop<1%, accuracy>80% and fit", part);
    }
  }
  return goal;
}

double miss_of(const Goal& goal, const GoalFigures& point) {
  constexpr double kWholePoint = 0.01;  // a drop of 2 points where 1 was asked for misses by as much as twice the time
  double miss = 0;
  if (goal.latency_ms) miss += std::max(0.0, point.ms / *goal.latency_ms - 1);
  if (goal.drop) miss += std::max(0.0, drop_of(point) - *goal.drop) / std::max(*goal.drop, kWholePoint);
  if (goal.accuracy) miss += std::max(0.0, *goal.accuracy - point.accuracy) / std::max(*goal.accuracy, kWholePoint);
  if (goal.fit && point.streams) miss += 1;
  return miss;
}

std::string describe_miss(const Goal& goal, const GoalFigures& point) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (goal.latency_ms && point.ms > *goal.latency_ms)
    add(fmt::format("{:.3f} ms (simulated) where {:.3f} ms was asked for", point.ms, *goal.latency_ms));
  if (goal.drop && drop_of(point) > *goal.drop) {
    add(fmt::format("{} (measured), {:.2f} {} below the float model's, where {:.2f} was asked for",
                    shown(point.accuracy, point), 100 * drop_of(point), point.is_share ? "points" : "%",
                    100 * *goal.drop));
  }
  if (goal.accuracy && point.accuracy < *goal.accuracy)
    add(fmt::format("{} (measured) where {} was asked for", shown(point.accuracy, point),
                    shown(*goal.accuracy, point)));
  if (goal.fit && point.streams) add("parameters are still sent with every inference");
  return text;
}

bool is_better(const Goal& goal, const GoalFigures& a, const GoalFigures& b) {
  const double miss_a = miss_of(goal, a), miss_b = miss_of(goal, b);
  if (miss_a != miss_b) return miss_a < miss_b;
  if ((goal.drop || goal.accuracy) && a.ms != b.ms) return a.ms < b.ms;
  if (a.accuracy != b.accuracy) return a.accuracy > b.accuracy;
  return a.ms < b.ms;
}

int choose_point(const Goal& goal, const std::vector<GoalFigures>& points) {
  const auto best = std::min_element(points.begin(), points.end(),
                                     [&](const auto& a, const auto& b) { return is_better(goal, a, b); });
  return best == points.end() ? -1 : static_cast<int>(best - points.begin());
}

}  // namespace reef::tune
