// SPDX-License-Identifier: Apache-2.0
// Attention with heads as runs of channels.
//
//   scores   each token has a row of scores for each head: an image of `heads` pixels for each pixel of the queries.
//            Keys of some heads are copied to all tiles; a tile multiplies its tokens' run of channels of one head
//            after the other
//   SOFTMAX  of each pixel, as of any image
//   means    the same with values; results of a head are its run of channels of the joined result
//
// Where keys (values) of all heads take too much memory, some heads are done at a time; of one head, some keys.
#include "base/divide_up.h"

#include <algorithm>

#include "lower/matrix_product.h"
#include "lower/ring_copies.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::MatrixProduct;
using tiled::MatrixRound;

// One pair of steps: a copy of some heads' keys or values, and the products with them.
struct Piece {
  bool is_scores = false;
  std::int32_t tokens = -1;  // TiledProgram::tensors: what is copied from, all channels
  std::int32_t copies = -1;  // TiledProgram::tensors
  std::int32_t first_head = 0, heads = 0, all_heads = 0;
  std::int32_t first_key = 0, keys = 0;
  std::int32_t depth = 0;                 // channels of a head that are copied
  std::vector<std::int32_t> query_first;  // scores: channel, by head
  std::vector<std::int32_t> runs;         // channels of `tokens` at which the runs begin that are copied, each once
  std::vector<std::int32_t> run_of;       // by head of the piece: which of the runs
};

Status finish_copies(Builder& builder, tiled::Step& step, const Piece& piece) {
  const TiledTensor &from = builder.tensor(piece.tokens), &to = builder.tensor(piece.copies);
  tiled::RingCopies work;
  const std::int32_t words = piece.depth / kWord;
  for (std::size_t i = 0; i < piece.runs.size();) {
    // Neighbours are copied together.
    std::size_t end = i + 1;
    while (end < piece.runs.size() && piece.runs[end] == piece.runs[end - 1] + piece.depth) ++end;
    const PixelRun run{piece.first_key, piece.first_key + piece.keys, piece.runs[i],
                       words * static_cast<std::int32_t>(end - i)};
    add_pixel_copies(from, run, to, static_cast<std::int32_t>(i) * piece.depth, tiled::kAllTiles, -1, work.copies);
    i = end;
  }
  return set_ring_copies(builder, step, std::move(work));
}

// Where the rows of a head lie: those of a tile's tokens, at `count` pixels for each token.
tiled::MatrixRows rows_of(const TiledTensor& tensor, int tile, const OwnPixelRange& tokens, std::int32_t count,
                          std::int32_t pixel, std::int32_t channel) {
  const int row = chip::tile_row(tile), column = chip::tile_column(tile);
  return {tensor.byte_of(row, column, tokens.y, tokens.x * count + pixel) - tensor.address + channel,
          count * tensor.pitch, tensor.row_bytes(column)};
}

Status finish_product(Builder& builder, tiled::Step& step, const Piece& piece) {
  auto& work = std::get<MatrixProduct>(step.work);
  const TiledTensor &a = builder.tensor(work.a), &out = builder.tensor(work.output);
  const TiledTensor& tokens = piece.is_scores ? a : out;
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    if ((tokens.owners() & tiled::mask_of(tile)) == 0) continue;
    const tiled::TileShare& rows = tokens.rows.tile(chip::tile_row(tile));
    const tiled::TileShare& columns = tokens.columns.tile(chip::tile_column(tile));
    const OwnPixelRange own{rows.begin, columns.begin, rows.own(), columns.own()};
    REEF_RETURN_IF_ERROR(check_round(own));
    for (std::int32_t h = 0; h < piece.heads; ++h) {
      const std::int32_t head = piece.first_head + h;
      MatrixRound round;
      round.columns = own.columns;
      round.rows = own.rows;
      round.b_first = piece.run_of[static_cast<std::size_t>(h)] * piece.depth;
      if (piece.is_scores) {
        round.a = rows_of(a, tile, own, 1, 0, piece.query_first[static_cast<std::size_t>(head)]);
        round.output = rows_of(out, tile, own, piece.all_heads, head, piece.first_key);
      } else {
        round.a = rows_of(a, tile, own, piece.all_heads, head, 0);
        round.output = rows_of(out, tile, own, 1, 0, head * piece.depth);
      }
      work.rounds[static_cast<std::size_t>(tile)].push_back(round);
    }
  }
  work.lines = builder.new_wide(2 * std::int64_t{work.groups()} * work.depth_words());
  step.wide_used = {work.lines};
  return ok_status();
}

void add_piece(Builder& builder, std::int32_t op, Piece piece, std::int32_t a, std::int32_t output, bool is_last) {
  const TiledTensor& from = builder.tensor(piece.tokens);
  TiledTensor copies;
  copies.source = from.source;
  copies.spread = tiled::Spread::kCopies;
  copies.tiles = tiled::kAllTiles;
  copies.width = piece.is_scores ? piece.keys : divide_up(piece.keys, kWord) * kWord;
  copies.channels = copies.pitch = static_cast<std::int32_t>(piece.runs.size()) * piece.depth;
  copies.zero_point = from.zero_point;
  copies.scale = from.scale;
  piece.copies = builder.add_tensor(std::move(copies));
  builder.add_step(op, tiled::RingCopies{}, {Read{piece.tokens}}, {piece.copies},
                   [piece](Builder& b, tiled::Step& step) { return finish_copies(b, step, piece); });
  MatrixProduct work;
  work.a = a;
  work.b = piece.copies;
  work.output = output;
  work.rows_are_cells = piece.is_scores;
  work.depth = piece.is_scores ? piece.depth : piece.keys;
  work.results = piece.is_scores ? piece.keys : piece.depth;
  work.is_last = is_last;
  set_numbers(builder, work);
  builder.add_step(op, std::move(work), {Read{a}, Read{piece.copies}}, {output},
                   [piece](Builder& b, tiled::Step& step) { return finish_product(b, step, piece); });
}

