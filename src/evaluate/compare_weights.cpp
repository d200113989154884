// SPDX-License-Identifier: Apache-2.0
#include "evaluate/compare_weights.h"
#include "ir/op.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace reef::evaluate {
namespace {

// Dimension of the weights that is the output channel; -1: the operator has no weights.
int channel_dimension(const ir::Operator& op) {
  if (op.type == Op::CONV_2D || op.type == Op::FULLY_CONNECTED || op.type == Op::TRANSPOSE_CONV) return 0;
  if (op.type == Op::DEPTHWISE_CONV_2D) return 3;
  return -1;
}

std::vector<double> floats_of(const ir::Model& model, const ir::Tensor& tensor) {
  const Bytes& data = ir::constant_data(model, tensor);
  std::vector<double> values(data.size() / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    float value = 0;
    std::memcpy(&value, data.data() + i * sizeof(float), sizeof(float));
    values[i] = value;
  }
  return values;
}

std::vector<double> multiplied_out(const ir::Model& model, const ir::Tensor& tensor) {
  const Bytes& data = ir::constant_data(model, tensor);
  const ir::Quantization& q = tensor.quantization;
  std::vector<double> values(data.size());
  const auto inner = static_cast<std::size_t>(std::max<std::int64_t>(
      1, q.is_per_axis() ? tensor.shape.product(q.dimension + 1, tensor.shape.rank()) : tensor.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t channel = q.is_per_axis() ? i / inner % q.scale.size() : 0;
    const double code = tensor.type == ir::DataType::kInt8 ? static_cast<std::int8_t>(data.data()[i]) : data.data()[i];
    const double zero =
        q.zero_point.empty() ? 0 : static_cast<double>(q.zero_point[std::min(channel, q.zero_point.size() - 1)]);
    values[i] = (code - zero) * q.scale[channel];
  }
  return values;
}

double channel_ratio(const std::vector<double>& values, const ir::Shape& shape, int dimension) {
  const auto inner = static_cast<std::size_t>(shape.product(dimension + 1, shape.rank()));
  const auto channels = static_cast<std::size_t>(shape[dimension]);
  std::vector<double> largest(channels, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double& most = largest[i / inner % channels];
    most = std::max(most, std::abs(values[i]));
  }
  double high = 0, low = std::numeric_limits<double>::infinity();
  for (const double value : largest) {
    if (value == 0) continue;  // a channel without weights constrains nothing
    high = std::max(high, value);
    low = std::min(low, value);
  }
  return high > 0 ? high / low : 1;
}

// Factors for each index of a dimension that bring `right` closest to `codes`.
std::vector<double> fitted_gains(const std::vector<double>& codes, const std::vector<double>& right,
                                 const ir::Shape& shape, int dimension) {
  const auto inner = static_cast<std::size_t>(shape.product(dimension + 1, shape.rank()));
  const auto count = static_cast<std::size_t>(shape[dimension]);
  std::vector<double> product(count, 0), square(count, 0);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t at = i / inner % count;
    product[at] += codes[i] * right[i];
    square[at] += right[i] * right[i];
  }
  for (std::size_t c = 0; c < count; ++c) product[c] = square[c] > 0 ? product[c] / square[c] : 1;
  return product;
}

// Equalization moves factors between a layer's output channels and the next one's input channels: are these the float
// model's weights but for such factors?
void fit_channels(const std::vector<double>& codes, std::vector<double> right, const ir::Shape& shape, int outputs,
                  WeightsReport& report) {
  const int inputs = shape.rank() - 1;
  std::vector<std::vector<double>> gains(2);
  for (int round = 0; round < 3; ++round) {
    for (int side = 0; side < (inputs == outputs ? 1 : 2); ++side) {
      const int dimension = side == 0 ? outputs : inputs;
      const std::vector<double> fitted = fitted_gains(codes, right, shape, dimension);
      std::vector<double>& all = gains[reef::at(side)];
      all.resize(fitted.size(), 1);
      const auto inner = static_cast<std::size_t>(shape.product(dimension + 1, shape.rank()));
      for (std::size_t c = 0; c < fitted.size(); ++c) all[c] *= fitted[c];
      for (std::size_t i = 0; i < right.size(); ++i) right[i] *= fitted[i / inner % fitted.size()];
    }
  }
  ErrorSums error;
  for (std::size_t i = 0; i < codes.size(); ++i) error.add(codes[i], right[i]);
  report.rescaled_sqnr_db = error.sqnr_db();
  for (const std::vector<double>& side : gains) {
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const double gain : side) {
      low = std::min(low, std::abs(gain));
      high = std::max(high, std::abs(gain));
    }
    if (low > 0 && high > 0) report.rescaling = std::max(report.rescaling, high / low);
  }
}

}  // namespace

std::optional<WeightsReport> compare_weights(const ir::Model& float_model, const ir::Model& quantized,
                                             const TensorMatch& match, std::int32_t op, std::int32_t original) {
  const ir::Subgraph& graph = quantized.subgraphs[0];
  const ir::Operator& mine = graph.operators[reef::at(op)];
  const std::int32_t producer = match.uses.producer(original);
  const int dimension = channel_dimension(mine);
  if (dimension < 0 || producer < 0 || mine.inputs.size() < 2 || mine.inputs[1] < 0) return std::nullopt;
  const ir::Operator& theirs = float_model.subgraphs[0].operators[reef::at(producer)];
  if (theirs.type != mine.type || theirs.inputs.size() < 2 || theirs.inputs[1] < 0) return std::nullopt;
  const ir::Tensor& a = graph.tensors[reef::at(mine.inputs[1])];
  const ir::Tensor& b = float_model.subgraphs[0].tensors[reef::at(theirs.inputs[1])];
  if (!ir::is_integer_8(a.type) || a.quantization.scale.empty() || b.type != ir::DataType::kFloat32 ||
      !(a.shape == b.shape) || a.shape.rank() <= dimension)
    return std::nullopt;
  const std::vector<double> codes = multiplied_out(quantized, a), right = floats_of(float_model, b);
  if (codes.empty() || codes.size() != right.size()) return std::nullopt;
  ErrorSums error;
  double product = 0, square = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    error.add(codes[i], right[i]);
    product += codes[i] * right[i];
    square += right[i] * right[i];
  }
  WeightsReport report;
  report.sqnr_db = error.sqnr_db();
  report.gain = square > 0 ? product / square : 1;
  report.channel_ratio = channel_ratio(right, b.shape, dimension);
  report.is_per_channel = a.quantization.is_per_axis();
  fit_channels(codes, right, b.shape, dimension, report);
  return report;
}

}  // namespace reef::evaluate
