// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL of two tensors.
//
// Problem: results are spread over the tiles by rows of x; every row needs all of its matrix y.
// Approach: x is an image whose pixels are its rows, matrix after matrix, so that a row of tiles has rows of few
// matrices. These matrices of y, and only these, are copied over the ring to its four tiles (tiled::RingCopies), and
// multiplied there (tiled::MatrixProduct). Where the copies would take too much memory there are several such pairs of
// steps, each for some of the matrices, or for some columns of the result.
//
// y comes as it is: as [n, k] (adj_y) where k is a multiple of four, or as [k, n]. Other forms of it, x as [k, m] and
// matrices of x that are used more than once are made by moving elements first.
#include "lower/matrix_product.h"
#include "base/divide_up.h"

#include <algorithm>
#include <memory>

#include "lower/lowerings.h"
#include "lower/rearrange.h"
#include "lower/ring_copies.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::MatrixProduct;
using tiled::MatrixRound;

constexpr std::int64_t kMostLoopPixels = 1 << 14;  // of a loop

// Leading dimensions of both operands, and which of their matrices each product has.
struct Batches {
  std::vector<std::int32_t> x, y;  // by product
  std::int32_t x_matrices = 1, y_matrices = 1;
};

Batches batches_of(const ir::Shape& x, const ir::Shape& y, const ir::Shape& out) {
  Batches result;
  result.x_matrices = static_cast<std::int32_t>(x.product(0, x.rank() - 2));
  result.y_matrices = static_cast<std::int32_t>(y.product(0, y.rank() - 2));
  const auto count = static_cast<std::int32_t>(out.product(0, out.rank() - 2));
  const auto matrix_of = [&](const ir::Shape& shape, std::int32_t product) {
    std::int64_t matrix = 0, stride = 1;
    for (int d = out.rank() - 3, from = shape.rank() - 3; d >= 0 && from >= 0; --d, --from) {
      if (shape[from] != 1) matrix += stride * (product % out[d]);
      stride *= shape[from];
      product /= out[d];
    }
    return static_cast<std::int32_t>(matrix);
  };
  for (std::int32_t product = 0; product < count; ++product) {
    result.x.push_back(matrix_of(x, product));
    result.y.push_back(matrix_of(y, product));
  }
  return result;
}

// All products of an operator, and the tensors they are made of.
struct Plan {
  MatrixShape shape;
  bool rows_are_cells = false;
  std::vector<std::int32_t> y_of;         // by product: the matrix of y
  std::int32_t x = -1, y = -1, out = -1;  // TiledProgram::tensors, on the grid
  std::int32_t chunks = 1;                // in which a row of tiles has its matrices
  std::int32_t columns_at_once = 0;       // of the result
  std::int32_t y_rows() const { return rows_are_cells ? shape.columns : shape.depth; }
};

// A pair of steps: some of the matrices that a row of tiles needs, some columns of the result.
struct MatrixProductPiece {
  std::shared_ptr<const Plan> plan;
  std::int32_t chunk = 0, first_column = 0, columns = 0;
  std::int32_t copies = -1;  // TiledProgram::tensors

  bool rows_are_cells() const { return plan->rows_are_cells; }
  // Pixels of a matrix's copy.
  std::int32_t copy_rows() const { return rows_are_cells() ? columns : divide_up(plan->shape.depth, kWord) * kWord; }
  std::int32_t copy_words() const { return divide_up(rows_are_cells() ? plan->shape.depth : columns, kWord); }
};