// All pieces of a product: `all` has the fields that are the same for each.
void add_pieces(Builder& builder, std::int32_t op, const Heads& from, const Piece& all, std::int32_t a,
                std::int32_t output) {
  const std::int32_t words = divide_up(all.is_scores ? all.depth : from.tokens, kWord);
  std::int32_t keys = from.tokens;
  if (all.is_scores) {
    const std::int64_t group_bytes = std::int64_t{chip::kCells} * all.depth;
    const auto by_copies = static_cast<std::int32_t>(kMostMatrixCopyBytes / group_bytes);
    const std::int32_t groups = std::max(1, std::min(by_copies, kMostMatrixLines / words));
    if (std::int64_t{groups} * chip::kCells < keys) keys = groups * chip::kCells;
  }
  const std::int64_t head_bytes = std::int64_t{keys} * all.depth;
  const auto heads =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(kMostMatrixCopyBytes / head_bytes, 1, all.all_heads));
  for (std::int32_t head = 0; head < all.all_heads; head += heads) {
    for (std::int32_t key = 0; key < from.tokens; key += keys) {
      Piece piece = all;
      piece.first_head = head;
      piece.heads = std::min(heads, all.all_heads - head);
      piece.first_key = key;
      piece.keys = std::min(keys, from.tokens - key);
      for (std::int32_t h = head; h < head + piece.heads; ++h) {
        const std::int32_t run = from.first[static_cast<std::size_t>(h)];
        const auto known = std::find(piece.runs.begin(), piece.runs.end(), run);
        piece.run_of.push_back(static_cast<std::int32_t>(known - piece.runs.begin()));
        if (known == piece.runs.end()) piece.runs.push_back(run);
      }
      const bool is_last = head + piece.heads == all.all_heads && key + piece.keys == from.tokens;
      add_piece(builder, op, std::move(piece), a, output, is_last);
    }
  }
}

// Tokens as pixels of an image, in whatever shape it is.
Result<std::int32_t> tokens_of(Builder& builder, const Heads& heads) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t as_it_is, builder.any_layout(heads.source));
  const TiledTensor& tensor = builder.tensor(as_it_is);
  if (tensor.spread == tiled::Spread::kGrid && tensor.channels == heads.channels) return as_it_is;
  std::int32_t height = 1;
  for (std::int32_t rows = 2; std::int64_t{rows} * rows <= heads.source_tokens; ++rows) {
    if (heads.source_tokens % rows == 0) height = rows;
  }
  return builder.grid(heads.source, Image{height, heads.source_tokens / height, heads.channels});
}

Status lower_scores(Builder& builder, std::int32_t op, const Attention& attention) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t queries, tokens_of(builder, attention.queries));
  Piece all;
  all.is_scores = true;
  REEF_ASSIGN_OR_RETURN(all.tokens, tokens_of(builder, attention.keys));
  all.all_heads = attention.heads;
  all.depth = attention.depth;
  all.query_first = attention.queries.first;
  REEF_ASSIGN_OR_RETURN(const std::int32_t scores,
                        builder.new_grid_of_pixels(attention.scores, queries, attention.heads, attention.keys.tokens));
  builder.set_value(attention.scores, {scores, {}});
  add_pieces(builder, op, attention.keys, all, queries, scores);
  return ok_status();
}

Status lower_means(Builder& builder, std::int32_t op, const Attention& attention) {
  REEF_ASSIGN_OR_RETURN(const Value weights, builder.value(builder.op(op).inputs[0]));
  REEF_ASSIGN_OR_RETURN(const std::int32_t queries, tokens_of(builder, attention.queries));
  Piece all;
  REEF_ASSIGN_OR_RETURN(all.tokens, tokens_of(builder, attention.values));
  all.all_heads = attention.heads;
  all.depth = attention.value_depth;
  const TiledTensor& image = builder.tensor(queries);
  REEF_ASSIGN_OR_RETURN(
      const std::int32_t result,
      builder.new_grid(attention.result, Image{image.height, image.width, attention.heads * attention.value_depth}));
  builder.set_value(attention.result, {result, {}});
  add_pieces(builder, op, attention.values, all, weights.tensor, result);
  return ok_status();
}

}  // namespace

Status lower_attention(Builder& builder, std::int32_t op, const Attention& attention) {
  if (op == attention.scores_op) return lower_scores(builder, op, attention);
  if (op == attention.means_op) return lower_means(builder, op, attention);
  REEF_ASSIGN_OR_RETURN(const Value scores, builder.value(builder.op(op).inputs[0]));
  return lower_softmax_of_pixels(builder, op, scores.tensor);
}

}  // namespace reef::lower
