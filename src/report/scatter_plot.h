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
    std::string name;       // shown beside the point
    bool is_apart = false;  // grey, and not on the line through the others
  };
  std::vector<Point> points;
};

// One drawing below the other. Same plots, same bytes.
std::string scatter_page(const std::string& title, const std::string& subtitle, const std::vector<ScatterPlot>& plots);

// One drawing as a file of its own (SVG).
std::string scatter_svg(const std::string& title, const ScatterPlot& plot);

}  // namespace reef::report
