// SPDX-License-Identifier: Apache-2.0
#include "quantize/calibration_checks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/describe.h"

namespace reef::quantize {
namespace {

constexpr std::int64_t kEnoughSamples = 32;  // below, tails of the values are hardly seen
constexpr double kPixelRange = 64;           // inputs of a normalized network do not reach this
constexpr double kDeadShare = 0.5;           // share of computed tensors that never change

Status check_numbers(const ir::Subgraph& graph, const Calibration& calibration) {
  for (const std::int32_t t : graph.inputs) {
    const TensorStatistics& seen = calibration.tensors[static_cast<std::size_t>(t)];
    REEF_REQUIRE(seen.not_finite == 0,
                 "the samples themselves are broken: {} of {} values of input '{}' are infinite or not numbers",
                 seen.not_finite, seen.values, ir::describe_name(graph.tensors[static_cast<std::size_t>(t)].name));
  }
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    for (const std::int32_t t : graph.operators[i].outputs) {
      if (t < 0) continue;
      const TensorStatistics& seen = calibration.tensors[static_cast<std::size_t>(t)];
      if (seen.not_finite == 0) continue;
      return invalid_input(
          "{} gives {} infinite or undefined values of {} on these samples, though the inputs are finite: the float "
          "model itself fails on them. Wrong preprocessing is the usual reason",
          ir::describe_op(graph, static_cast<std::int32_t>(i)), seen.not_finite, seen.values);
    }
  }
  return ok_status();
}

void check_inputs(const ir::Subgraph& graph, const Calibration& calibration, std::vector<std::string>& warnings) {
  for (const std::int32_t t : graph.inputs) {
    const ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(t)];
    const TensorStatistics& seen = calibration.tensors[static_cast<std::size_t>(t)];
    if (tensor.type != ir::DataType::kFloat32 || !seen.seen()) continue;
    const std::string name = ir::describe_name(tensor.name);
    if (seen.min == seen.max) {
      warnings.push_back(
          fmt::format("input '{}' is {} everywhere in all {} samples: nothing can be learned from constant inputs",
                      name, seen.min, seen.samples));
    } else if (seen.min >= 0 && seen.max > kPixelRange && tensor.shape.rank() == 4) {
      warnings.push_back(
          fmt::format("input '{}' ranges from {} to {}: these look like raw pixels. If the model was trained on "
                      "normalized ones, say how with --preprocess, or all ranges are wrong",
                      name, seen.min, seen.max));
    }
  }
}

}  // namespace

Status check_calibration(const ir::Model& model, const Calibration& calibration, std::vector<std::string>& warnings) {
  const ir::Subgraph& graph = model.subgraphs[0];
  REEF_RETURN_IF_ERROR(check_numbers(graph, calibration));
  if (calibration.samples < kEnoughSamples) {
    warnings.push_back(fmt::format(
        "only {} sample{} to calibrate with: ranges rest on very little; {} or more that are typical are better",
        calibration.samples, calibration.samples == 1 ? "" : "s", kEnoughSamples * 4));
  }
  if (calibration.repeated_samples > 0 && calibration.samples > 1) {
    warnings.push_back(fmt::format("{} of {} samples equal the sample before them, to the bit",
                                   calibration.repeated_samples, calibration.samples));
  }
  check_inputs(graph, calibration, warnings);
  std::int64_t computed = 0, constant = 0;
  for (const ir::Operator& op : graph.operators) {
    for (const std::int32_t t : op.outputs) {
      const TensorStatistics& seen = calibration.tensors[static_cast<std::size_t>(std::max(t, 0))];
      if (t < 0 || !seen.seen()) continue;
      ++computed;
      constant += seen.min == seen.max ? 1 : 0;
    }
  }
  if (computed > 0 && static_cast<double>(constant) > kDeadShare * static_cast<double>(computed)) {
    warnings.push_back(
        fmt::format("{} of {} computed tensors never change on these samples: the network is not alive "
                    "on them; wrong range or wrong data",
                    constant, computed));
  }
  return ok_status();
}

}  // namespace reef::quantize