// Products of which a row of tiles has rows, of this piece.
std::vector<std::int32_t> products_of(const Builder& builder, const MatrixProductPiece& piece, int tile_row) {
  const TiledTensor& out = builder.tensor(piece.plan->out);
  const tiled::TileShare& rows = out.rows.tile(tile_row);
  std::vector<std::int32_t> products;
  if (rows.own() == 0) return products;
  const std::int64_t width = out.width, matrix = piece.plan->shape.rows;
  const auto first = static_cast<std::int32_t>(rows.begin * width / matrix);
  const auto last = static_cast<std::int32_t>((rows.end * width - 1) / matrix);
  const std::int32_t each = divide_up(last - first + 1, piece.plan->chunks);
  for (std::int32_t i = piece.chunk * each; i < std::min((piece.chunk + 1) * each, last - first + 1); ++i) {
    products.push_back(first + i);
  }
  return products;
}

// The matrices of y that these need, each once, in the order of their copies.
std::vector<std::int32_t> matrices_of(const MatrixProductPiece& piece, const std::vector<std::int32_t>& products) {
  std::vector<std::int32_t> matrices;
  for (const std::int32_t product : products) {
    const std::int32_t matrix = piece.plan->y_of[reef::at(product)];
    if (std::find(matrices.begin(), matrices.end(), matrix) == matrices.end()) matrices.push_back(matrix);
  }
  return matrices;
}

bool has_rows(const tiled::TileShare& share, std::int64_t begin, std::int64_t end) {
  return share.begin < end && begin < share.end;
}

// Copies of one matrix of y to a row of tiles. In work by slices several rows of tiles may have it; the reader's own is
// preferred.
void add_copies(const Builder& builder, const MatrixProductPiece& piece, std::int32_t matrix, std::int32_t place,
                int reader, std::vector<tiled::RingCopy>& copies) {
  const TiledTensor &y = builder.tensor(piece.plan->y), &all = builder.tensor(piece.copies);
  PixelRun run;
  run.begin = std::int64_t{matrix} * piece.plan->y_rows() + (piece.rows_are_cells() ? piece.first_column : 0);
  run.end = run.begin + (piece.rows_are_cells() ? piece.columns : piece.plan->shape.depth);
  run.first_channel = piece.rows_are_cells() ? 0 : piece.first_column;
  run.words = piece.copy_words();
  const bool has_it =
      y.rows.is_local && has_rows(y.rows.tile(reader), run.begin / y.width, divide_up(run.end, y.width));
  const auto tiles = static_cast<tiled::TileMask>(0xf << (chip::kTileColumns * reader));
  add_pixel_copies(y, run, all, place * piece.copy_rows() * all.pitch, tiles, has_it ? reader : -1, copies);
}

Status finish_copies(Builder& builder, tiled::Step& step, const MatrixProductPiece& piece) {
  tiled::RingCopies work;
  for (int reader = 0; reader < chip::kTileRows; ++reader) {
    const std::vector<std::int32_t> matrices = matrices_of(piece, products_of(builder, piece, reader));
    TiledTensor& all = builder.program().tensor(piece.copies);
    all.height = std::max(all.height, static_cast<std::int32_t>(matrices.size()));
    tiled::NarrowObject& object = builder.program().narrow[reef::at(all.object)];
    object.bytes = std::max(object.bytes, all.tile_bytes());
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      add_copies(builder, piece, matrices[i], static_cast<std::int32_t>(i), reader, work.copies);
    }
  }
  if (work.copies.empty()) return ok_status();  // a chunk that no row of tiles has
  return set_ring_copies(builder, step, std::move(work));
}

MatrixRound round_of(const MatrixProductPiece& piece, const TiledTensor& a, const TiledTensor& out, int tile,
                     const OwnPixelRange& range) {
  const int row = chip::tile_row(tile), column = chip::tile_column(tile);
  const auto place = [&](const TiledTensor& tensor) {
    return tiled::MatrixRows{tensor.byte_of(row, column, range.y, range.x) - tensor.address, tensor.pitch,
                             tensor.row_bytes(column)};
  };
  MatrixRound round{place(a), place(out), range.columns, range.rows, 0};
  round.output.first += piece.first_column;
  return round;
}

