// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D and MAX_POOL_2D over windows.
#include <algorithm>
#include <cmath>

#include "base/divide_up.h"
#include "ir/op.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"
#include "lower/windows.h"

namespace reef::lower {
namespace {

using tiled::Pool;

// Lines that a pool may take for its pixels at once. More would leave little room for parameters, and for the
// convolution before it, which may still be running.
constexpr std::int64_t kMostPoolLines = 1024;

// As many groups of channels and rows of the result as fit; Google's compiler takes everything at once and reserves the
// whole buffer of a tile, halos and all, whether the pool reads them or not.
Status choose_rounds(const TiledTensor& input, const TiledTensor& output, Pool& pool, std::int64_t& lines) {
  const std::int32_t groups = divide_up(input.channels, chip::kCells);
  const std::int32_t line_blocks = divide_up(input.columns.max_length(), tiled::kPoolLinePixels);
  const std::int64_t image = std::int64_t{input.rows.max_length()} * line_blocks;
  pool.groups_at_once = groups;
  pool.rows_at_once = output.rows.max_own();
  lines = image * groups;
  if (lines <= kMostPoolLines) return ok_status();
  const std::int32_t window_blocks =
      divide_up((output.columns.max_own() - 1) * pool.x.stride + pool.x.kernel, tiled::kPoolLinePixels);
  const auto lines_of_rows = [&](std::int32_t rows) {
    return (std::int64_t{rows - 1} * pool.y.stride + pool.y.kernel) * window_blocks;
  };
  pool.groups_at_once =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(kMostPoolLines / lines_of_rows(pool.rows_at_once), 1, groups));
  while (pool.rows_at_once > 1 && lines_of_rows(pool.rows_at_once) > kMostPoolLines) --pool.rows_at_once;
  lines = lines_of_rows(pool.rows_at_once) * pool.groups_at_once;
  if (lines > chip::kWideLines) {
    return unsupported("a window of {}x{} pixels takes {} lines of wide memory, a tile has {}", pool.y.kernel,
                       pool.x.kernel, lines, chip::kWideLines);
  }
  return ok_status();
}

Status finish_pool(Builder& builder, tiled::Step& step) {
  Pool pool = std::get<Pool>(step.work);
  const TiledTensor& input = builder.tensor(pool.input);
  const TiledTensor& output = builder.tensor(pool.output);
  REEF_RETURN_IF_ERROR(require_reachable_halos(input, output));
  std::int64_t lines = 0;
  REEF_RETURN_IF_ERROR(choose_rounds(input, output, pool, lines));
  // Pixels are read four at a time, up to three more than there are in the last row.
  tiled::NarrowObject& pixels = builder.program().narrow[at(input.object)];
  std::int64_t beyond = 0;
  for (int column = 0; column < tiled::kTilesPerAxis; ++column) {
    const tiled::TileShare& share = output.columns.tile(column);
    if (share.own() == 0) continue;
    const std::int32_t first = input.columns.place(column, pool.x.first(share.begin));
    const std::int32_t width = (share.own() - 1) * pool.x.stride + pool.x.kernel;
    const std::int32_t end = first + divide_up(width, tiled::kPoolLinePixels) * tiled::kPoolLinePixels;
    beyond = std::max<std::int64_t>(beyond, end - input.columns.length(column));
  }
  if (beyond > 0) pixels.bytes = std::max(pixels.bytes, input.offset + input.tile_bytes() + beyond * input.pitch);
  pool.lines = builder.new_wide(lines);
  step.wide_used.push_back(pool.lines);
  tiled::Step* previous = builder.previous_step();
  const bool as_google = builder.level() == tiled::Level::kAsGoogle;
  // Google's compiler keeps the lines free from the convolution before on.
  if (as_google && previous != nullptr && std::holds_alternative<tiled::Convolution>(previous->work)) {
    previous->wide_used.push_back(pool.lines);
  }
  if (pool.is_average && pool.factors == tiled::kNowhere) {
    pool.one_words = as_google ? output.rows.max_own() * output.columns.max_own() : 1;
    pool.ones = builder.new_narrow(std::int64_t{pool.one_words} * chip::kNarrowWordBytes);
    step.narrow_used.push_back(pool.ones);
    if (previous != nullptr) previous->narrow_used.push_back(pool.ones);  // it may still be running
  }
  step.work = pool;
  return ok_status();
}

// How the operator reads the image that `padding` surrounds.
Result<Windows> windows_of(const Builder& builder, std::int32_t op, const Value& value) {
  const ir::Attributes& a = builder.op(op).attributes;
  const TiledTensor& input = builder.tensor(value.tensor);
  const ir::Tensor& output = builder.source(builder.op(op).outputs[0]);
  const std::string_view mode = a.get_enum("padding", "SAME");
  const Padding& padding = value.padding;
  Windows windows;
  REEF_ASSIGN_OR_RETURN(
      windows.y, axis_window(std::int64_t{input.height} + padding.top + padding.bottom, a.get_int("filter_height"),
                             a.get_int("stride_h"), 1, mode, padding.top));
  REEF_ASSIGN_OR_RETURN(windows.x,
                        axis_window(std::int64_t{input.width} + padding.left + padding.right, a.get_int("filter_width"),
                                    a.get_int("stride_w"), 1, mode, padding.left));
  REEF_REQUIRE(output.shape.rank() == 4 && output.shape[0] == 1 && output.shape[1] == windows.y.outputs &&
                   output.shape[2] == windows.x.outputs && output.shape[3] == input.channels,
               "output {} should be [1, {}, {}, {}]", output.shape.to_string(), windows.y.outputs, windows.x.outputs,
               input.channels);
  return windows;
}

}  // namespace

