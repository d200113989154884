// SPDX-License-Identifier: Apache-2.0
// Points of one quantity against another, as a page with drawings (HTML with inline SVG, no scripts, nothing loaded).
#pragma once

#include <string>
#include <vector>

namespace reef::report {

struct ScatterPlot {
  std::string y_title, x_title;
  struct Point {
    double x = 0, y = 0;
    std::string name;  // shown beside the point
  };
  std::vector<Point> points;
};

// One drawing below the other. Same plots, same bytes.
std::string scatter_page(const std::string& title, const std::string& subtitle, const std::vector<ScatterPlot>& plots);

}  // namespace reef::report