Status finish_product(Builder& builder, tiled::Step& step, const MatrixProductPiece& piece) {
  auto& work = std::get<MatrixProduct>(step.work);
  const TiledTensor &a = builder.tensor(work.a), &all = builder.tensor(work.b), &out = builder.tensor(work.output);
  work.matrices = all.height;
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    if ((out.owners() & tiled::mask_of(tile)) == 0) continue;
    const std::vector<std::int32_t> products = products_of(builder, piece, chip::tile_row(tile));
    const std::vector<std::int32_t> matrices = matrices_of(piece, products);
    for (const std::int32_t product : products) {
      const std::int64_t first = std::int64_t{product} * piece.plan->shape.rows;
      const std::int32_t matrix = piece.plan->y_of[reef::at(product)];
      const auto place = std::find(matrices.begin(), matrices.end(), matrix) - matrices.begin();
      for (const OwnPixelRange& range : own_pixels_between(out, tile, first, first + piece.plan->shape.rows)) {
        REEF_RETURN_IF_ERROR(check_round(range));
        MatrixRound round = round_of(piece, a, out, tile, range);
        round.b_first = static_cast<std::int32_t>(place) * piece.copy_rows() * all.pitch;
        work.rounds[reef::at(tile)].push_back(round);
      }
    }
  }
  work.lines = builder.new_wide(2 * std::int64_t{work.groups()} * work.depth_words());
  step.wide_used = {work.lines};
  return ok_status();
}

void add_piece(Builder& builder, std::int32_t op, MatrixProductPiece piece, bool is_last) {
  const Plan& plan = *piece.plan;
  const TiledTensor& y = builder.tensor(plan.y);
  TiledTensor copies;
  copies.source = y.source;
  copies.spread = tiled::Spread::kCopies;
  copies.tiles = tiled::kAllTiles;
  copies.width = piece.copy_rows();
  copies.channels = copies.pitch = piece.copy_words() * kWord;
  copies.zero_point = y.zero_point;
  copies.scale = y.scale;
  piece.copies = builder.add_tensor(std::move(copies));
  builder.add_step(op, tiled::RingCopies{}, {Read{plan.y}}, {piece.copies},
                   [piece](Builder& b, tiled::Step& step) { return finish_copies(b, step, piece); });
  MatrixProduct work;
  work.a = plan.x;
  work.b = piece.copies;
  work.output = plan.out;
  work.rows_are_cells = plan.rows_are_cells;
  work.depth = plan.shape.depth;
  work.results = piece.columns;
  work.is_last = is_last;
  set_numbers(builder, work);
  builder.add_step(op, std::move(work), {Read{plan.x}, Read{piece.copies}}, {plan.out},
                   [piece](Builder& b, tiled::Step& step) { return finish_product(b, step, piece); });
}

// ---- Operands ----

// An operand in any layout; constants are made.
Result<std::int32_t> operand_of(Builder& builder, std::int32_t op, std::size_t k) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t source, builder.operand(op, k));
  if (is_constant(builder, source)) return constant_vector(builder, op, source);
  return builder.any_layout(source);
}

std::int32_t moved(Builder& builder, std::int32_t op, std::int32_t from, const Image& image, ElementMap map) {
  const TiledTensor& tensor = builder.tensor(from);
  TiledTensor made;
  made.source = tensor.source;
  made.height = image.height;
  made.width = image.width;
  made.channels = image.channels;
  made.pitch = made.pixel_words() * kWord;
  made.zero_point = tensor.zero_point;
  made.scale = tensor.scale;
  Rearrangement what;
  what.operands = {Read{from}};
  what.output = builder.add_tensor(std::move(made));
  what.source_of = std::move(map);
  return add_rearrangement(builder, op, std::move(what));
}

