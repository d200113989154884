// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of the rows of an image, each tile those of its pixels; a single row is brought to one tile. As Google's
// compiler does it where that is known and its programs are to be compared with: a row of 64 elements to a tile on all
// tiles, a row of four.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/describe.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::Spread;
using tiled::SpreadSoftmax;
using tiled::TileMask;

constexpr std::int32_t kMostLoopSteps = 16384;  // steps of a maximum that a loop can count
constexpr float kOutputScale = 1.0f / 256;      // the only one that the constants are known for
constexpr int kTile = 0;
constexpr std::int32_t kGooglesSmallRow = 4;

// Checks everything about the operator but where its input is. The scale of differences in the exponent.
Result<float> exponent_scale(const Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const ir::Tensor &input = builder.source(from), &output = builder.source(builder.op(op).outputs[0]);
  REEF_RETURN_IF_ERROR(chip_zero_point(input).status());
  REEF_ASSIGN_OR_RETURN(const std::int32_t output_zero, chip_zero_point(output));
  if (output_zero != 0 || output.quantization.scale[0] != kOutputScale) {
    return unsupported("the output has scale {} and zero point {}; only 1/256 and the lowest number are generated",
                       output.quantization.scale[0], output_zero);
  }
  if (input.shape.rank() == 0 || input.shape != output.shape || input.shape.elements() == 0) {
    return unsupported("input {} and output {} have no rows, or others", input.shape.to_string(),
                       output.shape.to_string());
  }
  if (input.shape.last() > kMostLoopSteps) {
    return unsupported("a row has {} elements; at most {} are generated", input.shape.last(), kMostLoopSteps);
  }
  const float scale = input.quantization.scale[0] * static_cast<float>(builder.op(op).attributes.get_float("beta", 1));
  if (!std::isfinite(scale) || scale <= 0) return unsupported("beta times the input's scale is {}", scale);
  return scale;
}

// ---- Rows that tiles have as a whole ----

// Where a tensor has a single row in one tile, that tile.
std::optional<int> tile_of(const TiledTensor& tensor) {
  if (tensor.height != 1 || tensor.width != 1) return std::nullopt;
  if (tensor.spread == Spread::kCopies) return std::countr_zero(tensor.tiles);
  if (tensor.spread == Spread::kVector && tensor.vector_tiles() > 1) return std::nullopt;
  return kTile;
}

Status finish_softmax(Builder& builder, tiled::Step& step) {
  auto& softmax = std::get<tiled::Softmax>(step.work);
  softmax.identity = builder.identity(step);
  const TiledTensor &input = builder.tensor(softmax.input), &output = builder.tensor(softmax.output);
  std::int64_t pixels = 1;
  if (input.spread == Spread::kGrid) {
    softmax.tiles = output.owners();
    pixels = std::int64_t{output.rows.max_own()} * output.columns.max_own();
  }
  const auto layout = tiled::NumeratorLines::of(input.channels);
  auto& objects = builder.program().narrow;
  objects[reef::at(softmax.words)].bytes = tiled::SoftmaxWords::of(pixels).bytes;
  objects[reef::at(softmax.numerators)].bytes = pixels * layout.bytes();
  if (!layout.ends_with_row(input.channels)) {
    if (input.height * input.width > 1) return unsupported("rows of {} elements are not generated", input.channels);
    tiled::NarrowObject& place = objects[reef::at(output.object)];
    place.bytes = std::max(place.bytes, output.offset + output.tile_bytes() + layout.result_bytes());
  }
  softmax.lines = builder.new_wide(2 * std::int64_t{layout.lines} + 1);
  step.wide_used.push_back(softmax.lines);
  return ok_status();
}

Status add_softmax(Builder& builder, std::int32_t op, std::int32_t input, TileMask tiles, float scale) {
  const std::int32_t to = builder.op(op).outputs[0];
  tiled::Softmax softmax;
  softmax.input = input;
  softmax.tiles = tiles;
  softmax.scale = scale;
  REEF_ASSIGN_OR_RETURN(softmax.output, builder.new_like(to, input));
  if (builder.tensor(input).spread == Spread::kCopies) builder.program().tensor(softmax.output).tiles = tiles;
  softmax.words = builder.new_narrow(0);
  softmax.numerators = builder.new_narrow(0);
  builder.add_step(op, softmax, {Read{input}}, {softmax.output}, finish_softmax);
  builder.program().steps.back().narrow_used = {softmax.words, softmax.numerators};
  builder.set_value(to, {softmax.output, {}});
  return ok_status();
}

// A single row, on one tile.
Status add_row(Builder& builder, std::int32_t op, float scale) {
  const std::int32_t from = builder.op(op).inputs[0];
  REEF_ASSIGN_OR_RETURN(std::int32_t input, builder.any_layout(from));
  std::optional<int> tile = tile_of(builder.tensor(input));
  if (!tile) {
    REEF_ASSIGN_OR_RETURN(input, builder.packed_copies(from, tiled::mask_of(kTile)));
    tile = tile_of(builder.tensor(input));
    REEF_REQUIRE(tile.has_value(), "'{}' is in no tile as a whole", ir::describe_name(builder.source(from).name));
  }
  return add_softmax(builder, op, input, tiled::mask_of(*tile), scale);
}

// Rows as the pixels of an image.
Status add_rows(Builder& builder, std::int32_t op, float scale) {
  const std::int32_t from = builder.op(op).inputs[0];
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder.grid(from));
  REEF_REQUIRE(builder.tensor(input).channels == builder.source(from).shape.last(), "'{}' is no image of such rows",
               ir::describe_name(builder.source(from).name));
  return add_softmax(builder, op, input, 0, scale);
}

