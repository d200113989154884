// SPDX-License-Identifier: Apache-2.0
// Accuracy against the number of pictures, as a page with a drawing (HTML with inline SVG, no scripts, nothing loaded).
#pragma once

#include <string>
#include <vector>

#include "learn/advice.h"

namespace reef::report {

struct CurveSeries {
  std::string name;
  std::vector<learn::CurvePoint> points;
};

// `chance`: the share that guessing gets right. Same curves, same bytes.
std::string learning_curve_page(const std::string& title, const std::string& subtitle,
                                const std::vector<CurveSeries>& series, double chance);

}  // namespace reef::report