// Matrices of `rows` x `columns`, one after the other; `transposed`: they lie as columns x rows.
ElementMap matrices_in_order(std::vector<std::int32_t> which, std::int64_t rows, std::int64_t columns,
                             bool transposed) {
  return [=, which = std::move(which)](std::int64_t element) {
    const std::int64_t size = rows * columns, at = element % size, row = at / columns, column = at % columns;
    const std::int64_t first = which[reef::at(element / size)] * size;
    if (transposed) return ElementSource{0, first + column * rows + row, 1};
    return ElementSource{0, first + at, columns - column};
  };
}

std::vector<std::int32_t> each_once(std::int32_t count) {
  std::vector<std::int32_t> result;
  for (std::int32_t i = 0; i < count; ++i) result.push_back(i);
  return result;
}

// Whether the pixels of each matrix of so many rows are whole rows of the image, or there is one matrix.
bool has_matrices(const TiledTensor& tensor, std::int32_t matrices, std::int32_t rows, std::int32_t channels) {
  return tensor.spread == tiled::Spread::kGrid && tensor.channels == channels &&
         (matrices == 1 || rows % tensor.width == 0);
}

// An image whose pixels are the rows of all matrices, matrix after matrix, with a share for all tiles if possible.
Image image_of_matrices(std::int32_t matrices, std::int32_t rows, std::int32_t channels) {
  const std::int64_t pixels = std::int64_t{matrices} * rows;
  Image best{matrices, rows, channels};
  std::int64_t least = divide_up(matrices, chip::kTileRows) * std::int64_t{divide_up(rows, chip::kTileColumns)};
  for (std::int32_t width = 1; width <= rows; ++width) {
    if (rows % width != 0) continue;
    const auto height = static_cast<std::int32_t>(pixels / width);
    const std::int64_t share = divide_up(height, chip::kTileRows) * std::int64_t{divide_up(width, chip::kTileColumns)};
    if (share >= least) continue;
    least = share;
    best = {height, width, channels};
  }
  return best;
}

Result<std::int32_t> rows_of_x(Builder& builder, std::int32_t op, const MatrixShape& shape, const Batches& batches) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, operand_of(builder, op, 0));
  const bool adj = builder.op(op).attributes.get_bool("adj_x");
  const bool repeats = batches.x_matrices != shape.batches;
  const Image image = image_of_matrices(shape.batches, shape.rows, shape.depth);
  if (!adj && !repeats) {
    if (has_matrices(builder.tensor(from), shape.batches, shape.rows, shape.depth)) return from;
    if (!is_constant(builder, builder.op(op).inputs[0])) return builder.grid(builder.op(op).inputs[0], image);
  }
  return moved(builder, op, from, image, matrices_in_order(batches.x, shape.rows, shape.depth, adj));
}

// As [n, k] or [k, n].
Result<std::int32_t> rows_of_y(Builder& builder, std::int32_t op, const Plan& plan, std::int32_t matrices) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, operand_of(builder, op, 1));
  const bool adj = builder.op(op).attributes.get_bool("adj_y");
  const std::int32_t rows = plan.y_rows(), channels = plan.rows_are_cells ? plan.shape.depth : plan.shape.columns;
  const Image image = image_of_matrices(matrices, rows, channels);
  if (adj == plan.rows_are_cells) {
    if (has_matrices(builder.tensor(from), matrices, rows, channels)) return from;
    if (!is_constant(builder, builder.op(op).inputs[1])) return builder.grid(builder.op(op).inputs[1], image);
  }
  return moved(builder, op, from, image,
               matrices_in_order(each_once(matrices), rows, channels, adj != plan.rows_are_cells));
}

