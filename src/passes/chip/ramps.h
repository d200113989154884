// SPDX-License-Identifier: Apache-2.0
// A function of one 8-bit number as a sum of ramps.
//
// A ramp is 0 up to one input, rises (or falls) in a straight line to its height at another, and stays there. The chip
// computes one with a 1x1 depthwise convolution whose result saturates at both ends of its 8 bits. With heights of
// whole steps of the output, all ramps but the one on which the input lies contribute whole steps, so that adding them
// up with ADD rounds once and not once per ramp. Any function that is close to few straight pieces can be had this way.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace reef::passes {

// A corner of the polygon: at the input's stored number lowest + `index` the value is `level`, a stored number of the
// output.
struct Corner {
  int index = 0;
  std::int32_t level = 0;
  friend bool operator==(const Corner&, const Corner&) = default;
};

struct PolygonRequest {
  std::array<std::int32_t, 256> levels = {};  // what is to be approximated
  std::int32_t lowest = -128;                 // of the output's type
  double tolerance = 1;                       // between polygon and levels, in steps
  std::int32_t through_level = 0;             // a corner with this level is wanted ...
  bool must_pass = false;                     // ... at any price
};

// The polygon with the fewest pieces from input 0 to 255 whose corners are within one level of the wanted ones and
// which keeps to the tolerance everywhere. Nothing if the tolerance is below 0 or `must_pass` cannot be met.
std::optional<std::vector<Corner>> fit_polygon(const PolygonRequest& request);

}  // namespace reef::passes
