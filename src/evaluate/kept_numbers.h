// SPDX-License-Identifier: Apache-2.0
// Numbers that metrics keep, in JSON: to the bit, also where JSON has no word for them.
#pragma once

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace reef::evaluate {

// Finite numbers are written with as many digits as tell them apart.
inline nlohmann::json exact(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

inline Result<double> exact_number(const nlohmann::json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  return invalid_input("'{}' is no number", json.dump());
}

// A row of `count` numbers.
inline Result<std::vector<double>> exact_row(const nlohmann::json& json, std::size_t count) {
  REEF_REQUIRE(json.is_array() && json.size() == count, "'{}' is no row of {} numbers", json.dump(), count);
  std::vector<double> row;
  for (const nlohmann::json& one : json) {
    REEF_ASSIGN_OR_RETURN(const double value, exact_number(one));
    row.push_back(value);
  }
  return row;
}

}  // namespace reef::evaluate
