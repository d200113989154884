// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D over the whole image and MEAN of height and width (lower/reduce.cpp), in one of two ways:
//   by channels   as Google's compiler does it: pixels are brought together channel by channel, then averaged. The
//                 result is a vector, cut by channels
//   by sums       each tile adds up its own pixels; sums are brought together in all tiles, which all compute the same
//                 averages. Takes fewer instructions and little memory: our way, and the only one for large images
#include "lower/global_pool.h"

#include <algorithm>
#include <cmath>

#include "ir/describe.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/ring_copies.h"

namespace reef::lower {
namespace {

using tiled::ChannelRuns;

// Sums of more pixels might not fit 32 bits.
constexpr std::int64_t kMostPixels = 1 << 23;

std::int64_t group_lines(const TiledTensor& image) {
  return (image.width + chip::kLanesPerCell - 1) / chip::kLanesPerCell * std::int64_t{image.height};
}

Status finish_relayout(Builder& builder, tiled::Step& step) {
  auto& work = std::get<tiled::Relayout>(step.work);
  const TiledTensor& image = builder.tensor(work.input);
  auto& objects = builder.program().narrow;
  objects[at(work.gathered)].bytes = tiled::gathered_bytes(image, work.runs);
  tiled::NarrowObject& strip = objects[at(work.strip)];
  strip.bytes =
      std::int64_t{image.height} * image.columns.max_own() * work.runs.words_of_row(0) * chip::kNarrowWordBytes;
  if (builder.level() == tiled::Level::kAsGoogle) {
    work.identity = builder.identity(step);
    if (work.identity.words != tiled::kNowhere) {
      builder.program().narrow[at(work.identity.words)].fills_gaps = true;
    }
  }
  return ok_status();
}

// Whether pixels can be brought together channel by channel: memory for that, beside the image.
bool fits_by_channels(const TiledTensor& image, const ChannelRuns& runs) {
  const std::int64_t width = (image.width + tiled::kTilesPerAxis - 1) / tiled::kTilesPerAxis;
  const std::int64_t height = (image.height + tiled::kTilesPerAxis - 1) / tiled::kTilesPerAxis;
  const std::int64_t strip = image.height * width * runs.words_of_row(0) * chip::kNarrowWordBytes;
  const std::int64_t lines = group_lines(image) * runs.run_words * chip::kNarrowWordBytes / chip::kCells;
  return tiled::gathered_bytes(image, runs) + strip + width * height * image.pitch <= chip::kNarrowBytes &&
         lines <= chip::kWideLines / 2;
}

Result<PixelTotal> average_of(Builder& builder, std::int32_t op, numeric::ChipActivation activation) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  PixelTotal average;
  average.op = op;
  REEF_ASSIGN_OR_RETURN(average.input, builder.grid(from));
  const TiledTensor& image = builder.tensor(average.input);
  const ir::Tensor& result = builder.source(builder.op(op).outputs[0]);
  const std::int64_t pixels = std::int64_t{image.height} * image.width;
  if (pixels > kMostPixels) return unsupported("averages of {} pixels are not generated", pixels);
  REEF_ASSIGN_OR_RETURN(const std::int32_t zero, chip_zero_point(result));
  REEF_REQUIRE(result.shape.is_usable() && result.shape.elements() == image.channels,
               "the result '{}' is {}, the image has {} channels", ir::describe_name(result.name),
               result.shape.to_string(), image.channels);
  const float scale = result.quantization.scale[0];
  for (const float s : {image.scale, scale}) {
    if (!(s > 0) || !std::isfinite(s)) return unsupported("{} is no scale", s);
  }
  average.clamp = numeric::chip_clamp(scale, zero, activation);
  average.multiplier = numeric::chip_pool_multiplier(image.scale, scale, static_cast<std::int32_t>(pixels),
                                                     numeric::ChipPoolOrder::kOutputLast);
  return average;
}

// ---- By channels ----

Status add_by_channels(Builder& builder, const PixelTotal& average, const ChannelRuns& runs, std::int32_t stride) {
  const std::int32_t to = builder.op(average.op).outputs[0];
  const std::int32_t run = runs.run_words * chip::kNarrowWordBytes;
  tiled::Relayout relayout;
  tiled::GlobalPool pool;
  relayout.input = pool.input = average.input;
  relayout.runs = pool.runs = runs;
  REEF_ASSIGN_OR_RETURN(pool.output, builder.new_vector(to, run));
  pool.stride = stride;
  pool.clamp = average.clamp;
  pool.multiplier = average.multiplier;
  relayout.gathered = pool.gathered = builder.new_narrow(0);
  relayout.strip = builder.new_narrow(0);
  builder.program().narrow.back().fills_gaps = true;
  relayout.words = pool.words = builder.new_narrow(std::int64_t{tiled::kPoolWords} * chip::kNarrowWordBytes);
  builder.program().narrow.back().fills_gaps = true;
  pool.lines = builder.new_wide(group_lines(builder.tensor(average.input)) * (run / chip::kCells));
  relayout.two_lines = builder.new_wide(2);
  builder.add_step(average.op, relayout, {Read{average.input}}, {}, finish_relayout);
  builder.program().steps.back().narrow_used = {relayout.gathered, relayout.strip, relayout.words};
  builder.program().steps.back().wide_used = {pool.lines, relayout.two_lines};
  builder.add_step(average.op, pool, {}, {pool.output});
  builder.program().steps.back().narrow_used = {pool.gathered, pool.words};
  builder.program().steps.back().wide_used = {pool.lines};
  builder.set_value(to, {pool.output, {}});
  return ok_status();
}

// ---- By sums ----

std::int64_t sum_bytes(const TiledTensor& image) {
  return std::int64_t{tiled::sum_words(image)} * chip::kNarrowWordBytes;
}

Status finish_pixel_sums(Builder& builder, tiled::Step& step) {
  auto& work = std::get<tiled::PixelSums>(step.work);
  const TiledTensor& image = builder.tensor(work.input);
  std::int64_t most = 0, end = 0;
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    const std::int64_t width = image.columns.tile(column).own(), height = image.rows.tile(row).own();
    if (width == 0 || height == 0) continue;
    if (width > tiled::kMostSummedPixels) {
      return unsupported("averages of rows of {} pixels are not generated", image.width);
    }
    most = std::max<std::int64_t>(most, tiled::sums_of(image, tile));
    // Four pixels are read at a time, also at the end of the last row.
    const std::int64_t read = (width + 3) / 4 * 4;
    const std::int64_t first = image.first_own_byte(row, column) - image.address;
    end = std::max(end, first + (height - 1) * image.row_bytes(column) + read * image.pitch);
  }
  auto& objects = builder.program().narrow;
  objects[at(work.sums)].bytes = most * sum_bytes(image);
  tiled::NarrowObject& place = objects[at(image.object)];
  place.bytes = std::max(place.bytes, image.offset + end);
  work.lines = builder.new_wide(2 * ((std::int64_t{image.columns.max_own()} + 3) / 4));
  step.wide_used = {work.lines};
  return ok_status();
}

