// SPDX-License-Identifier: Apache-2.0
#include "data/scaling_in_model.h"

#include <cmath>
#include <string_view>
#include <vector>

#include "base/at.h"
#include "ir/constants.h"
#include "ir/op.h"
#include "ir/uses.h"
#include "numeric/half.h"

namespace reef::data {
namespace {

constexpr std::size_t kMostChannels = 4;
constexpr int kMostSteps = 16;  // operators followed: preprocessing is short

bool moves_or_converts(std::string_view type) {
  return type == Op::CAST || type == Op::TRANSPOSE || type == Op::RESHAPE || type == Op::PAD || type == Op::PADV2 ||
         type == Op::MIRROR_PAD || type == Op::RESIZE_BILINEAR || type == Op::RESIZE_NEAREST_NEIGHBOR ||
         type == Op::EXPAND_DIMS;
}

// The first value of a constant with one value or one for each channel. Files with float16 weights keep constants
// behind a DEQUANTIZE.
std::optional<double> constant(const ir::Model& model, const ir::Uses& uses, std::int32_t t) {
  if (t < 0) return std::nullopt;
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Tensor& tensor = graph.tensors[at(t)];
  if (ir::is_float_constant(model, tensor)) {
    const std::vector<float> values = ir::float_values(model, tensor);
    return values.empty() || values.size() > kMostChannels ? std::nullopt : std::optional<double>(values[0]);
  }
  const std::int32_t producer = uses.producer(t);
  if (producer < 0) return std::nullopt;
  const ir::Operator& op = graph.operators[at(producer)];
  if (op.type != Op::DEQUANTIZE || op.inputs.size() != 1 || op.inputs[0] < 0) return std::nullopt;
  const ir::Tensor& stored = graph.tensors[at(op.inputs[0])];
  if (stored.type != ir::DataType::kFloat16) return std::nullopt;
  const auto halves = ir::int_values<std::uint16_t>(model, stored);
  if (halves.empty() || halves.size() > kMostChannels) return std::nullopt;
  return numeric::half_to_float(halves[0]);
}

// value = pixel * factor + offset
struct Scaling {
  double factor = 1, offset = 0;
  bool is_any = false;
};

// Adds the operator's part; false: it is none that scales.
bool apply(const ir::Model& model, const ir::Uses& uses, const ir::Operator& op, std::int32_t from, Scaling& scaling) {
  if (op.inputs.size() != 2) return false;
  const bool is_first = op.inputs[0] == from;
  const auto by = constant(model, uses, op.inputs[is_first ? 1 : 0]);
  if (!by || !std::isfinite(*by)) return false;
  if (op.type == Op::ADD) {
    scaling.offset += *by;
  } else if (op.type == Op::SUB && is_first) {
    scaling.offset -= *by;
  } else if ((op.type == Op::MUL || (op.type == Op::DIV && is_first)) && *by != 0) {
    const double factor = op.type == Op::MUL ? *by : 1 / *by;
    scaling.factor *= factor;
    scaling.offset *= factor;
  } else {
    return false;
  }
  scaling.is_any = true;
  return true;
}

}  // namespace

std::optional<ExpectedPixels> pixels_expected(const ir::Model& model, int index) {
  if (model.subgraphs.empty() || index < 0) return std::nullopt;
  const ir::Subgraph& graph = model.subgraphs[0];
  if (static_cast<std::size_t>(index) >= graph.inputs.size()) return std::nullopt;
  const ir::Uses uses(model);
  Scaling scaling;
  std::int32_t tensor = graph.inputs[at(index)];
  for (int step = 0; step < kMostSteps; ++step) {
    const std::int32_t reader = uses.only_consumer(tensor);
    if (reader < 0) break;
    const ir::Operator& op = graph.operators[at(reader)];
    if (op.outputs.size() != 1) break;
    const bool is_moved = moves_or_converts(op.type) && !op.inputs.empty() && op.inputs[0] == tensor;
    if (!is_moved && !apply(model, uses, op, tensor, scaling)) break;
    tensor = op.outputs[0];
  }
  if (!scaling.is_any) return std::nullopt;
  // Networks compute with numbers around 1: a range 0.8 to 12 wide is what 0 to 255 became, or 0 to 1.
  constexpr double kLeastWidth = 0.8, kMostWidth = 12, kLeastWidening = 1.5, kMostWidening = 300;
  const double width_of_bytes = 255 * std::abs(scaling.factor);
  if (width_of_bytes >= kLeastWidth && width_of_bytes <= kMostWidth) return ExpectedPixels::kBytes;
  // Caffe's networks subtract the mean colour and scale nothing.
  if (scaling.factor == 1 && scaling.offset < -90 && scaling.offset > -140) return ExpectedPixels::kBytes;
  const double widening = std::abs(scaling.factor);
  if (widening >= kLeastWidening && widening <= kMostWidening) return ExpectedPixels::kUnit;
  return std::nullopt;
}

}  // namespace reef::data
