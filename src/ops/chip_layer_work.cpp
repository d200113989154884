// SPDX-License-Identifier: Apache-2.0
#include "ops/chip_layer_work.h"

#include <string_view>

#include "formats/darwinn/parameters/layer_parameters.h"
#include "formats/darwinn/parameters/loop_order.h"
#include "ops/chip_maps.h"

namespace reef::ops {
namespace {

using darwinn::LayerKind;
using darwinn::LayerShape;

constexpr Rows kConvolutionRows = {41, 17}, kDepthwiseRows = {107, 57}, kStridedDepthwiseRows = {71, 37};
// Where a convolution's sums are longer than its results take to be stored, each costs so much more.
constexpr double kCyclesPerLongSum = 4;

bool any_nonzero(const Tensor& tensor) {
  return std::any_of(tensor.data, tensor.data + tensor.bytes, [](std::byte b) { return b != std::byte{0}; });
}

// The arrays that Google's compiler stores with a layer's weights (formats/darwinn/parameters/from_operator.h).
darwinn::Presence presence_of(const Tensor& weights, const Tensor* bias) {
  const std::vector<float>& scales = weights.quantization->scale;
  darwinn::Presence presence;
  presence.multipliers = std::any_of(scales.begin(), scales.end(), [&](float s) { return s != scales[0]; });
  presence.zero_points = scales.size() > 1;
  presence.biases = bias != nullptr && bias->data != nullptr && any_nonzero(*bias);
  return presence;
}

struct ChipLayerWorkLayer {
  LayerShape shape;
  darwinn::Presence presence;
  std::int64_t bytes = 0;      // of its chunk
  std::int64_t sum_steps = 0;  // of a result
  std::int64_t groups = 1;     // of output channels that are computed together
  std::int64_t cells = 1;
  std::int64_t group_lines() const { return presence.arrays() + sum_steps; }
  std::int64_t lines() const { return groups * group_lines(); }
};

ChipLayerWorkLayer chip_layer_work_layer_of(const OpContext& ctx, const LayerShape& shape, int weights_index,
                                            int bias_index) {
  const Tensor& weights = ctx.input(weights_index);
  const Tensor* bias = ctx.has_input(bias_index) ? &ctx.input(bias_index) : nullptr;
  ChipLayerWorkLayer layer = {shape, presence_of(weights, bias)};
  const auto size = darwinn::packed_size(shape, layer.presence);
  layer.bytes = size.ok() ? static_cast<std::int64_t>(*size) : static_cast<std::int64_t>(weights.bytes);
  layer.cells = std::clamp<std::int64_t>(darwinn::cells_per_line(shape), chip::kLanesPerCell, chip::kCells);
  const bool is_depthwise = shape.kind == LayerKind::kDepthwise;
  layer.groups = static_cast<std::int64_t>(divide_up(shape.output_channels, is_depthwise ? layer.cells : chip::kCells));
  const double words = is_depthwise ? 1 : divide_up(shape.input_channels, chip::kLanesPerCell);
  layer.sum_steps = static_cast<std::int64_t>(words) * shape.kernel_height * shape.kernel_width;
  return layer;
}

// A vector in, a vector out: 64 outputs a tile, whose weights stay there.
ChipWork vector_layer_work(const OpContext& ctx, const ChipLayerWorkLayer& layer, double vectors) {
  constexpr double kRowsOfLayer = 45, kRowsPerInput = 0.18, kMostInputs = 1900, kCyclesPerInput = 0.2;
  const double rounds = divide_up(layer.groups, chip::kTiles);
  const double inputs = layer.shape.input_channels;
  ChipWork work = work_of(ctx, vectors * rounds * static_cast<double>(layer.sum_steps),
                          vectors * (kVectorGap + kCyclesPerInput * inputs), {0, 0});
  work.instruction_bytes = row_bytes(kRowsOfLayer + kRowsPerInput * std::min(inputs, kMostInputs));
  work.parameter_bytes = layer.bytes;
  work.parameter_lines = layer.lines();
  work.group_lines = layer.group_lines();
  work.stays_in_tiles = true;
  return work;
}

// `sum_share`: of the window's products that fall on one output pixel; 1, or less where the op enlarges the map.
ChipWork map_layer_work(const OpContext& ctx, const ChipLayerWorkLayer& layer, double sum_share) {
  const Maps out = maps_of(ctx.output(0));
  const double steps = static_cast<double>(layer.sum_steps) * sum_share;
  const double store = static_cast<double>(layer.cells) / chip::kLanesPerCell;
  const double per_result = steps > store ? steps + (steps > 16 ? kCyclesPerLongSum : 0) : store;
  ChipWork work =
      work_of(ctx, out.pixels_per_tile() * static_cast<double>(layer.groups) * per_result, 0, kConvolutionRows);
  work.move_cycles = (kConvolutionGap + ring_cycles(static_cast<double>(layer.bytes))) * work.passes;
  work.parameter_bytes = layer.bytes;
  work.parameter_lines = layer.lines();
  work.group_lines = layer.group_lines();
  // Either all lines of a group twice, or a block twice and the partial sums of all pixels (loop_order.h).
  const std::int64_t block = std::int64_t{darwinn::partial_sum_block_words(layer.shape)} * layer.shape.kernel_height *
                             layer.shape.kernel_width;
  work.scratch_lines = std::min(2 * layer.sum_steps, static_cast<std::int64_t>(out.pixels_per_tile()) + 2 * block);
  return work;
}

}  // namespace

ChipWork conv_work(const OpContext& ctx) {
  const Shape& w = ctx.input(1).shape;
  if (w.rank() != 4 || ctx.output(0).shape.rank() != 4) return copy_work(ctx);
  const LayerShape shape = {LayerKind::kConvolution, w[1], w[2], w[3], w[0]};
  if (!darwinn::validate(shape).ok()) return copy_work(ctx);
  const ChipLayerWorkLayer layer = chip_layer_work_layer_of(ctx, shape, 1, 2);
  const Maps in = maps_of(ctx.input(0));
  if (in.is_vector()) return vector_layer_work(ctx, layer, static_cast<double>(in.batch));
  return map_layer_work(ctx, layer, 1);
}

// BATCH_MATMUL of two computed tensors: a matrix of the second operand comes over the ring to the tiles that have rows
// of it, becomes lines there, and multiplies rows of the first. Figures of Reef's own code on the virtual device.
ChipWork matrix_product_work(const OpContext& ctx) {
  constexpr double kCyclesPerRing = 350;  // of a step that copies
  const Shape &x = ctx.input(0).shape, &out = ctx.output(0).shape;
  if (x.rank() < 2 || out.rank() < 2) return copy_work(ctx);
  const double depth_words = divide_up(x.last(ctx.attributes().get_bool("adj_x") ? 1 : 0), chip::kLanesPerCell);
  const double groups = divide_up(out.last(), chip::kCells);
  const auto matrices = out.product(0, out.rank() - 2);
  const double pixels = divide_up(matrices * out.last(1), chip::kTiles);
  const double store = std::min(divide_up(out.last(), chip::kLanesPerCell), double{chip::kCells / chip::kLanesPerCell});
  const double lines = depth_words * groups * divide_up(matrices, chip::kTileRows);
  const double cycles_per_line = chip::kCells / chip::kMoverWordsPerCycle;
  const double multiply = pixels * groups * std::max(depth_words, store);
  const double moved = kCyclesPerRing + ring_cycles(static_cast<double>(ctx.input(1).elements()));
  ChipWork work = work_of(ctx, multiply, moved + lines * cycles_per_line, {150, 40});
  work.scratch_lines = static_cast<std::int64_t>(2 * depth_words * groups);
  return work;
}

// Enlarges the map: of the window's products, every stride-th falls on a pixel. No file shows one; assumed.
ChipWork transpose_conv_work(const OpContext& ctx) {
  const Shape& w = ctx.input(1).shape;
  if (w.rank() != 4 || ctx.output(0).shape.rank() != 4) return copy_work(ctx);
  const LayerShape shape = {LayerKind::kConvolution, w[1], w[2], w[3], w[0]};
  if (!darwinn::validate(shape).ok()) return copy_work(ctx);
  const auto stride = [&](std::string_view name, std::int32_t window) {
    return static_cast<double>(std::clamp<std::int64_t>(ctx.attributes().get_int(name, 1), 1, window));
  };
  return map_layer_work(ctx, chip_layer_work_layer_of(ctx, shape, 1, 3),
                        1 / (stride("stride_h", w[1]) * stride("stride_w", w[2])));
}

ChipWork depthwise_work(const OpContext& ctx) {
  const Shape& w = ctx.input(1).shape;
  if (w.rank() != 4 || ctx.output(0).shape.rank() != 4) return copy_work(ctx);
  const bool has_one_input = maps_of(ctx.input(0)).channels == 1;  // stored and computed as an ordinary convolution
  const LayerShape shape = has_one_input ? LayerShape{LayerKind::kConvolution, w[1], w[2], 1, w[3]}
                                         : LayerShape{LayerKind::kDepthwise, w[1], w[2], w[3], w[3]};
  if (!darwinn::validate(shape).ok()) return copy_work(ctx);
  const ChipLayerWorkLayer layer = chip_layer_work_layer_of(ctx, shape, 1, 2);
  if (has_one_input) return map_layer_work(ctx, layer, 1);
  const bool is_strided = ctx.attributes().get_int("stride_h", 1) > 1;
  const Maps out = maps_of(ctx.output(0));
  const double bytes = static_cast<double>(layer.bytes);
  ChipWork work = work_of(ctx, out.pixels_per_tile() * static_cast<double>(layer.sum_steps) * out.words(), 0,
                          is_strided ? kStridedDepthwiseRows : kDepthwiseRows);
  // The weights come back from the ring through the scalar core, in smaller pieces and slowly; computing hides that
  // unless there are few pixels.
  const double loop_back = bytes / chip::kLoopBackBytesPerCycle - work.tensor_cycles;
  work.move_cycles = (kDepthwiseGap + std::max(ring_cycles(bytes), loop_back)) * work.passes;
  work.parameter_bytes = layer.bytes;
  work.parameter_lines = static_cast<std::int64_t>(divide_up(layer.bytes, chip::kWideLineBytes));
  return work;
}

ChipWork fully_connected_work(const OpContext& ctx) {
  const Shape& w = ctx.input(1).shape;
  if (w.rank() != 2) return copy_work(ctx);
  const LayerShape shape = {LayerKind::kFullyConnected, 1, 1, w[1], w[0]};
  if (!darwinn::validate(shape).ok()) return copy_work(ctx);
  const double vectors = static_cast<double>(ctx.output(0).elements()) / w[0];
  return vector_layer_work(ctx, chip_layer_work_layer_of(ctx, shape, 1, 2), vectors);
}

// Four gates for every time step, one after the other. From one file (28 steps of 28 inputs and 20 cells).
ChipWork lstm_work(const OpContext& ctx) {
  constexpr double kCyclesOfStep = 700, kCyclesPerInput = 3, kRowsOfLstm = 3000;
  const Maps in = maps_of(ctx.input(0));
  const Maps out = maps_of(ctx.output(0));
  const double steps = std::max(in.pixels(), 1.0);
  const double inputs = static_cast<double>(in.channels + out.channels);
  ChipWork work = work_of(ctx, 0, steps * (kCyclesOfStep + kCyclesPerInput * inputs), {0, 0});
  work.instruction_bytes = row_bytes(kRowsOfLstm);
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i) && ctx.input(i).is_constant)
      work.parameter_bytes += static_cast<std::int64_t>(ctx.input(i).bytes);
  }
  // Padded to 64 cells, and with the matrices that bring time steps into place.
  work.parameter_bytes *= 3;
  work.parameter_lines = work.parameter_bytes / chip::kWideLineBytes * 2;
  return work;
}

}  // namespace reef::ops
