// SPDX-License-Identifier: Apache-2.0
#include "quantize/calibration_checks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/describe.h"
#include "quantize/graph_constants.h"
#include "quantize/scale_limits.h"

namespace reef::quantize {
namespace {

constexpr std::int64_t kEnoughSamples = 32;  // below, tails of the values are hardly seen
constexpr double kPixelRange = 64;           // inputs of a normalized network do not reach this
constexpr double kDeadShare = 0.5;           // share of computed tensors that never change

// Infinities that the model has as constants, the filling of a mask, are no failure where they are passed on.
bool reads_infinities(const ir::Model& model, const Calibration& calibration, const ir::Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t t) {
    if (t < 0) return false;
    const ir::Tensor& tensor = model.subgraphs[0].tensors[at(t)];
    if (!is_float_constant(model, tensor)) return calibration.tensors[at(t)].infinite > 0;
    const std::vector<float> values = float_values(model, tensor);
    return std::any_of(values.begin(), values.end(), [](float v) { return std::isinf(v); });
  });
}

Status check_numbers(const ir::Model& model, const Calibration& calibration) {
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const std::int32_t t : graph.inputs) {
    const TensorStatistics& seen = calibration.tensors[at(t)];
    REEF_REQUIRE(seen.not_finite == 0,
                 "the samples themselves are broken: {} of {} values of input '{}' are infinite or not numbers",
                 seen.not_finite, seen.values, ir::describe_name(graph.tensors[at(t)].name));
  }
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    for (const std::int32_t t : graph.operators[i].outputs) {
      if (t < 0) continue;
      const TensorStatistics& seen = calibration.tensors[at(t)];
      const bool is_mask = seen.not_finite == seen.infinite && reads_infinities(model, calibration, graph.operators[i]);
      if (seen.not_finite == 0 || is_mask) continue;
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
    const ir::Tensor& tensor = graph.tensors[at(t)];
    const TensorStatistics& seen = calibration.tensors[at(t)];
    if (tensor.type != ir::DataType::kFloat32 || !seen.seen()) continue;
    const std::string name = ir::describe_name(tensor.name);
    if (seen.min == seen.max) {
      warnings.push_back(
          fmt::format("input '{}' is {} everywhere in all {} samples: nothing can be learned from constant inputs",
                      name, seen.min, seen.samples));
    } else if (seen.min >= 0 && seen.max > kPixelRange && tensor.shape.rank() == 4) {
      warnings.push_back(
          fmt::format("input '{}' ranges from {} to {}: {}. If the model was trained on "
                      "normalized ones, say how with --preprocess, or all ranges are wrong",
                      name, seen.min, seen.max, kLooksLikePixels));
    }
  }
}

// Values that 8 bits cannot tell from zero: what a network gives that was made, but not trained.
void check_training(const ir::Subgraph& graph, const Calibration& calibration, std::vector<std::string>& warnings) {
  std::int64_t tiny = 0;
  std::string first;
  for (const ir::Operator& op : graph.operators) {
    for (const std::int32_t t : op.outputs) {
      const TensorStatistics& seen = calibration.tensors[at(std::max(t, 0))];
      if (t < 0 || !seen.seen() || graph.tensors[at(t)].type != ir::DataType::kFloat32) continue;
      const double size = std::max(std::abs(static_cast<double>(seen.min)), std::abs(static_cast<double>(seen.max)));
      if (!(size > 0) || size >= 255 * kSmallestActivationScale) continue;
      if (tiny++ == 0) first = ir::describe_name(graph.tensors[at(t)].name);
    }
  }
  if (tiny == 0) return;
  warnings.push_back(
      fmt::format("the weights look untrained: {} tensor{} from '{}' on hold{} no number above {:.2g} in size on these "
                  "samples. Such tensors get a step of {:g}, at which they may be 0 throughout; the result shows "
                  "what maps to the Edge TPU, not how accurate a trained network will be",
                  tiny, tiny == 1 ? "" : "s", first, tiny == 1 ? "s" : "", 255 * kSmallestActivationScale,
                  kSmallestActivationScale));
}

}  // namespace

Status check_calibration(const ir::Model& model, const Calibration& calibration, std::vector<std::string>& warnings) {
  const ir::Subgraph& graph = model.subgraphs[0];
  REEF_RETURN_IF_ERROR(check_numbers(model, calibration));
  check_training(graph, calibration, warnings);
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
      const TensorStatistics& seen = calibration.tensors[at(std::max(t, 0))];
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