Status finish_gathering(Builder& builder, tiled::Step& step, std::int32_t input, std::int32_t sums,
                        std::int32_t gathered) {
  const TiledTensor& image = builder.tensor(input);
  const std::int32_t words = tiled::sum_words(image);
  tiled::RingCopies work;
  std::int32_t count = 0;
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    const std::int32_t of_tile = tiled::sums_of(image, tile);
    if (of_tile == 0) continue;
    const auto target = static_cast<std::int32_t>(count * sum_bytes(image));
    work.copies.push_back(
        {tile, tiled::kAllTiles, {sums, 0, {{1, of_tile * words}}}, {gathered, target, {{1, of_tile * words}}}});
    count += of_tile;
  }
  // Sums are read two at a time.
  builder.program().narrow[at(gathered)].bytes = (count + 1) / 2 * 2 * sum_bytes(image);
  return set_ring_copies(builder, step, std::move(work));
}

Status finish_summed_pool(Builder& builder, tiled::Step& step) {
  auto& pool = std::get<tiled::SummedPool>(step.work);
  pool.sums = 0;
  for (int tile = 0; tile < chip::kTiles; ++tile) pool.sums += tiled::sums_of(builder.tensor(pool.input), tile);
  pool.lines = builder.new_wide(2 * std::int64_t{pool.group_lines()});
  step.wide_used = {pool.lines};
  return ok_status();
}

}  // namespace

