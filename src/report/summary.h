// SPDX-License-Identifier: Apache-2.0
// The aligned block at the end of what a command prints: the verdict, then one figure a line, then what to do next.
//
//   Worth it: 13 of 13 operators run on the Edge TPU, 2.1x as fast as the CPU alone (estimated)
//     time      2.72 ms, 368 a second
//     next      reef compile model.tflite
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reef::report {

enum class Tone { kGood, kBad, kNeutral };

struct Summary {
  std::string verdict;  // a sentence without its full stop
  Tone tone = Tone::kNeutral;
  struct Line {
    std::string label, value;
  };
  std::vector<Line> lines;

  // Nothing for an empty value: whoever has no figure has no line.
  void add(std::string label, std::string value);
};

// Printable text, with the colours of a terminal if wanted; ends with a line break.
std::string to_text(const Summary& summary, bool colour);
// The two halves of it for a report that begins with the verdict and ends with the figures: the verdict's line, and the
// others under the heading "In short"; nothing where there are none.
std::string verdict_line(const Summary& summary, bool colour);
std::string closing_lines(const Summary& summary, bool colour);

// "2.72 ms, 368 a second".
std::string rate_text(double us);

}  // namespace reef::report
