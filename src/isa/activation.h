// SPDX-License-Identifier: Apache-2.0
// Opcode 19: the table of the activation function.
//
// Eight polynomials c0 + c1 x + c2 x^2 + c3 x^3 + c4 x^4 and the seven arguments at which the next one takes over.
// Evidence: 256 * sigmoid is reproduced to 0.007, and networks with LOGISTIC, TANH and SOFTMAX are exact.
#pragma once

#include "isa/layout.h"

namespace reef::isa::activation {

inline constexpr int kSegments = 8;
inline constexpr int kCoefficients = 5;
inline constexpr int kBreakpoints = 7;

inline constexpr std::string_view kSegmentNames[] = {"segment_0", "segment_1", "segment_2", "segment_3",
                                                     "segment_4", "segment_5", "segment_6", "segment_7"};
inline constexpr std::string_view kCoefficientNames[] = {"c0", "c1", "c2", "c3", "c4"};
inline constexpr std::string_view kBreakpointNames[] = {"break_0", "break_1", "break_2", "break_3",
                                                        "break_4", "break_5", "break_6"};

constexpr Field coefficient(int segment, int power) {
  return layout::Cursor{62 + 32 * (segment * kCoefficients + power), kSegmentNames[segment]}.next(
      kCoefficientNames[power], 32, Kind::kFloat32, "", "coefficient of a power of the argument", Evidence::kExecuted);
}
constexpr Field breakpoint(int k) {
  return layout::field(kBreakpointNames[k], 62 + 32 * (kSegments * kCoefficients + k), 32, Kind::kFloat32, "",
                       "arguments from here on belong to the next segment", Evidence::kExecuted);
}

}  // namespace reef::isa::activation