// In how many pieces copies of y fit.
void choose_pieces(Plan& plan, const TiledTensor& out) {
  const std::int32_t words = divide_up(plan.shape.depth, kWord), groups = divide_up(plan.shape.columns, chip::kCells);
  std::int32_t products = 1;  // that a row of tiles has rows of
  for (int t = 0; t < chip::kTileRows; ++t) {
    const std::int64_t begin = std::int64_t{tiled::cut(out.height, t)} * out.width;
    const std::int64_t end = std::int64_t{tiled::cut(out.height, t + 1)} * out.width;
    if (begin < end) {
      products =
          std::max(products, static_cast<std::int32_t>((end - 1) / plan.shape.rows - begin / plan.shape.rows) + 1);
    }
  }
  const std::int64_t column_bytes = std::int64_t{words} * kWord, group_bytes = chip::kCells * column_bytes;
  const auto by_copies = static_cast<std::int32_t>(kMostMatrixCopyBytes / group_bytes);
  const std::int32_t at_once = std::min({by_copies, kMostMatrixLines / words, groups});
  plan.columns_at_once = at_once == groups ? plan.shape.columns : at_once * chip::kCells;
  if (at_once < 1) {  // not even a group of cells: some of them
    const auto cells = static_cast<std::int32_t>(kMostMatrixCopyBytes / column_bytes) / kWord * kWord;
    plan.columns_at_once = std::min(std::clamp(cells, kWord, std::int32_t{chip::kCells}), plan.shape.columns);
  }
  const std::int64_t matrix_bytes = plan.columns_at_once * column_bytes;
  const auto matrices =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(kMostMatrixCopyBytes / matrix_bytes, 1, products));
  plan.chunks = divide_up(products, matrices);
}

Result<MatrixShape> shape_of(const Builder& builder, std::int32_t op) {
  const ir::Operator& from = builder.op(op);
  REEF_ASSIGN_OR_RETURN(const std::int32_t x, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::int32_t y, builder.operand(op, 1));
  const ir::Shape &x_shape = builder.source(x).shape, &y_shape = builder.source(y).shape;
  const ir::Shape& out = builder.source(from.outputs[0]).shape;
  if (x_shape.rank() < 2 || y_shape.rank() < 2 || out.rank() < 2) return unsupported("an operand is no matrix");
  MatrixShape shape;
  shape.rows = out.last(1);
  shape.columns = out.last(0);
  shape.depth = x_shape.last(from.attributes.get_bool("adj_x") ? 1 : 0);
  const std::int64_t batches = out.product(0, out.rank() - 2);
  REEF_RETURN_IF_ERROR(image_of(builder.source(from.outputs[0])).status());
  if (shape.depth > kMostMatrixDepth) {
    return unsupported("each result is a sum of {} products; at most {} are generated", shape.depth, kMostMatrixDepth);
  }
  shape.batches = static_cast<std::int32_t>(batches);
  return shape;
}

}  // namespace

void set_numbers(const Builder& builder, MatrixProduct& product) {
  const TiledTensor &a = builder.tensor(product.a), &b = builder.tensor(product.b),
                    &out = builder.tensor(product.output);
  product.a_zero = a.zero_point;
  product.b_zero = b.zero_point;
  product.output_zero = out.zero_point;
  product.multiplier = numeric::chip_product_multiplier(a.scale, b.scale, out.scale);
  product.clamp = numeric::chip_clamp(out.scale, out.zero_point, numeric::ChipActivation::kNone);
}

std::vector<OwnPixelRange> own_pixels_between(const TiledTensor& grid, int tile, std::int64_t begin, std::int64_t end) {
  const tiled::TileShare& rows = grid.rows.tile(chip::tile_row(tile));
  const tiled::TileShare& columns = grid.columns.tile(chip::tile_column(tile));
  std::vector<OwnPixelRange> ranges;
  const std::int64_t width = grid.width;
  const auto first = static_cast<std::int32_t>(std::max<std::int64_t>(rows.begin, begin / width));
  const auto last = static_cast<std::int32_t>(std::min<std::int64_t>(rows.end, (end + width - 1) / width));
  for (std::int32_t y = first; y < last; ++y) {
    const auto left = static_cast<std::int32_t>(std::max<std::int64_t>(columns.begin, begin - y * width));
    const auto right = static_cast<std::int32_t>(std::min<std::int64_t>(columns.end, end - y * width));
    if (left >= right) continue;
    OwnPixelRange* above = ranges.empty() ? nullptr : &ranges.back();
    if (above != nullptr && above->x == left && above->columns == right - left && above->y + above->rows == y) {
      ++above->rows;
    } else {
      ranges.push_back({y, left, 1, right - left});
    }
  }
  return ranges;
}