Status add_pixel_total(Builder& builder, const PixelTotal& average) {
  const std::int32_t to = builder.op(average.op).outputs[0];
  const TiledTensor image = builder.tensor(average.input);
  const std::int64_t pixels = std::int64_t{image.height} * image.width;
  if (pixels > kMostPixels) return unsupported("sums of {} pixels are not generated", pixels);
  TiledTensor result;
  result.source = to;
  result.spread = tiled::Spread::kCopies;
  result.channels = image.channels;
  result.pitch = result.pixel_words() * chip::kNarrowWordBytes;
  result.tiles = tiled::kAllTiles;
  REEF_ASSIGN_OR_RETURN(result.zero_point, chip_zero_point(builder.source(to)));
  result.scale = builder.source(to).quantization.scale[0];

  tiled::PixelSums sums;
  tiled::SummedPool pool;
  sums.input = pool.input = average.input;
  sums.one = pool.one = builder.new_narrow(chip::kNarrowWordBytes);
  sums.sums = builder.new_narrow(0);
  pool.gathered = builder.new_narrow(0);
  pool.output = builder.add_tensor(std::move(result));
  pool.offset = static_cast<std::int32_t>(-pixels * image.zero_point);
  pool.multiplier = average.multiplier;
  pool.clamp = average.clamp;
  builder.add_step(average.op, sums, {Read{average.input}}, {}, finish_pixel_sums);
  builder.program().steps.back().narrow_used = {sums.sums, sums.one};
  builder.add_step(
      average.op, tiled::RingCopies{}, {}, {},
      [input = average.input, from = sums.sums, gathered = pool.gathered](Builder& finishing, tiled::Step& step) {
        return finish_gathering(finishing, step, input, from, gathered);
      });
  builder.program().steps.back().narrow_used = {sums.sums, pool.gathered};
  builder.add_step(average.op, pool, {}, {pool.output}, finish_summed_pool);
  builder.program().steps.back().narrow_used = {pool.gathered, pool.one};
  builder.set_value(to, {pool.output, {}});
  return ok_status();
}

Status add_global_pool(Builder& builder, std::int32_t op, std::int32_t stride, numeric::ChipActivation activation) {
  REEF_ASSIGN_OR_RETURN(const PixelTotal average, average_of(builder, op, activation));
  const TiledTensor& image = builder.tensor(average.input);
  const ChannelRuns runs = ChannelRuns::of(image.channels);
  if (builder.level() == tiled::Level::kAsGoogle && fits_by_channels(image, runs)) {
    return add_by_channels(builder, average, runs, stride);
  }
  return add_pixel_total(builder, average);
}

Status lower_average_pool(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const ir::Operator& pool = builder.op(op);
  const ir::Shape &in = builder.source(from).shape, &out = builder.source(pool.outputs[0]).shape;
  const std::int64_t height = pool.attributes.get_int("filter_height"), width = pool.attributes.get_int("filter_width");
  const bool whole_image = in.rank() == 4 && out.rank() == 4 && in[0] == 1 && height == in[1] && width == in[2] &&
                           out[1] == 1 && out[2] == 1;
  if (!whole_image) return lower_pool(builder, op);
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(pool));
  const std::int64_t stride = pool.attributes.get_int("stride_w", 1);
  // It has no effect, only Google's instructions have it; what no field holds is left out.
  const bool fits = stride >= 1 && stride <= width && stride <= height;
  return add_global_pool(builder, op, fits ? static_cast<std::int32_t>(stride) : 1, activation);
}

}  // namespace reef::lower
