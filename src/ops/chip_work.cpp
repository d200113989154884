// SPDX-License-Identifier: Apache-2.0
#include "ops/chip_work.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "chip/machine.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "formats/darwinn/parameters/loop_order.h"

namespace reef::ops {
namespace {

using darwinn::LayerKind;
using darwinn::LayerShape;

// Cycles between the last step of one op and the first of the next that nothing hides; medians over compiled files.
constexpr double kConvolutionGap = 260, kDepthwiseGap = 450, kVectorGap = 80, kElementGap = 10;
// Where a convolution's sums are longer than its results take to be stored, each costs so much more.
constexpr double kCyclesPerLongSum = 4;
// Instructions, in rows of 16 bytes: of an op on maps that split evenly over the tiles, and more for every further kind
// of tile (those with a row or a column less have instructions of their own). From compiled files.
struct Rows {
  double first, further;
};
constexpr Rows kConvolutionRows = {41, 17}, kDepthwiseRows = {107, 57}, kStridedDepthwiseRows = {71, 37},
               kElementRows = {89, 17}, kTableRows = {60, 17}, kPoolRows = {60, 50}, kCopyRows = {90, 30};

double divide_up(std::int64_t value, std::int64_t by) { return static_cast<double>((value + by - 1) / by); }
double ring_cycles(double bytes) { return bytes / chip::kRingBytesPerCycle; }
std::int64_t row_bytes(double rows) { return static_cast<std::int64_t>(rows) * chip::kInstructionRowBytes; }

// A tensor as maps: the three innermost dimensions, the outer ones multiplied.
struct Maps {
  std::int64_t batch = 1, height = 1, width = 1, channels = 1;
  bool is_vector() const { return height == 1 && width == 1; }
  double pixels() const {
    return static_cast<double>(batch) * static_cast<double>(height) * static_cast<double>(width);
  }
  // Of the tile that has most of them.
  double pixels_per_tile() const {
    return static_cast<double>(batch) * divide_up(height, chip::kTileRows) * divide_up(width, chip::kTileColumns);
  }
  // Groups of 4 channels of one pixel.
  double words() const { return divide_up(channels, chip::kLanesPerCell); }
  // Words that the busiest tile computes: vectors are cut into runs of 64 values.
  double words_per_tile() const {
    if (!is_vector()) return pixels_per_tile() * words();
    const double runs = divide_up(channels, chip::kCells) * static_cast<double>(batch);
    return std::max(1.0, divide_up(static_cast<std::int64_t>(runs), chip::kTiles)) *
           divide_up(std::min<std::int64_t>(channels, chip::kCells), chip::kLanesPerCell);
  }
  // Kinds of tiles, by the size of what they have.
  double tile_kinds() const {
    return (height % chip::kTileRows != 0 ? 2 : 1) * (width % chip::kTileColumns != 0 ? 2 : 1);
  }
};

bool is_known(const Tensor& tensor) { return tensor.shape.is_usable() && tensor.shape.checked_elements() != 0; }

// Beyond this, no formula here means anything.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

Maps maps_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  const int rank = shape.rank();
  Maps maps;
  if (rank > 0) maps.channels = shape.last(0);
  if (rank > 1) maps.width = shape.last(1);
  if (rank > 2) maps.height = shape.last(2);
  if (rank > 3) maps.batch = shape.product(0, rank - 3);
  if (rank == 2) std::swap(maps.batch, maps.width);  // rows of a matrix are vectors
  return maps;
}

double bytes_of(const Tensor& tensor) {
  const auto bytes = ir::byte_size(tensor.shape, tensor.type);
  return bytes ? static_cast<double>(*bytes) : 0;
}

// How often the maps must be cut for what an op reads and writes to fit into a tile's narrow memory.
int passes_of(const OpContext& ctx) {
  double bytes = 0;
  const auto add = [&](const Tensor& tensor) {
    const Maps maps = maps_of(tensor);
    if (!tensor.is_constant && !maps.is_vector())
      bytes += maps.pixels_per_tile() * maps.words() * chip::kNarrowWordBytes;
  };
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) add(ctx.input(i));
  }
  for (int i = 0; i < ctx.output_count(); ++i) add(ctx.output(i));
  return static_cast<int>(std::clamp(bytes / chip::kNarrowBytes + 1, 1.0, 64.0));
}

ChipWork work_of(const OpContext& ctx, double tensor_cycles, double move_cycles, Rows rows) {
  ChipWork work;
  work.tensor_cycles = tensor_cycles;
  work.move_cycles = move_cycles;
  work.passes = passes_of(ctx);
  const double kinds = maps_of(ctx.output(0)).tile_kinds();
  work.instruction_bytes = row_bytes((rows.first + (kinds - 1) * rows.further) * work.passes);
  return work;
}

