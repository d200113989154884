// SPDX-License-Identifier: Apache-2.0
// RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR.
//
// Twice the size is one instruction of the chip (tiled/resample.h). It reads a pixel beyond each border, where the
// border is repeated: copies put it into the halo. Nearest neighbours of any other size are copies of pixels.
// Bilinear interpolation by other factors, and of images that are too small for the instruction, is left to
// resize_bilinear.cpp.
#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "lower/lowerings.h"
#include "lower/movement.h"
#include "lower/resize_bilinear.h"
#include "lower/row_relations.h"
#include "lower/windows.h"
#include "tiled/resample.h"

namespace reef::lower {
namespace {

using tiled::AxisPartition;
using tiled::kResampleFactor;
using tiled::LocalCopy;
using tiled::resample_window;

struct Resize {
  bool bilinear = false, align_corners = false, half_pixels = false;
};

// TFLite's rule, in float as its kernel computes it.
std::vector<std::int64_t> nearest(std::int32_t from, std::int32_t to, const Resize& how) {
  const float scale = how.align_corners && to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                                                  : static_cast<float>(from) / static_cast<float>(to);
  const float shift = how.half_pixels ? 0.5f : 0.0f;
  std::vector<std::int64_t> result;
  for (std::int32_t i = 0; i < to; ++i) {
    const float at = (static_cast<float>(i) + shift) * scale;
    const float rounded = how.align_corners ? std::round(at) : std::floor(at);
    result.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(rounded), 0, from - 1));
  }
  return result;
}

// Where the nearest pixels are, up to what float rounding makes of it.
tiled::Window near_window(std::int32_t from, std::int32_t to, const Resize& how) {
  if (how.align_corners && to > 1) {
    return {.outputs = to, .stride = 2 * (from - 1), .pad_before = 1 - to, .enlarged = 2 * (to - 1)};
  }
  return {.outputs = to, .stride = 2 * from, .pad_before = how.half_pixels ? -from : 0, .enlarged = 2 * to};
}

Status copy_nearest(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to, const Resize& how) {
  const ir::Shape shape = builder.source(from).shape, result = builder.source(to).shape;
  const std::vector<std::int64_t> strides = element_strides(shape);
  AxisOffsets axes;
  axes.offsets.push_back({0});
  for (const int d : {1, 2}) {
    std::vector<std::int64_t> offsets = nearest(shape[d], result[d], how);
    for (std::int64_t& offset : offsets) offset *= strides[reef::at(d)];
    axes.offsets.push_back(std::move(offsets));
  }
  axes.offsets.emplace_back();
  for (std::int64_t c = 0; c < shape[3]; ++c) axes.offsets.back().push_back(c);
  const Windows windows{near_window(shape[1], result[1], how), near_window(shape[2], result[2], how)};
  return move_elements(builder, op, from, to, by_axes(std::move(axes)), windows);
}

// One row or column of pixels in a tile's buffer, next to another one.
struct Edge {
  std::int32_t from_y = 0, from_x = 0, to_y = 0, to_x = 0, rows = 1, columns = 1;
};

LocalCopy copy_of(const tiled::TiledTensor& tensor, int tile, const Edge& edge) {
  const int row = chip::tile_row(tile), column = chip::tile_column(tile);
  const auto byte = [&](std::int32_t y, std::int32_t x) {
    return tensor.offset + tensor.rows.place(row, y) * tensor.row_bytes(column) +
           tensor.columns.place(column, x) * tensor.pitch;
  };
  LocalCopy copy;
  copy.source = copy.target = tensor.object;
  copy.source_offset = byte(edge.from_y, edge.from_x);
  copy.target_offset = byte(edge.to_y, edge.to_x);
  copy.dims = {{(tensor.channels + kWord - 1) / kWord, kWord, kWord},
               {edge.columns, tensor.pitch, tensor.pitch},
               {edge.rows, tensor.row_bytes(column), tensor.row_bytes(column)}};
  copy.tiles = tiled::mask_of(tile);
  return copy;
}

void add_copy(std::vector<LocalCopy>& copies, const LocalCopy& copy) {
  for (LocalCopy& other : copies) {
    LocalCopy same = other;
    same.tiles = copy.tiles;
    if (same != copy) continue;
    other.tiles |= copy.tiles;
    return;
  }
  copies.push_back(copy);
}

