// SPDX-License-Identifier: Apache-2.0
// SQUARED_DIFFERENCE: the difference as numbers of 16 bits, then its square, rounded once more.
//
// The difference is a weighted sum as in SUB; what it can be at most takes all 16 bits, so that little is lost before
// it is squared (nothing where both operands have the same scale). How it is known: our own; no compiled program with
// this operator is known, and 8 bits would not be enough to come within one of TFLite's result.
#include <algorithm>
#include <cmath>

#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/sum.h"
#include "numeric/chip_squares.h"

namespace reef::lower {
namespace {

using tiled::TiledTensor;
using tiled::WideSquares;

// Narrow memory for squares before they are packed, of which there is a word each; a row of pixels may take more.
constexpr std::int64_t kMostSpreadBytes = 32 << 10, kMostRowBytes = 64 << 10;

Status finish_squares(Builder& builder, tiled::Step& step) {
  auto work = std::get<WideSquares>(step.work);
  const TiledTensor& output = builder.tensor(work.output);
  std::int64_t rows = 1;
  if (output.spread == tiled::Spread::kGrid) rows = std::max(1, output.rows.max_own());
  if (output.spread == tiled::Spread::kCopies) rows = output.height;
  const std::int64_t row_bytes = most_own_bytes(output) / rows * chip::kNarrowWordBytes;
  if (row_bytes > kMostRowBytes) {
    return unsupported("a row of {} bytes in a tile is longer than is generated", row_bytes / chip::kNarrowWordBytes);
  }
  work.rows_at_once = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(kMostSpreadBytes / std::max<std::int64_t>(row_bytes, 1), 1, rows));
  work.spread = builder.new_narrow(row_bytes * work.rows_at_once);
  work.lines = builder.new_wide(tiled::kWideSquareLines);
  step.narrow_used.push_back(work.spread);
  step.wide_used.push_back(work.lines);
  work.identity = builder.identity(step);
  step.work = work;
  return ok_status();
}

}  // namespace

Status lower_squared_difference(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const Operands operands, spread_operands(builder, op));
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, new_result(builder, op, operands.a));
  const TiledTensor &a = builder.tensor(operands.a), &b = builder.tensor(operands.b);
  const TiledTensor& out = builder.tensor(output);
  const auto numbers = numeric::chip_squared_difference(a.scale, a.zero_point, b.scale, b.zero_point, out.scale);
  if (!numbers) return unsupported("scales {}, {} and {} do not go together", a.scale, b.scale, out.scale);
  tiled::Sum difference;
  difference.a = operands.a;
  difference.b = operands.b;
  difference.output = output;
  difference.a_weight = numbers->a_weight;
  difference.b_weight = -numbers->b_weight;
  difference.offset = -(difference.a_weight * a.zero_point + difference.b_weight * b.zero_point);
  difference.multiplier = numbers->difference_multiplier;
  difference.clamp = {numeric::kMostWideDifference, -numeric::kMostWideDifference};
  difference.output_zero = numeric::kWideDifferenceZero;
  difference.wide_results = builder.new_narrow(0);
  WideSquares squares;
  squares.input = difference.wide_results;
  squares.output = output;
  squares.input_zero = numeric::kWideDifferenceZero;
  squares.multiplier = numbers->square_multiplier;
  squares.clamp = numeric::chip_clamp(out.scale, out.zero_point, numeric::ChipActivation::kNone);
  add_sum_step(builder, op, difference);
  builder.add_step(op, squares, {}, {output}, finish_squares);
  builder.program().steps.back().narrow_used = {squares.input};
  return ok_status();
}

}  // namespace reef::lower
