// SPDX-License-Identifier: Apache-2.0
#include "quantize/headroom.h"

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ir/uses.h"
#include "quantize/graph_constants.h"

namespace reef::quantize {
namespace {

// How far what few samples show goes beyond it: of n samples, another one is beyond all with a chance of 1 / (n + 1).
constexpr float kFewSamples = 8;
float beyond(float most, const TensorStatistics& seen) {
  return 1 + (most - 1) * std::min(1.0F, kFewSamples / static_cast<float>(seen.samples));
}

// Of a few samples, a variance may be a sixteenth of the smallest that was seen.
constexpr float kLargerFactor = 4;
// But the smallest factor that was seen keeps 255 / kMostTimesSmallest = 21 steps: it is rounded by 2.4 % at most, by
// 1.4 % on average, which is the error of 8-bit values that fill their range (some 37 dB).
constexpr float kMostTimesSmallest = 12;

float step_of(const Range& range) { return (range.max - range.min) / 255; }

// A variance that becomes 0 in 8 bits lies somewhere below half a step: its factor is that of a quarter, whatever it
// was in float. A range that went on to the largest of those would give all other tokens fewer steps.
constexpr float kVarianceOfZero = 0.25F;

// The variance of what is normalized already, if roughly (recover/normalize_twice.cpp): its factor was rounded to 8
// bits, by 10 % and more where factors span much.
constexpr float kRoundedAgain = 1.25F;

// MEAN(a * a) of a product a with a RSQRT, or the sum of it and a constant.
bool is_of_normalized(const ir::Subgraph& graph, const ir::Uses& uses, const ir::Operator& op) {
  const auto maker = [&](std::int32_t t) {
    const std::int32_t number = t < 0 ? -1 : uses.producer(t);
    return number < 0 ? nullptr : &graph.operators[at(number)];
  };
  const ir::Operator* mean = op.type == Op::ADD ? maker(op.inputs[0]) : &op;
  if (mean == nullptr || mean->type != Op::MEAN) return false;
  const ir::Operator* square = maker(mean->inputs[0]);
  if (square == nullptr || square->type != Op::MUL || square->inputs[0] != square->inputs[1]) return false;
  const ir::Operator* product = maker(square->inputs[0]);
  if (product == nullptr || product->type != Op::MUL) return false;
  return std::any_of(product->inputs.begin(), product->inputs.end(), [&](std::int32_t t) {
    const ir::Operator* factor = maker(t);
    return factor != nullptr && factor->type == Op::RSQRT;
  });
}

Range for_factors(const Range& range, const TensorStatistics& seen, const Range& variance) {
  if (!(seen.min > 0)) return range;
  const float of_zero = 1 / std::sqrt(kVarianceOfZero * step_of(variance));
  const float observed = step_of(variance) > 0 ? std::min(range.max, of_zero) : range.max;
  const float wanted = std::min(beyond(kLargerFactor, seen) * observed, kMostTimesSmallest * seen.min);
  return {range.min, std::max(observed, wanted)};
}

// A constant divided by a tensor: a divisor of less than so many steps is rounded by more than 6 %, and one token that
// nothing attends to (a sum of zeros and a guard of 1e-5) has a quotient beside which all others are 0.
constexpr float kStepsOfDivisor = 8;

Range for_quotients(const Range& range, float numerator, const Range& divisor) {
  if (divisor.min < 0 || !(step_of(divisor) > 0)) return range;
  const float most = std::abs(numerator) / (kStepsOfDivisor * step_of(divisor));
  return {std::max(range.min, -most), std::min(range.max, most)};
}

// Of a few samples, a mean may be twice the largest that was seen, with either sign.
constexpr float kLargerMean = 2;
// But its steps are no longer than half of those of what it is subtracted from, so that it adds a quarter of the noise
// that is there already.
constexpr float kShareOfOperand = 0.5F;

Range for_means(const Range& mean, const TensorStatistics& seen, const Range& operand) {
  const float most = kShareOfOperand * (operand.max - operand.min) / 2;
  const float wanted = std::min(beyond(kLargerMean, seen) * std::max(mean.max, -mean.min), most);
  return {std::min(mean.min, -wanted), std::max(mean.max, wanted)};
}

bool is_subtracted(const ir::Subgraph& graph, const ir::Uses& uses, const ir::Operator& mean) {
  const auto readers = uses.consumers(mean.outputs[0]);
  return std::any_of(readers.begin(), readers.end(), [&](std::int32_t reader) {
    const ir::Operator& op = graph.operators[at(reader)];
    return (op.type == Op::SUB || op.type == Op::SQUARED_DIFFERENCE) && op.inputs[0] == mean.inputs[0];
  });
}

}  // namespace

void leave_headroom(const ir::Model& model, const Calibration& calibration, std::vector<Range>& ranges) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses uses(model);
  for (const ir::Operator& op : graph.operators) {
    const auto result = static_cast<std::size_t>(op.outputs[0]);
    const TensorStatistics& seen = calibration.tensors[result];
    if (!seen.seen()) continue;
    Range& range = ranges[result];
    if (op.type == Op::RSQRT) {
      range = for_factors(range, seen, ranges[at(op.inputs[0])]);
    } else if (op.type == Op::MEAN && is_subtracted(graph, uses, op)) {
      range = for_means(range, seen, ranges[at(op.inputs[0])]);
    } else if (is_of_normalized(graph, uses, op)) {
      range.max *= kRoundedAgain;
    } else if (op.type == Op::DIV) {
      const ir::Tensor& numerator = graph.tensors[at(op.inputs[0])];
      if (!is_float_constant(model, numerator) || numerator.shape.elements() != 1) continue;
      range = for_quotients(range, float_values(model, numerator)[0], ranges[at(op.inputs[1])]);
    }
  }
}

}  // namespace reef::quantize