// The border of the image once more, outside of it: columns over all rows that a tile has, then rows over all columns,
// so that corners come out right.
Status finish_edges(Builder& builder, tiled::Step& step, std::int32_t input) {
  const tiled::TiledTensor& image = builder.tensor(input);
  tiled::LocalCopies work;
  work.source_zero = work.target_zero = image.zero_point;
  for (int t = 0; t < chip::kTiles; ++t) {
    const tiled::TileShare& rows = image.rows.tile(chip::tile_row(t));
    const tiled::TileShare& columns = image.columns.tile(chip::tile_column(t));
    if (!rows.is_read || !columns.is_read) continue;
    const auto column_to = [&](std::int32_t from, std::int32_t to) {
      add_copy(work.first_round, copy_of(image, t, {rows.needed_begin, from, rows.needed_begin, to, rows.needed(), 1}));
    };
    const auto row_to = [&](std::int32_t from, std::int32_t to) {
      add_copy(work.second_round,
               copy_of(image, t, {from, columns.needed_begin, to, columns.needed_begin, 1, columns.needed()}));
    };
    if (columns.needed_begin < 0) column_to(0, -1);
    if (columns.needed_end > image.width) column_to(image.width - 1, image.width);
    if (rows.needed_begin < 0) row_to(0, -1);
    if (rows.needed_end > image.height) row_to(image.height - 1, image.height);
  }
  work.identity = builder.identity(step);
  step.work = std::move(work);
  return ok_status();
}

Result<std::int32_t> private_copy(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t tensor) {
  const tiled::TiledTensor& image = builder.tensor(tensor);
  Rearrangement what;
  what.operands = {Read{tensor}};
  REEF_ASSIGN_OR_RETURN(what.output, builder.new_grid(from, {image.height, image.width, image.channels}));
  what.source_of = in_order();
  return add_rearrangement(builder, op, std::move(what));
}

Status double_size(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to, const Resize& how) {
  REEF_ASSIGN_OR_RETURN(std::int32_t input, builder.grid(from));
  if (!builder.has_one_reader(input)) {
    REEF_ASSIGN_OR_RETURN(input, private_copy(builder, op, from, input));
  }
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_grid(to));
  builder.set_value(to, {output, {}});
  const Windows windows{resample_window(builder.tensor(output).height), resample_window(builder.tensor(output).width)};
  builder.add_step(op, tiled::LocalCopies{}, {Read{input, windows}}, {input},
                   [input](Builder& b, tiled::Step& step) { return finish_edges(b, step, input); });
  tiled::Resample work{input, output, how.bilinear, how.half_pixels};
  builder.add_step(op, work, {Read{input, windows}}, {output});
  return ok_status();
}

// Whether the instruction for it can be used: tiles that have nothing of the image may need none of it.
bool is_doubled(const ir::Shape& from, const ir::Shape& to) {
  for (const int d : {1, 2}) {
    if (to[d] != kResampleFactor * from[d]) return false;
    const tiled::Window window = resample_window(to[d]);
    if (reads_beyond_owners(AxisPartition::of(from[d], {&window, 1}))) return false;
  }
  return true;
}

}  // namespace

std::optional<tiled::Window> resize_rows(const ir::Subgraph& graph, const ir::Operator& op) {
  const ir::Shape& from = graph.tensors[reef::at(op.inputs[0])].shape;
  const ir::Shape& to = graph.tensors[reef::at(op.outputs[0])].shape;
  const ir::Attributes& a = op.attributes;
  const Resize how{op.type == Op::RESIZE_BILINEAR, a.get_bool("align_corners"), a.get_bool("half_pixel_centers")};
  if (!how.align_corners && is_doubled(from, to)) return resample_window(to[1]);
  if (how.bilinear) return interpolated_rows(from[1], to[1], {how.align_corners, how.half_pixels});
  // A row more on both sides, for the rounding of floats.
  tiled::Window window = near_window(from[1], to[1], how);
  window.pad_before += window.enlarged;
  window.kernel = 3;
  return window;
}

Status lower_resize(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  const ir::Shape &shape = builder.source(from).shape, &result = builder.source(to).shape;
  REEF_RETURN_IF_ERROR(image_of(builder.source(from)).status());
  REEF_RETURN_IF_ERROR(image_of(builder.source(to)).status());
  REEF_REQUIRE(shape.rank() == 4 && result.rank() == 4 && result[3] == shape[3], "{} cannot become {}",
               shape.to_string(), result.to_string());
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(to)));
  if (!same) return unsupported("input and output are quantized differently");
  const ir::Attributes& a = builder.op(op).attributes;
  const Resize how{builder.op(op).type == Op::RESIZE_BILINEAR, a.get_bool("align_corners"),
                   a.get_bool("half_pixel_centers")};
  if (shape == result) {
    REEF_ASSIGN_OR_RETURN(const Value value, builder.value(from));
    builder.set_value(to, value);
    return ok_status();
  }
  if (!how.align_corners && is_doubled(shape, result)) return double_size(builder, op, from, to, how);
  if (!how.bilinear) return copy_nearest(builder, op, from, to, how);
  return interpolate(builder, op, from, to, {how.align_corners, how.half_pixels});
}

}  // namespace reef::lower