// ---- As Google's compiler does it ----

// Rows as the one that is known (emit/spread_softmax.cpp).
bool is_spread_as_known(const TiledTensor& row) {
  const int last = row.vector_tiles() - 1;
  return row.channels % 4 == 1 && row.run_of(last) > 1 && chip::tile_row(last) > 0 && chip::tile_column(last) > 0;
}

// A line for each word of a row, of four numbers: `value`, and `behind` for those behind the row's end.
template <typename Number>
tiled::ParameterChunk lines_of_row(const SpreadSoftmax& row, Number value, Number behind) {
  constexpr std::int32_t kLineWords = 16;  // a unit of the host's transfers
  tiled::ParameterChunk chunk;
  chunk.line_words = kLineWords;
  chunk.lines = row.words();
  chunk.part_lines = SpreadSoftmax::kWordsPerTile;
  chunk.parts_at_one_line = false;
  const auto line_bytes = static_cast<std::size_t>(kLineWords) * chip::kNarrowWordBytes;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(chunk.lines) * line_bytes);
  for (std::int32_t i = 0; i < 4 * row.words(); ++i) {
    const Number number = i < row.elements ? value : behind;
    const std::size_t at =
        static_cast<std::size_t>(i / 4) * line_bytes + static_cast<std::size_t>(i % 4) * sizeof(number);
    std::memcpy(bytes.data() + at, &number, sizeof(number));
  }
  chunk.bytes = Bytes(std::move(bytes));
  return chunk;
}

Status finish_spread(Builder& builder, tiled::Step& step) {
  auto& row = std::get<SpreadSoftmax>(step.work);
  row.identity = builder.identity(step);
  constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
  row.biases = builder.new_parameters(lines_of_row(row, std::int32_t{0}, kLowest));
  row.biases_again = builder.new_parameters(lines_of_row(row, std::int32_t{0}, kLowest));
  row.scales = builder.new_parameters(lines_of_row(row, row.scale, row.scale * std::numeric_limits<float>::max()));
  SpreadSoftmax one;  // a line that begins with 1
  one.elements = 1;
  row.last_numerator = builder.new_parameters(lines_of_row(one, 1.0f, 0.0f));
  step.parameters_used = {row.biases, row.biases_again, row.scales, row.last_numerator};
  return ok_status();
}

Status add_spread(Builder& builder, std::int32_t op, std::int32_t input, float scale) {
  const std::int32_t to = builder.op(op).outputs[0];
  SpreadSoftmax row;
  row.input = input;
  row.scale = scale;
  row.elements = builder.tensor(input).channels;
  REEF_ASSIGN_OR_RETURN(row.output, builder.new_vector(to));
  const std::int64_t all = SpreadSoftmax::kNumerators + chip::kNarrowWordBytes * 2 * std::int64_t{row.words()};
  row.row = builder.new_narrow(all + SpreadSoftmax::kWordsBehind * chip::kNarrowWordBytes);
  row.differences = builder.new_narrow(tiled::kDifferenceBytes);
  row.lines = builder.new_wide(tiled::kSpreadSoftmaxLines);
  builder.add_step(op, row, {Read{row.input}}, {row.output}, finish_spread);
  builder.program().steps.back().narrow_used = {row.row, row.differences};
  builder.program().steps.back().wide_used = {row.lines};
  builder.set_value(to, {row.output, {}});
  return ok_status();
}

Status finish_small(Builder& builder, tiled::Step& step) {
  std::get<tiled::SmallSoftmax>(step.work).identity = builder.identity(step);
  return ok_status();
}

Status add_small(Builder& builder, std::int32_t op, std::int32_t input, float scale) {
  const std::int32_t to = builder.op(op).outputs[0];
  tiled::SmallSoftmax row;
  row.input = input;
  row.scale = scale;
  REEF_ASSIGN_OR_RETURN(row.output, builder.new_vector(to));
  row.words = builder.new_narrow(tiled::kSmallSoftmaxBytes);
  row.lines = builder.new_wide(tiled::kSmallSoftmaxLines);
  builder.add_step(op, row, {Read{row.input}}, {row.output}, finish_small);
  builder.program().steps.back().narrow_used = {row.words};
  builder.program().steps.back().wide_used = {row.lines};
  builder.set_value(to, {row.output, {}});
  return ok_status();
}

}  // namespace

Status lower_softmax_of_pixels(Builder& builder, std::int32_t op, std::int32_t input) {
  REEF_ASSIGN_OR_RETURN(const float scale, exponent_scale(builder, op));
  return add_softmax(builder, op, input, 0, scale);
}

Status lower_softmax(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const float scale, exponent_scale(builder, op));
  const std::int32_t from = builder.op(op).inputs[0];
  const ir::Shape& shape = builder.source(from).shape;
  if (shape.elements() != shape.last()) return add_rows(builder, op, scale);
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder.any_layout(from));
  const TiledTensor& row = builder.tensor(input);
  const bool is_vector = row.spread == Spread::kVector && row.run == tiled::kVectorRun;
  if (builder.level() == tiled::Level::kAsGoogle && is_vector) {
    if (is_spread_as_known(row)) return add_spread(builder, op, input, scale);
    if (row.channels == kGooglesSmallRow) return add_small(builder, op, input, scale);
  }
  return add_row(builder, op, scale);
}

}  // namespace reef::lower
