// SPDX-License-Identifier: Apache-2.0
#include "ops/chip_work.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ops/chip_layer_work.h"
#include "ops/chip_maps.h"
#include "ops/reduce.h"
#include "ops/table_functions.h"

namespace reef::ops {
namespace {

constexpr Rows kElementRows = {89, 17}, kTableRows = {60, 17}, kPoolRows = {60, 50};

bool is_known(const Tensor& tensor) { return tensor.shape.is_usable() && tensor.shape.checked_elements() != 0; }

// Beyond this, no formula here means anything.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

double bytes_of(const Tensor& tensor) {
  const auto bytes = ir::byte_size(tensor.shape, tensor.type);
  return bytes ? static_cast<double>(*bytes) : 0;
}

// --- Element by element

// An image and one number for each of its pixels, both computed: the mean and the root of a normalization.
bool combines_pixel_numbers(const OpContext& ctx) {
  if (ctx.input_count() != 2 || !ctx.has_input(0) || !ctx.has_input(1)) return false;
  const Tensor &a = ctx.input(0), &b = ctx.input(1), &out = ctx.output(0);
  if (a.is_constant || b.is_constant || out.shape.rank() < 1 || out.shape.last() < 2) return false;
  const Tensor& few = a.elements() < b.elements() ? a : b;
  return few.shape.rank() > 0 && few.shape.last() == 1 && few.elements() * out.shape.last() == out.elements();
}
// A step for 64 channels, so that writing the results takes longest; lines of parameters are made while it is done, but
// for the first row of pixels. Reef's own code, simulated.
ChipWork pixel_numbers_work(const OpContext& ctx) {
  constexpr double kGap = 100;
  return work_of(ctx, maps_of(ctx.output(0)).words_per_tile(), kGap, {70, 35});
}

// Two computed operands take four steps; a constant per channel becomes a scale or bias, which is sent anew every time.
ChipWork binary_work(const OpContext& ctx) {
  if (has_table(ctx.op())) return elements_work(ctx, 1, kTableRows);  // SiLU
  for (int i = 0; i < std::min(ctx.input_count(), 2); ++i) {
    if (!ctx.has_input(i) || !ctx.input(i).is_constant) continue;
    constexpr std::int64_t kBytesOfWord = 64;
    ChipWork work = elements_work(ctx, 1, kElementRows);
    work.always_streamed_bytes = kBytesOfWord * static_cast<std::int64_t>(maps_of(ctx.output(0)).words());
    work.move_cycles += ring_cycles(static_cast<double>(work.always_streamed_bytes));
    return work;
  }
  if (combines_pixel_numbers(ctx)) return pixel_numbers_work(ctx);
  // What has fewer elements otherwise is repeated first.
  const bool repeats = ctx.input_count() == 2 && ctx.has_input(0) && ctx.has_input(1) &&
                       ctx.input(0).elements() != ctx.input(1).elements();
  return elements_work(ctx, repeats ? 6 : 4, kElementRows);
}
// A difference whose square comes by a table.
ChipWork squared_difference_work(const OpContext& ctx) {
  return combines_pixel_numbers(ctx) ? pixel_numbers_work(ctx) : elements_work(ctx, 4, kElementRows);
}
// The difference, its positive part, and the sum: no file shows the time of one; assumed.
ChipWork maximum_work(const OpContext& ctx) { return elements_work(ctx, 9, {200, 50}); }
ChipWork prelu_work(const OpContext& ctx) { return elements_work(ctx, 6, {200, 50}); }
ChipWork table_work(const OpContext& ctx) { return elements_work(ctx, 1, kTableRows); }

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
  const double rounds =
      divide_up(static_cast<std::int64_t>(divide_up(in.channels, reef::chip::kCells)), reef::chip::kTiles);
  ChipWork work = work_of(ctx, in.pixels() * rounds, gather_cycles(in), {0, 0});
  work.instruction_bytes = row_bytes(kRowsOfGather + kRowsPerPixel * std::min(in.pixels(), kMostPixels));
  return work;
}

double window_positions(const OpContext& ctx) {
  const Maps in = maps_of(ctx.input(0));
  const auto size = [&](std::string_view name, std::int64_t most) {
    return static_cast<double>(
        std::clamp<std::int64_t>(ctx.attributes().get_int(name, 1), 1, std::max<std::int64_t>(most, 1)));
  };
  return size("filter_height", in.height) * size("filter_width", in.width);
}

ChipWork average_pool_work(const OpContext& ctx) {
  const Maps out = maps_of(ctx.output(0));
  if (out.is_vector() && !maps_of(ctx.input(0)).is_vector()) return whole_map_work(ctx);
  const double store = std::min(out.words(), double{reef::chip::kCells / reef::chip::kLanesPerCell});
  const double steps = std::max(window_positions(ctx), store);
  return work_of(ctx, out.pixels_per_tile() * divide_up(out.channels, reef::chip::kCells) * steps, kConvolutionGap,
                 kPoolRows);
}

// A step compares four positions for four channels: 2x2 windows of two files.
ChipWork max_pool_work(const OpContext& ctx) {
  const Maps out = maps_of(ctx.output(0));
  const double steps = out.pixels_per_tile() * out.words() * std::max(1.0, window_positions(ctx) / 4);
  return work_of(ctx, steps, kVectorGap, kPoolRows);
}

ChipWork reduce_work(const OpContext& ctx) {
  const Maps in = maps_of(ctx.input(0));
  // Over channels alone each pixel stays in its tile. Reef's own code, simulated.
  if (reduces_channels_alone(ctx) && !in.is_vector()) return work_of(ctx, in.words_per_tile(), kVectorGap, {40, 17});
  if (maps_of(ctx.output(0)).is_vector()) return whole_map_work(ctx);
  return work_of(ctx, in.words_per_tile(), gather_cycles(in), {200, 50});  // other axes: assumed
}

// Rows of scores that the tile with most of them has: [heads, tokens, keys], of which each token's lie in one tile.
// Maps with fewer channels than rows are pictures of classes, not scores.
double rows_of_busiest_tile(const Maps& scores) {
  if (scores.channels < scores.height) return scores.pixels_per_tile();
  return static_cast<double>(scores.batch * scores.height) * tokens_of_busiest_tile(scores.width);
}

// Maximum, exponentials, their sum and its inverse, on vectors. A number of classes that is no multiple of 4 needs
// constants, and, as Google's compiler does it, many instructions (10 and 1001 classes; 4, 256, 4096 and 16,384).
ChipWork softmax_work(const OpContext& ctx) {
  constexpr double kCycles = 100, kEvenCycles = 2, kOddCycles = 6.7;  // per class
  constexpr double kRows = 240, kEvenRows = 2.5, kMostEvenRows = 2300, kOddRows = 7.5, kMostOddRows = 16000;
  constexpr std::int64_t kBytesOfRow = 64;
  const Maps out = maps_of(ctx.output(0));
  const double vectors = out.pixels();
  // Of many rows (attention) each tile has some, all steps for one after the other: Reef's own code, simulated.
  constexpr double kFewRows = 16, kCyclesOfWord = 9.2, kGap = 40;
  if (vectors >= kFewRows) {
    ChipWork work = work_of(ctx, rows_of_busiest_tile(out) * out.words() * kCyclesOfWord, kGap, {0, 0});
    work.instruction_bytes = row_bytes(kRows);
    return work;
  }
  const double classes = static_cast<double>(out.channels);
  const bool is_even = out.channels % reef::chip::kLanesPerCell == 0;
  ChipWork work = work_of(ctx, 0, vectors * (kCycles + classes * (is_even ? kEvenCycles : kOddCycles)), {0, 0});
  const double rows =
      is_even ? std::min(kEvenRows * classes, kMostEvenRows) : std::min(kOddRows * classes, kMostOddRows);
  work.instruction_bytes = row_bytes(kRows + rows);
  if (is_even) return work;
  work.parameter_bytes =
      kBytesOfRow * (3 * static_cast<std::int64_t>(out.words()) + (classes > reef::chip::kCells ? 1 : 0));
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
  work.move_cycles += maps_of(ctx.output(0)).words_per_tile() / reef::chip::kMeshWordsPerCycle;
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
  if (in.is_vector() || ctx.output(0).elements() < reef::chip::kCells * reef::chip::kTiles)
    return {};  // small enough to be read in place
  return relayout_work(ctx);
}

// Parts whose channels fill whole words are written where they belong.
ChipWork concatenation_work(const OpContext& ctx) {
  const int rank = ctx.output(0).shape.rank();
  const std::int64_t axis = ctx.attributes().get_int("axis", 0);
  bool is_in_place = rank > 1 && (axis == -1 || axis == rank - 1);
  for (int i = 0; i < ctx.input_count(); ++i) {
    is_in_place = is_in_place && ctx.has_input(i) && maps_of(ctx.input(i)).channels % reef::chip::kLanesPerCell == 0;
  }
  return is_in_place ? ChipWork{} : copy_work(ctx);
}

struct WorkOf {
  Op op;
  ChipWork (*work)(const OpContext&);
};
constexpr auto kWork = std::to_array<WorkOf>({
    {Op::ADD, binary_work},
    {Op::AVERAGE_POOL_2D, average_pool_work},
    {Op::BATCH_MATMUL, matrix_product_work},
    {Op::CONCATENATION, concatenation_work},
    {Op::CONV_2D, conv_work},
    {Op::DEPTHWISE_CONV_2D, depthwise_work},
    {Op::DIV, binary_work},
    {Op::EXPAND_DIMS, reshape_work},
    {Op::FULLY_CONNECTED, fully_connected_work},
    {Op::LSTM, lstm_work},
    {Op::MAXIMUM, maximum_work},
    {Op::MAX_POOL_2D, max_pool_work},
    {Op::MEAN, reduce_work},
    {Op::MINIMUM, maximum_work},
    {Op::MUL, binary_work},
    {Op::PAD, pad_work},
    {Op::PADV2, pad_work},
    {Op::MIRROR_PAD, pad_work},
    {Op::PRELU, prelu_work},
    {Op::REDUCE_MAX, reduce_work},
    {Op::REDUCE_MIN, reduce_work},
    {Op::RESHAPE, reshape_work},
    {Op::RESIZE_BILINEAR, bilinear_work},
    {Op::RESIZE_NEAREST_NEIGHBOR, nearest_work},
    {Op::SOFTMAX, softmax_work},
    {Op::SPACE_TO_DEPTH, relayout_work},
    {Op::DEPTH_TO_SPACE, relayout_work},
    {Op::SQUARED_DIFFERENCE, squared_difference_work},
    {Op::SQUEEZE, reshape_work},
    {Op::SUB, binary_work},
    {Op::SUM, reduce_work},
    {Op::TRANSPOSE, relayout_work},
    {Op::TRANSPOSE_CONV, transpose_conv_work},
    {Op::UNIDIRECTIONAL_SEQUENCE_LSTM, lstm_work},
    {Op::LOGISTIC, table_work},
    {Op::TANH, table_work},
    {Op::RELU, table_work},
    {Op::RELU6, table_work},
    {Op::RELU_N1_TO_1, table_work},
    {Op::RSQRT, table_work},
    {Op::GELU, table_work},
    {Op::HARD_SWISH, table_work},
    {Op::ELU, table_work},
    {Op::EXP, table_work},
    {Op::LOG, table_work},
    {Op::SQRT, table_work},
    {Op::ABS, table_work},
    {Op::RELU_0_TO_1, table_work},
    {Op::LEAKY_RELU, table_work},
    {Op::QUANTIZE, table_work},
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
  if (ctx.op().is_custom()) return has_table(ctx.op()) ? table_work(ctx) : copy_work(ctx);
  return known == kWork.end() ? copy_work(ctx) : known->work(ctx);
}

}  // namespace reef::ops