void add_pool(Builder& builder, std::int32_t op, const Pool& pool) {
  builder.add_step(op, pool, {Read{pool.input, Windows{pool.y, pool.x}}}, {pool.output}, finish_pool);
}

Pool plain_pool(const Builder& builder, std::int32_t input, std::int32_t output, const Windows& windows) {
  Pool pool;
  pool.input = input;
  pool.output = output;
  pool.y = windows.y;
  pool.x = windows.x;
  const TiledTensor &from = builder.tensor(input), &to = builder.tensor(output);
  pool.image_height = from.height;
  pool.image_width = from.width;
  pool.input_zero = from.zero_point;
  pool.output_zero = to.zero_point;
  pool.input_scale = from.scale;
  pool.output_scale = to.scale;
  pool.clamp = numeric::chip_clamp(to.scale, to.zero_point, numeric::ChipActivation::kNone);
  return pool;
}

Status lower_pool(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const Value value, builder.image_for_windows(from));
  const std::int32_t to = builder.op(op).outputs[0];
  Pool pool;
  pool.is_average = builder.op(op).type == Op::AVERAGE_POOL_2D;
  pool.input = value.tensor;
  REEF_ASSIGN_OR_RETURN(const Windows windows, windows_of(builder, op, value));
  pool.y = windows.y;
  pool.x = windows.x;
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(builder.op(op)));
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(to)));
  if (!pool.is_average && !same) return unsupported("a maximum of another scale or zero point is not generated");
  REEF_ASSIGN_OR_RETURN(pool.output, builder.new_grid(to));
  const TiledTensor &input = builder.tensor(pool.input), &output = builder.tensor(pool.output);
  for (const float scale : {input.scale, output.scale}) {
    if (!(scale > 0) || !std::isfinite(scale)) return unsupported("{} is no scale", scale);
  }
  pool.image_top = -value.padding.top;
  pool.image_left = -value.padding.left;
  pool.image_height = input.height + value.padding.top + value.padding.bottom;
  pool.image_width = input.width + value.padding.left + value.padding.right;
  const bool whole_image = pool.y.outputs == 1 && pool.x.outputs == 1 && pool.y.kernel == pool.image_height &&
                           pool.x.kernel == pool.image_width;
  if (whole_image) pool.order = numeric::ChipPoolOrder::kOutputLast;
  pool.input_zero = input.zero_point;
  pool.output_zero = output.zero_point;
  pool.input_scale = input.scale;
  pool.output_scale = output.scale;
  pool.clamp = numeric::chip_clamp(output.scale, output.zero_point, activation);
  builder.set_value(to, {pool.output, {}});
  add_pool(builder, op, pool);
  return ok_status();
}

}  // namespace reef::lower
