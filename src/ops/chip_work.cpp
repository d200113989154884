// SPDX-License-Identifier: Apache-2.0
#include "ops/chip_work.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "chip/machine.h"
#include "formats/darwinn/parameters/layer_parameters.h"

namespace reef::ops {
namespace {

using darwinn::LayerKind;
using darwinn::LayerShape;

constexpr double kLayerCycles = 600;  // between one op's last step and the next one's first
constexpr std::int64_t kLayerInstructionBytes = 2200;

double divide_up(std::int64_t value, std::int64_t by) { return static_cast<double>((value + by - 1) / by); }

// A tensor as maps: the three innermost dimensions, the outer ones multiplied.
struct Maps {
  std::int64_t batch = 1, height = 1, width = 1, channels = 1;
};
bool is_known(const Tensor& tensor) { return tensor.shape.is_usable(); }
Maps maps_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  const int rank = shape.rank();
  Maps maps;
  if (rank > 0) maps.channels = shape.last(0);
  if (rank > 1) maps.width = shape.last(1);
  if (rank > 2) maps.height = shape.last(2);
  if (rank > 3) maps.batch = shape.product(0, rank - 3);
  return maps;
}

// Output pixels of the tile that has most of them.
double pixels_per_tile(const Maps& maps) {
  return static_cast<double>(maps.batch) * divide_up(maps.height, chip::kTileRows) *
         divide_up(maps.width, chip::kTileColumns);
}

double bytes_of(const Tensor& tensor) {
  const auto bytes = ir::byte_size(tensor.shape, tensor.type);
  return bytes ? static_cast<double>(*bytes) : 0;
}

bool any_nonzero(const Tensor& tensor) {
  return std::any_of(tensor.data, tensor.data + tensor.bytes, [](std::byte b) { return b != std::byte{0}; });
}

// The arrays that Google's compiler stores with a layer's weights, as formats/darwinn/parameters/from_operator.h says.
darwinn::Presence presence_of(const Tensor& weights, const Tensor* bias) {
  darwinn::Presence presence;
  const std::vector<float>& scales = weights.quantization->scale;
  presence.multipliers = std::any_of(scales.begin(), scales.end(), [&](float s) { return s != scales[0]; });
  presence.zero_points = scales.size() > 1;
  presence.biases = bias != nullptr && bias->type == DataType::kInt32 && bias->data != nullptr && any_nonzero(*bias);
  return presence;
}

std::int64_t parameter_bytes_of(const LayerShape& shape, const Tensor& weights, const Tensor* bias) {
  const auto size = darwinn::packed_size(shape, presence_of(weights, bias));
  return size.ok() ? static_cast<std::int64_t>(*size) : static_cast<std::int64_t>(weights.bytes);
}

const Tensor* input_or_null(const OpContext& ctx, int index) {
  return ctx.has_input(index) ? &ctx.input(index) : nullptr;
}

ChipWork with_overhead(double tensor_cycles, double move_cycles, std::int64_t parameter_bytes) {
  return {tensor_cycles, move_cycles + kLayerCycles, parameter_bytes, kLayerInstructionBytes};
}

double ring_cycles(double bytes) { return bytes / chip::kRingBytesPerCycle; }

ChipWork copy_work(const OpContext& ctx) {
  double bytes = 0;
  for (int i = 0; i < ctx.output_count(); ++i) bytes += bytes_of(ctx.output(i));
  return with_overhead(0, ring_cycles(bytes), 0);
}

ChipWork conv_work(const OpContext& ctx) {
  const Tensor& weights = ctx.input(1);
  if (weights.shape.rank() != 4 || !is_known(weights)) return copy_work(ctx);
  const Shape& w = weights.shape;
  const Maps out = maps_of(ctx.output(0));
  const double steps =
      pixels_per_tile(out) * w[1] * w[2] * divide_up(w[3], chip::kLanesPerCell) * divide_up(w[0], chip::kCells);
  const std::int64_t bytes =
      parameter_bytes_of({LayerKind::kConvolution, w[1], w[2], w[3], w[0]}, weights, input_or_null(ctx, 2));
  return with_overhead(steps, ring_cycles(static_cast<double>(bytes)), bytes);
}

ChipWork depthwise_work(const OpContext& ctx) {
  const Tensor& weights = ctx.input(1);
  if (weights.shape.rank() != 4 || !is_known(weights)) return copy_work(ctx);
  const Shape& w = weights.shape;
  const Maps out = maps_of(ctx.output(0));
  const Maps in = maps_of(ctx.input(0));
  const bool is_plain = in.channels == 1;  // of one input channel: an ordinary convolution
  const double steps =
      pixels_per_tile(out) * w[1] * w[2] * divide_up(w[3], is_plain ? chip::kCells : chip::kLanesPerCell);
  const LayerShape shape = {is_plain ? LayerKind::kConvolution : LayerKind::kDepthwise, w[1], w[2], is_plain ? 1 : w[3],
                            w[3]};
  const std::int64_t bytes = parameter_bytes_of(shape, weights, input_or_null(ctx, 2));
  return with_overhead(steps, ring_cycles(static_cast<double>(bytes)), bytes);
}

ChipWork fully_connected_work(const OpContext& ctx) {
  const Tensor& weights = ctx.input(1);
  if (weights.shape.rank() != 2 || !is_known(weights)) return copy_work(ctx);
  const Shape& w = weights.shape;
  const double rows = w[0] > 0 ? static_cast<double>(ctx.output(0).elements()) / w[0] : 0;
  const double steps = rows * divide_up(w[1], chip::kLanesPerCell) * divide_up(w[0], chip::kCells * chip::kTiles);
  const std::int64_t bytes =
      parameter_bytes_of({LayerKind::kFullyConnected, 1, 1, w[1], w[0]}, weights, input_or_null(ctx, 2));
  return with_overhead(steps, ring_cycles(bytes_of(ctx.input(0)) + bytes_of(ctx.output(0))), bytes);
}

ChipWork transpose_conv_work(const OpContext& ctx) {
  const Tensor& weights = ctx.input(1);
  if (weights.shape.rank() != 4 || !is_known(weights)) return copy_work(ctx);
  const Shape& w = weights.shape;
  const Maps out = maps_of(ctx.output(0));
  const double strides = static_cast<double>(std::clamp<std::int64_t>(ctx.attributes().get_int("stride_h", 1), 1, 64) *
                                             std::clamp<std::int64_t>(ctx.attributes().get_int("stride_w", 1), 1, 64));
  const double steps = pixels_per_tile(out) * w[1] * w[2] / strides * divide_up(w[3], chip::kLanesPerCell) *
                       divide_up(w[0], chip::kCells);
  const std::int64_t bytes =
      parameter_bytes_of({LayerKind::kConvolution, w[1], w[2], w[3], w[0]}, weights, input_or_null(ctx, 3));
  return with_overhead(steps, ring_cycles(static_cast<double>(bytes)), bytes);
}

// One step per 4 results.
ChipWork elementwise_work(const OpContext& ctx) {
  const Maps out = maps_of(ctx.output(0));
  return with_overhead(pixels_per_tile(out) * divide_up(out.channels, chip::kLanesPerCell), 0, 0);
}

ChipWork pool_work(const OpContext& ctx) {
  const Maps out = maps_of(ctx.output(0));
  const Maps in = maps_of(ctx.input(0));
  const std::int64_t height = std::clamp<std::int64_t>(ctx.attributes().get_int("filter_height", 1), 1, in.height);
  const std::int64_t width = std::clamp<std::int64_t>(ctx.attributes().get_int("filter_width", 1), 1, in.width);
  return with_overhead(pixels_per_tile(out) * static_cast<double>(height) * static_cast<double>(width) *
                           divide_up(out.channels, chip::kLanesPerCell),
                       0, 0);
}

ChipWork reduce_work(const OpContext& ctx) {
  const Maps in = maps_of(ctx.input(0));
  return with_overhead(pixels_per_tile(in) * divide_up(in.channels, chip::kLanesPerCell),
                       ring_cycles(bytes_of(ctx.output(0)) * chip::kTiles), 0);
}

ChipWork softmax_work(const OpContext& ctx) {
  const double elements = static_cast<double>(ctx.output(0).elements());
  return with_overhead(elements, ring_cycles(elements * 8), 0);
}

ChipWork resize_work(const OpContext& ctx) {
  const Maps out = maps_of(ctx.output(0));
  return with_overhead(4 * pixels_per_tile(out) * divide_up(out.channels, chip::kLanesPerCell), 0, 0);
}

// Only the shape or the point of view changes.
ChipWork free_work(const OpContext&) { return {}; }

struct WorkOf {
  std::string_view op;
  ChipWork (*work)(const OpContext&);
};
constexpr auto kWork = std::to_array<WorkOf>({
    {"ADD", elementwise_work},
    {"AVERAGE_POOL_2D", pool_work},
    {"CONV_2D", conv_work},
    {"DEPTHWISE_CONV_2D", depthwise_work},
    {"DIV", elementwise_work},
    {"EXPAND_DIMS", free_work},
    {"FULLY_CONNECTED", fully_connected_work},
    {"HARD_SWISH", elementwise_work},
    {"LOGISTIC", elementwise_work},
    {"MAXIMUM", elementwise_work},
    {"MAX_POOL_2D", pool_work},
    {"MEAN", reduce_work},
    {"MINIMUM", elementwise_work},
    {"MUL", elementwise_work},
    {"PRELU", elementwise_work},
    {"QUANTIZE", elementwise_work},
    {"REDUCE_MAX", reduce_work},
    {"REDUCE_MIN", reduce_work},
    {"RELU", elementwise_work},
    {"RELU6", elementwise_work},
    {"RELU_N1_TO_1", elementwise_work},
    {"RESHAPE", free_work},
    {"RESIZE_BILINEAR", resize_work},
    {"RESIZE_NEAREST_NEIGHBOR", resize_work},
    {"RSQRT", elementwise_work},
    {"SOFTMAX", softmax_work},
    {"SQUARED_DIFFERENCE", elementwise_work},
    {"SQUEEZE", free_work},
    {"SUB", elementwise_work},
    {"SUM", reduce_work},
    {"TANH", elementwise_work},
    {"TRANSPOSE_CONV", transpose_conv_work},
});

}  // namespace

ChipWork chip_work(const OpContext& ctx) {
  if (ctx.output_count() == 0 || !ctx.has_input(0)) return {};
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (!is_known(ctx.output(i))) return {};
  }
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i) && !is_known(ctx.input(i))) return {};
  }
  for (const WorkOf& entry : kWork) {
    if (entry.op == ctx.op().type && !ctx.op().is_custom()) return entry.work(ctx);
  }
  return copy_work(ctx);
}

}  // namespace reef::ops
