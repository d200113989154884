// SPDX-License-Identifier: Apache-2.0
// Normalizations of each pixel (LayerNorm, RMSNorm) are made of operators between an image and one number for each of
// its pixels: the mean is subtracted, the difference is squared, the rest is multiplied by one over the deviation. Each
// of them is one step that reads the numbers as they are (tiled/pixel_numbers.h) instead of repeating them for all
// channels first. What is computed is what the operators say, with the same roundings.
//
// How it is known: our own; emit/pixel_numbers.cpp says which parts Google's programs have.
#include <algorithm>

#include "base/divide_up.h"
#include "ir/op.h"
#include "lower/constants.h"
#include "lower/elementwise.h"
#include "lower/shared_steps.h"
#include "tiled/pool.h"

namespace reef::lower {
namespace {

using tiled::PixelNumbers;

// Wide memory that one step may take; what does not fit is done in rounds.
constexpr std::int64_t kMostLines = 512;
// Words of a pixel that one loop can count.
constexpr std::int32_t kMostWords = 1 << 14;

// Whether `few` has a number for each pixel of `whole`, whose channels are the last dimension.
bool are_numbers_of_pixels(const ir::Shape& few, const ir::Shape& whole) {
  if (few.rank() < 1 || few.rank() > whole.rank() || few.last() != 1 || whole.last() < 2) return false;
  for (int d = 0; d + 1 < whole.rank(); ++d) {
    const int of_few = d - (whole.rank() - few.rank());
    if (whole[d] != (of_few < 0 ? 1 : few[of_few])) return false;
  }
  return true;
}

// Pixels are read four at a time: up to three behind the last one that a tile has.
void reserve_last_line(Builder& builder, const TiledTensor& tensor, const TiledTensor& owner) {
  std::int64_t beyond = 0;
  for (int column = 0; column < tiled::kTilesPerAxis; ++column) {
    const tiled::TileShare& share = owner.columns.tile(column);
    if (share.own() == 0) continue;
    const std::int32_t read = divide_up(share.own(), tiled::kPoolLinePixels) * tiled::kPoolLinePixels;
    beyond = std::max<std::int64_t>(beyond,
                                    tensor.columns.place(column, share.begin) + read - tensor.columns.length(column));
  }
  if (beyond <= 0) return;
  tiled::NarrowObject& pixels = builder.program().narrow[at(tensor.object)];
  pixels.bytes = std::max(pixels.bytes, tensor.offset + tensor.tile_bytes() + beyond * tensor.pitch);
}

Status finish_pixel_numbers(Builder& builder, tiled::Step& step) {
  auto& work = std::get<PixelNumbers>(step.work);
  const TiledTensor& output = builder.tensor(work.output);
  const std::int32_t groups = divide_up(output.channels, chip::kCells), rows = std::max(1, output.rows.max_own());
  const std::int64_t row_lines =
      std::int64_t{work.terms()} * divide_up(output.columns.max_own(), tiled::kPoolLinePixels);
  if (row_lines > kMostLines && !builder.is_sketch()) {
    return unsupported("a tile has {} pixels in a row, more than are generated", output.columns.max_own());
  }
  const std::int64_t most_rows = std::max<std::int64_t>(1, kMostLines / std::max<std::int64_t>(1, row_lines));
  work.rows_at_once = static_cast<std::int32_t>(std::min<std::int64_t>(rows, most_rows));
  work.groups_at_once = static_cast<std::int32_t>(std::clamp<std::int64_t>(most_rows / rows, 1, groups));
  work.lines = builder.new_wide(row_lines * work.rows_at_once * work.groups_at_once);
  step.wide_used = {work.lines};
  if (!work.is_product) {
    work.weights = builder.new_narrow(chip::kNarrowWordBytes);
    step.narrow_used = {work.weights};
    reserve_last_line(builder, builder.tensor(work.numbers), output);
  }
  reserve_last_line(builder, builder.tensor(work.input), output);
  builder.take_place(work.output, work.input);
  return ok_status();
}

// Whether all bytes of a number's word hold it already.
bool fills_words(const Builder& builder, std::int32_t tensor) {
  const auto& steps = builder.program().steps;
  return std::any_of(steps.begin(), steps.end(), [&](const tiled::Step& step) {
    const auto* sums = std::get_if<tiled::ChannelSums>(&step.work);
    return sums != nullptr && sums->output == tensor;
  });
}

// The same numbers, four times each: as four channels of an image.
std::int32_t add_filled_words(Builder& builder, std::int32_t op, std::int32_t numbers) {
  TiledTensor filled = builder.tensor(numbers);
  filled.channels = filled.pitch = chip::kNarrowWordBytes;
  filled.offset = 0;
  const std::int32_t result = builder.add_tensor(std::move(filled), builder.slice_rows(builder.op(op).outputs[0]));
  return add_repetition(builder, op, numbers, result);
}

}  // namespace

Result<bool> lower_with_pixel_numbers(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t a, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::int32_t b, builder.operand(op, 1));
  const std::int32_t to = builder.op(op).outputs[0];
  const ir::Shape whole = builder.source(to).shape;
  if (is_constant(builder, a) || is_constant(builder, b) || whole.rank() < 1) return false;
  const bool numbers_first = are_numbers_of_pixels(builder.source(a).shape, whole);
  const std::int32_t image = numbers_first ? b : a, numbers = numbers_first ? a : b;
  if (!are_numbers_of_pixels(builder.source(numbers).shape, whole)) return false;
  if (builder.source(image).shape.elements() != whole.elements()) return false;
  REEF_ASSIGN_OR_RETURN(const Image shape, result_image(builder, to));
  if (shape.channels != whole.last()) return false;
  PixelNumbers work;
  for (const std::int32_t operand : {image, numbers}) REEF_RETURN_IF_ERROR(elements_of(builder, operand).status());
  REEF_ASSIGN_OR_RETURN(work.input, builder.grid(image, shape));
  REEF_ASSIGN_OR_RETURN(work.numbers, builder.grid(numbers, {shape.height, shape.width, 1}));
  REEF_ASSIGN_OR_RETURN(work.output, new_result(builder, op, work.input));
  work.is_product = builder.op(op).type == Op::MUL;
  if (!work.is_product && !fills_words(builder, work.numbers)) {
    work.numbers = add_filled_words(builder, op, work.numbers);
  }
  const TiledTensor &x = builder.tensor(work.input), &n = builder.tensor(work.numbers);
  const TiledTensor& out = builder.tensor(work.output);
  if (work.is_product) {
    REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(builder.op(op)));
    work.input_zero = x.zero_point;
    work.number_zero = n.zero_point;
    work.sum.multiplier = numbers_first ? numeric::chip_product_multiplier(n.scale, x.scale, out.scale)
                                        : numeric::chip_product_multiplier(x.scale, n.scale, out.scale);
    work.sum.clamp = numeric::chip_clamp(out.scale, out.zero_point, activation);
    work.sum.output_zero = out.zero_point;
  } else {
    REEF_ASSIGN_OR_RETURN(
        work.sum, numbers_first ? weighted_sum(builder.op(op), n, x, out) : weighted_sum(builder.op(op), x, n, out));
    if (numbers_first) std::swap(work.sum.a_weight, work.sum.b_weight);
  }
  builder.add_step(op, work, {Read{work.input}, Read{work.numbers}}, {work.output}, finish_pixel_numbers);
  return true;
}

