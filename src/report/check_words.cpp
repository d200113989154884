// SPDX-License-Identifier: Apache-2.0
// Small texts that check's report and others share.
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/check_report.h"

namespace reef::report {

std::string number_runs(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += end == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end]);
    i = end + 1;
  }
  return text;
}

std::string shape_text(const ir::Shape& shape) {
  return shape.rank() == 0 ? "scalar" : fmt::format("{}", fmt::join(shape.dims(), "x"));
}

ops::GoogleStatus google_status(const partition::Assessment& assessment, const partition::Partition& partition,
                                std::int32_t op) {
  const auto i = static_cast<std::size_t>(op);
  switch (partition.ops[i].place) {
    case partition::Place::kChip:
      return ops::GoogleStatus::kMapped;
    case partition::Place::kRule:
      return assessment.ops[i].google_status();
    default:
      return ops::GoogleStatus::kSeveralSubgraphs;
  }
}

std::string quantizing_advice() {
  return "Quantize all of it to 8 bits, with a few hundred typical inputs: `reef quantize MODEL --data SAMPLES -o "
         "OUT.tflite`, or in one step `reef compile MODEL --data SAMPLES`. SAMPLES is a folder of pictures, an .npz or "
         "an .npy file (docs/quantize.md). TensorFlow's converter and Google's ai-edge-quantizer make such files too.";
}

std::string time_text(double us) {
  if (std::abs(us) < 0.5) us = 0;  // no "-0"
  if (std::abs(us) < 100) return fmt::format("{:.0f} us", us);
  return std::abs(us) < 10000 ? fmt::format("{:.2f} ms", us / 1000) : fmt::format("{:.1f} ms", us / 1000);
}

}  // namespace reef::report