// --- Layers with weights

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

struct Layer {
  LayerShape shape;
  darwinn::Presence presence;
  std::int64_t bytes = 0;      // of its chunk
  std::int64_t sum_steps = 0;  // of a result
  std::int64_t groups = 1;     // of output channels that are computed together
  std::int64_t cells = 1;
  std::int64_t group_lines() const { return presence.arrays() + sum_steps; }
  std::int64_t lines() const { return groups * group_lines(); }
};

Layer layer_of(const OpContext& ctx, const LayerShape& shape, int weights_index, int bias_index) {
  const Tensor& weights = ctx.input(weights_index);
  const Tensor* bias = ctx.has_input(bias_index) ? &ctx.input(bias_index) : nullptr;
  Layer layer = {shape, presence_of(weights, bias)};
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
ChipWork vector_layer_work(const OpContext& ctx, const Layer& layer, double vectors) {
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
ChipWork map_layer_work(const OpContext& ctx, const Layer& layer, double sum_share) {
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

ChipWork copy_work(const OpContext& ctx);

ChipWork conv_work(const OpContext& ctx) {
  const Shape& w = ctx.input(1).shape;
  if (w.rank() != 4 || ctx.output(0).shape.rank() != 4) return copy_work(ctx);
  const LayerShape shape = {LayerKind::kConvolution, w[1], w[2], w[3], w[0]};
  if (!darwinn::validate(shape).ok()) return copy_work(ctx);
  const Layer layer = layer_of(ctx, shape, 1, 2);
  const Maps in = maps_of(ctx.input(0));
  if (in.is_vector()) return vector_layer_work(ctx, layer, static_cast<double>(in.batch));
  return map_layer_work(ctx, layer, 1);
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
  return map_layer_work(ctx, layer_of(ctx, shape, 1, 3), 1 / (stride("stride_h", w[1]) * stride("stride_w", w[2])));
}

ChipWork depthwise_work(const OpContext& ctx) {
  const Shape& w = ctx.input(1).shape;
  if (w.rank() != 4 || ctx.output(0).shape.rank() != 4) return copy_work(ctx);
  const bool has_one_input = maps_of(ctx.input(0)).channels == 1;  // stored and computed as an ordinary convolution
  const LayerShape shape = has_one_input ? LayerShape{LayerKind::kConvolution, w[1], w[2], 1, w[3]}
                                         : LayerShape{LayerKind::kDepthwise, w[1], w[2], w[3], w[3]};
  if (!darwinn::validate(shape).ok()) return copy_work(ctx);
  const Layer layer = layer_of(ctx, shape, 1, 2);
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
  return vector_layer_work(ctx, layer_of(ctx, shape, 1, 2), vectors);
}

// Four gates for every time step, one after the other. From one file (28 steps of 28 inputs and 20 cells).
ChipWork lstm_work(const OpContext& ctx) {
  constexpr double kCyclesOfStep = 700, kCyclesPerInput = 3, kRowsOfLstm = 1500;
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

// --- Element by element

// `steps`: for 4 results.
ChipWork elements_work(const OpContext& ctx, double steps, Rows rows) {
  return work_of(ctx, steps * maps_of(ctx.output(0)).words_per_tile(), kElementGap, rows);
}

// Two computed operands take four steps; a constant per channel becomes a scale or bias, which is sent anew every time.
ChipWork binary_work(const OpContext& ctx) {
  for (int i = 0; i < std::min(ctx.input_count(), 2); ++i) {
    if (!ctx.has_input(i) || !ctx.input(i).is_constant) continue;
    constexpr std::int64_t kBytesOfWord = 64;
    ChipWork work = elements_work(ctx, 1, kElementRows);
    work.always_streamed_bytes = kBytesOfWord * static_cast<std::int64_t>(maps_of(ctx.output(0)).words());
    work.move_cycles += ring_cycles(static_cast<double>(work.always_streamed_bytes));
    return work;
  }
  return elements_work(ctx, 4, kElementRows);
}
// The difference, its positive part, and the sum: no file shows the time of one; assumed.
ChipWork maximum_work(const OpContext& ctx) { return elements_work(ctx, 9, {200, 50}); }
ChipWork prelu_work(const OpContext& ctx) { return elements_work(ctx, 6, {200, 50}); }
ChipWork table_work(const OpContext& ctx) { return elements_work(ctx, 1, kTableRows); }
ChipWork copy_work(const OpContext& ctx) {
  ChipWork work = elements_work(ctx, 0, kCopyRows);
  for (int i = 0; i < ctx.output_count(); ++i) work.tensor_cycles += maps_of(ctx.output(i)).words_per_tile();
  return work;
}

// --- Windows and sums

// From maps to the vectors that pools over whole maps work on: to the tiles by channels. Small maps go over the mesh,
// large ones over the ring, in small pieces; from five files.
double gather_cycles(const Maps& in) {
  constexpr double kSmallMap = 64, kMeshBytesPerCycle = 45, kRingBytesPerCycle = 6;
  const double bytes = in.pixels() * static_cast<double>(in.channels);
  return kVectorGap + bytes / (in.pixels() <= kSmallMap ? kMeshBytesPerCycle : kRingBytesPerCycle);
}

ChipWork whole_map_work(const OpContext& ctx) {
  constexpr double kRowsOfGather = 150, kRowsPerPixel = 20, kMostPixels = 49;
  const Maps in = maps_of(ctx.input(0));
  const double rounds = divide_up(static_cast<std::int64_t>(divide_up(in.channels, chip::kCells)), chip::kTiles);
  ChipWork work = work_of(ctx, in.pixels() * rounds, gather_cycles(in), {0, 0});
  work.instruction_bytes = row_bytes(kRowsOfGather + kRowsPerPixel * std::min(in.pixels(), kMostPixels));
  return work;
}

struct Window {
  double positions = 1;
};
Window window_of(const OpContext& ctx) {
  const Maps in = maps_of(ctx.input(0));
  const auto size = [&](std::string_view name, std::int64_t most) {
    return static_cast<double>(
        std::clamp<std::int64_t>(ctx.attributes().get_int(name, 1), 1, std::max<std::int64_t>(most, 1)));
  };
  return {size("filter_height", in.height) * size("filter_width", in.width)};
}

ChipWork average_pool_work(const OpContext& ctx) {
  const Maps out = maps_of(ctx.output(0));
  if (out.is_vector() && !maps_of(ctx.input(0)).is_vector()) return whole_map_work(ctx);
  const double store = std::min(out.words(), double{chip::kCells / chip::kLanesPerCell});
  const double steps = std::max(window_of(ctx).positions, store);
  return work_of(ctx, out.pixels_per_tile() * divide_up(out.channels, chip::kCells) * steps, kConvolutionGap,
                 kPoolRows);
}

// A step compares four positions for four channels: 2x2 windows of two files.
ChipWork max_pool_work(const OpContext& ctx) {
  const Maps out = maps_of(ctx.output(0));
  const double steps = out.pixels_per_tile() * out.words() * std::max(1.0, window_of(ctx).positions / 4);
  return work_of(ctx, steps, kVectorGap, kPoolRows);
}

ChipWork reduce_work(const OpContext& ctx) {
  if (maps_of(ctx.output(0)).is_vector()) return whole_map_work(ctx);
  const Maps in = maps_of(ctx.input(0));
  return work_of(ctx, in.words_per_tile(), gather_cycles(in), {200, 50});  // other axes: assumed
}

// Maximum, exponentials, their sum and its inverse, on vectors. A number of classes that is no multiple of 4 needs
// constants, and, as Google's compiler does it, many instructions (10 and 1001 classes; 4, 256, 4096 and 16,384).
ChipWork softmax_work(const OpContext& ctx) {
  constexpr double kCycles = 100, kEvenCycles = 2, kOddCycles = 6.7;  // per class
  constexpr double kRows = 240, kEvenRows = 2.5, kMostEvenRows = 2300, kOddRows = 7.5, kMostOddRows = 16000;
  constexpr std::int64_t kBytesOfRow = 64;
  const Maps out = maps_of(ctx.output(0));
  const double vectors = out.pixels();
  const double classes = static_cast<double>(out.channels);
  const bool is_even = out.channels % chip::kLanesPerCell == 0;
  ChipWork work = work_of(ctx, 0, vectors * (kCycles + classes * (is_even ? kEvenCycles : kOddCycles)), {0, 0});
  const double rows =
      is_even ? std::min(kEvenRows * classes, kMostEvenRows) : std::min(kOddRows * classes, kMostOddRows);
  work.instruction_bytes = row_bytes(kRows + rows);
  if (is_even) return work;
  work.parameter_bytes = kBytesOfRow * (3 * static_cast<std::int64_t>(out.words()) + (classes > chip::kCells ? 1 : 0));
  work.parameter_lines = work.parameter_bytes / kBytesOfRow;
  return work;
}

// --- Movement

// Nearest neighbours are copies; bilinear takes four products a result. No file shows one; assumed.
ChipWork nearest_work(const OpContext& ctx) { return elements_work(ctx, 1, kPoolRows); }
ChipWork bilinear_work(const OpContext& ctx) { return elements_work(ctx, 4, kPoolRows); }

// The border is written before its reader runs, by the mesh, four words a cycle.
ChipWork pad_work(const OpContext& ctx) {
  ChipWork work = elements_work(ctx, 0, {40, 10});
  work.move_cycles += maps_of(ctx.output(0)).words_per_tile() / chip::kMeshWordsPerCycle;
  return work;
}

// All bytes change their tile, over the ring.
ChipWork relayout_work(const OpContext& ctx) {
  return work_of(ctx, 0, kVectorGap + ring_cycles(bytes_of(ctx.output(0))), {300, 0});
}

// Nothing to do where pixels and channels stay as they are.
ChipWork reshape_work(const OpContext& ctx) {
  const Maps in = maps_of(ctx.input(0));
  const Maps out = maps_of(ctx.output(0));
  if (in.height == out.height && in.width == out.width && in.channels == out.channels) return {};
  if (in.is_vector() || ctx.output(0).elements() < chip::kCells * chip::kTiles)
    return {};  // small enough to be read in place
  return relayout_work(ctx);
}

// Parts whose channels fill whole words are written where they belong.
ChipWork concatenation_work(const OpContext& ctx) {
  const int rank = ctx.output(0).shape.rank();
  const std::int64_t axis = ctx.attributes().get_int("axis", 0);
  bool is_in_place = rank > 1 && (axis == -1 || axis == rank - 1);
  for (int i = 0; i < ctx.input_count(); ++i) {
    is_in_place = is_in_place && ctx.has_input(i) && maps_of(ctx.input(i)).channels % chip::kLanesPerCell == 0;
  }
  return is_in_place ? ChipWork{} : copy_work(ctx);
}

struct WorkOf {
  std::string_view op;
  ChipWork (*work)(const OpContext&);
};
constexpr auto kWork = std::to_array<WorkOf>({
    {"ADD", binary_work},
    {"AVERAGE_POOL_2D", average_pool_work},
    {"CONCATENATION", concatenation_work},
    {"CONV_2D", conv_work},
    {"DEPTHWISE_CONV_2D", depthwise_work},
    {"DIV", binary_work},
    {"EXPAND_DIMS", reshape_work},
    {"FULLY_CONNECTED", fully_connected_work},
    {"LSTM", lstm_work},
    {"MAXIMUM", maximum_work},
    {"MAX_POOL_2D", max_pool_work},
    {"MEAN", reduce_work},
    {"MINIMUM", maximum_work},
    {"MUL", binary_work},
    {"PAD", pad_work},
    {"PADV2", pad_work},
    {"MIRROR_PAD", pad_work},
    {"PRELU", prelu_work},
    {"REDUCE_MAX", reduce_work},
    {"REDUCE_MIN", reduce_work},
    {"RESHAPE", reshape_work},
    {"RESIZE_BILINEAR", bilinear_work},
    {"RESIZE_NEAREST_NEIGHBOR", nearest_work},
    {"SOFTMAX", softmax_work},
    {"SPACE_TO_DEPTH", relayout_work},
    {"DEPTH_TO_SPACE", relayout_work},
    {"SQUARED_DIFFERENCE", binary_work},
    {"SQUEEZE", reshape_work},
    {"SUB", binary_work},
    {"SUM", reduce_work},
    {"TRANSPOSE", relayout_work},
    {"TRANSPOSE_CONV", transpose_conv_work},
    {"UNIDIRECTIONAL_SEQUENCE_LSTM", lstm_work},
    {"LOGISTIC", table_work},
    {"TANH", table_work},
    {"RELU", table_work},
    {"RELU6", table_work},
    {"RELU_N1_TO_1", table_work},
    {"RSQRT", table_work},
    {"EXP", table_work},
    {"QUANTIZE", table_work},
});

}  // namespace

ChipWork chip_work(const OpContext& ctx) {
  if (ctx.output_count() == 0) return {};
  const auto is_usable = [](const Tensor& tensor) { return is_known(tensor) && tensor.elements() < kMaxElements; };
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (!is_usable(ctx.output(i))) return {};
  }
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i) && !is_usable(ctx.input(i))) return {};
  }
  const auto* known = std::find_if(kWork.begin(), kWork.end(), [&](const WorkOf& w) { return w.op == ctx.op().type; });
  return known == kWork.end() || ctx.op().is_custom() ? copy_work(ctx) : known->work(ctx);
}

}  // namespace reef::ops