Status add_channel_sums(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output, float multiplier,
                        const numeric::ChipClamp& clamp) {
  tiled::ChannelSums sums;
  sums.input = input;
  if (builder.tensor(input).channels % chip::kNarrowWordBytes != 0) {
    REEF_ASSIGN_OR_RETURN(sums.input, builder.new_like(builder.tensor(input).source, input));
    add_clean_copy(builder, op, input, sums.input);
  }
  if (builder.tensor(input).pixel_words() > kMostWords) {
    return unsupported("{} channels of a pixel are more than are summed up", builder.tensor(input).channels);
  }
  sums.output = output;
  sums.input_zero = builder.tensor(input).zero_point;
  sums.output_zero = builder.tensor(output).zero_point;
  sums.multiplier = multiplier;
  sums.clamp = clamp;
  builder.add_step(op, sums, {Read{sums.input}}, {output}, [](Builder& to, tiled::Step& step) {
    auto& work = std::get<tiled::ChannelSums>(step.work);
    work.words = to.new_narrow(std::int64_t{tiled::kChannelSumWords} * chip::kNarrowWordBytes);
    work.line = to.new_wide(1);
    step.narrow_used = {work.words};
    step.wide_used = {work.line};
    return ok_status();
  });
  return ok_status();
}

}  // namespace reef::lower
