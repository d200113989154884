// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"
#include "report/check_report.h"

namespace reef::report {
namespace {

std::string_view code_of(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "1;32";
    case Tone::kBad:
      return "1;31";
    case Tone::kNeutral:
      break;
  }
  return "1";
}

std::string aligned(const std::vector<Summary::Line>& lines) {
  std::size_t width = 0;
  for (const Summary::Line& line : lines) width = std::max(width, line.label.size());
  std::string text;
  for (const Summary::Line& line : lines) {
    text += fmt::format("  {:<{}}  {}\n", printable(line.label), width, printable(line.value));
  }
  return text;
}

}  // namespace

void Summary::add(std::string label, std::string value) {
  if (!value.empty()) lines.push_back({std::move(label), std::move(value)});
}

std::string verdict_line(const Summary& summary, bool colour) {
  const std::string text = printable(summary.verdict);
  return colour ? fmt::format("\033[{}m{}\033[0m\n", code_of(summary.tone), text) : text + "\n";
}

std::string to_text(const Summary& summary, bool colour) {
  return verdict_line(summary, colour) + aligned(summary.lines);
}

std::string closing_lines(const Summary& summary, bool colour) {
  if (summary.lines.empty()) return "";
  return (colour ? "\n\033[1mIn short\033[0m\n" : "\nIn short\n") + aligned(summary.lines);
}

std::string rate_text(double us) {
  if (!(us > 0)) return time_text(us);
  const double per_second = 1e6 / us;
  return fmt::format("{}, {} a second", time_text(us),
                     per_second < 10 ? fmt::format("{:.1f}", per_second) : fmt::format("{:.0f}", per_second));
}

}  // namespace reef::report