void add_pixel_copies(const TiledTensor& from, const PixelRun& run, const TiledTensor& to, std::int32_t target,
                      tiled::TileMask tiles, int only_row, std::vector<tiled::RingCopy>& copies) {
  const std::int32_t pitch = to.pitch / kWord;
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    if ((from.owners() & tiled::mask_of(tile)) == 0 || (only_row >= 0 && row != only_row)) continue;
    for (const OwnPixelRange& range : own_pixels_between(from, tile, run.begin, run.end)) {
      const std::int32_t at = from.rows.place(row, range.y) * from.row_bytes(column) +
                              from.columns.place(column, range.x) * from.pitch + run.first_channel;
      const std::int64_t pixel = std::int64_t{range.y} * from.width + range.x - run.begin;
      tiled::RingCopy copy{.from = tile, .to = tiles, .source = {}, .target = {}};
      copy.source = {
          from.object,
          from.offset + at,
          {{1, run.words}, {from.pitch / kWord, range.columns}, {from.row_bytes(column) / kWord, range.rows}}};
      copy.target = {to.object,
                     target + static_cast<std::int32_t>(pixel * to.pitch),
                     {{1, run.words}, {pitch, range.columns}, {pitch * from.width, range.rows}}};
      const auto same = std::find_if(copies.begin(), copies.end(), [&](const tiled::RingCopy& other) {
        return other.from == copy.from && other.source == copy.source && other.target == copy.target;
      });
      if (same != copies.end()) {
        same->to |= copy.to;
      } else {
        copies.push_back(std::move(copy));
      }
    }
  }
}

Status check_round(const OwnPixelRange& range) {
  const std::int64_t pixels = std::int64_t{range.rows} * range.columns;
  if (pixels <= kMostLoopPixels) return ok_status();
  return unsupported("a tile has {} rows of a matrix, more than a loop can count", pixels);
}

Status lower_matrix_product(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const MatrixShape shape, shape_of(builder, op));
  const ir::Operator& from = builder.op(op);
  const Batches batches = batches_of(builder.source(from.inputs[0]).shape, builder.source(from.inputs[1]).shape,
                                     builder.source(from.outputs[0]).shape);
  auto plan = std::make_shared<Plan>();
  plan->shape = shape;
  plan->rows_are_cells = from.attributes.get_bool("adj_y") && shape.depth % kWord == 0;
  plan->y_of = batches.y;
  REEF_ASSIGN_OR_RETURN(plan->x, rows_of_x(builder, op, shape, batches));
  REEF_ASSIGN_OR_RETURN(plan->y, rows_of_y(builder, op, *plan, batches.y_matrices));
  const TiledTensor& x = builder.tensor(plan->x);
  REEF_ASSIGN_OR_RETURN(plan->out, builder.new_grid(from.outputs[0], Image{x.height, x.width, shape.columns}));
  builder.set_value(from.outputs[0], {plan->out, {}});
  choose_pieces(*plan, builder.tensor(plan->out));
  for (std::int32_t chunk = 0; chunk < plan->chunks; ++chunk) {
    for (std::int32_t column = 0; column < shape.columns; column += plan->columns_at_once) {
      const std::int32_t columns = std::min(plan->columns_at_once, shape.columns - column);
      const bool is_last = chunk + 1 == plan->chunks && column + columns == shape.columns;
      add_piece(builder, op, {.plan = plan, .chunk = chunk, .first_column = column, .columns = columns}, is_last);
    }
  }
  return ok_status();
}

}  // namespace reef::lower
