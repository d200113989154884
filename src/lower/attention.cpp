// SPDX-License-Identifier: Apache-2.0
// Attention with heads as runs of channels.
//
//   scores   each token has a row of scores for each head: an image of `heads` pixels for each pixel of the queries.
//            Keys of some heads are copied to all tiles; a tile multiplies its tokens' run of channels of one head
//            after the other
//   SOFTMAX  of each pixel, as of any image
//   means    the same with values; results of a head are its run of channels of the joined result
//
// Where keys (values) of all heads take too much memory, some heads are copied at a time; of one head, some keys. Where
// scores of all heads take too much, all three are done for some heads, then for the next; where those of one head do,
// for some rows of each tile's tokens, then for the next. The second product adds all of these steps then.
#include "base/divide_up.h"

#include <algorithm>

#include "lower/matrix_product.h"
#include "lower/ring_copies.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::MatrixProduct;
using tiled::MatrixRound;

// Memory of a tile for scores that exist at a time. SOFTMAX takes four times as much: scores, numerators of 16 bits and
// weights.
constexpr std::int64_t kMostScoreBytes = 24 << 10;

// Scores that exist together: of some heads, of some rows of the tokens.
struct Scores {
  std::int32_t first_head = 0, heads = 0;
  std::optional<tiled::TileRanges> rows = std::nullopt;  // of the queries' image; none: all
  bool are_last = true;                                  // of the attention's
};

// One pair of steps: a copy of some heads' keys or values, and the products with them.
struct AttentionPiece {
  bool is_scores = false;
  std::int32_t tokens = -1;  // TiledProgram::tensors: what is copied from, all channels
  std::int32_t copies = -1;  // TiledProgram::tensors
  std::int32_t first_head = 0, heads = 0;
  std::int32_t scores_first_head = 0, scores_heads = 0;  // of the tensor of scores
  std::int32_t first_key = 0, keys = 0;
  std::int32_t depth = 0;                 // channels of a head that are copied
  std::vector<std::int32_t> query_first;  // scores: channel, by head
  std::vector<std::int32_t> runs;         // channels of `tokens` at which the runs begin that are copied, each once
  std::vector<std::int32_t> run_of;       // by head of the piece: which of the runs
};

Status finish_copies(Builder& builder, tiled::Step& step, const AttentionPiece& piece) {
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

Status finish_product(Builder& builder, tiled::Step& step, const AttentionPiece& piece) {
  auto& work = std::get<MatrixProduct>(step.work);
  const TiledTensor &a = builder.tensor(work.a), &out = builder.tensor(work.output);
  const TiledTensor &tokens = piece.is_scores ? a : out, &scores = piece.is_scores ? out : a;
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    if ((scores.owners() & tiled::mask_of(tile)) == 0) continue;
    const tiled::TileShare& rows = scores.rows.tile(chip::tile_row(tile));
    const tiled::TileShare& columns = tokens.columns.tile(chip::tile_column(tile));
    const OwnPixelRange own{rows.begin, columns.begin, rows.own(), columns.own()};
    REEF_RETURN_IF_ERROR(check_round(own));
    for (std::int32_t h = 0; h < piece.heads; ++h) {
      const std::int32_t head = piece.first_head + h, pixel = head - piece.scores_first_head;
      MatrixRound round;
      round.columns = own.columns;
      round.rows = own.rows;
      round.b_first = piece.run_of[at(h)] * piece.depth;
      if (piece.is_scores) {
        round.a = rows_of(a, tile, own, 1, 0, piece.query_first[at(head)]);
        round.output = rows_of(out, tile, own, piece.scores_heads, pixel, piece.first_key);
      } else {
        round.a = rows_of(a, tile, own, piece.scores_heads, pixel, 0);
        round.output = rows_of(out, tile, own, 1, 0, head * piece.depth);
      }
      work.rounds[at(tile)].push_back(round);
    }
  }
  work.lines = builder.new_wide(2 * std::int64_t{work.groups()} * work.depth_words());
  step.wide_used = {work.lines};
  return ok_status();
}

void add_piece(Builder& builder, std::int32_t op, AttentionPiece piece, std::int32_t a, std::int32_t output,
               bool is_last) {
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

// All pieces of a product: `all` has the fields that are the same for each. `is_last`: nothing else writes the output.
void add_pieces(Builder& builder, std::int32_t op, const Heads& from, const AttentionPiece& all, std::int32_t a,
                std::int32_t output, bool is_last) {
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
      static_cast<std::int32_t>(std::clamp<std::int64_t>(kMostMatrixCopyBytes / head_bytes, 1, all.scores_heads));
  const std::int32_t end = all.scores_first_head + all.scores_heads;
  for (std::int32_t head = all.scores_first_head; head < end; head += heads) {
    for (std::int32_t key = 0; key < from.tokens; key += keys) {
      AttentionPiece piece = all;
      piece.first_head = head;
      piece.heads = std::min(heads, end - head);
      piece.first_key = key;
      piece.keys = std::min(keys, from.tokens - key);
      for (std::int32_t h = head; h < head + piece.heads; ++h) {
        const std::int32_t run = from.first[at(h)];
        const auto known = std::find(piece.runs.begin(), piece.runs.end(), run);
        piece.run_of.push_back(static_cast<std::int32_t>(known - piece.runs.begin()));
        if (known == piece.runs.end()) piece.runs.push_back(run);
      }
      const bool is_last_piece = head + piece.heads == end && key + piece.keys == from.tokens;
      add_piece(builder, op, std::move(piece), a, output, is_last && is_last_piece);
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

Status add_scores(Builder& builder, const Attention& attention, const Scores& which) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t queries, tokens_of(builder, attention.queries));
  AttentionPiece all;
  all.is_scores = true;
  REEF_ASSIGN_OR_RETURN(all.tokens, tokens_of(builder, attention.keys));
  all.scores_first_head = which.first_head;
  all.scores_heads = which.heads;
  all.depth = attention.depth;
  all.query_first = attention.queries.first;
  REEF_ASSIGN_OR_RETURN(const std::int32_t scores, builder.new_grid_of_pixels(attention.scores, queries, which.heads,
                                                                              attention.keys.tokens, which.rows));
  builder.set_value(attention.scores, {scores, {}});
  add_pieces(builder, attention.scores_op, attention.keys, all, queries, scores, true);
  return ok_status();
}

Status add_softmax(Builder& builder, const Attention& attention) {
  REEF_ASSIGN_OR_RETURN(const Value scores, builder.value(builder.op(attention.softmax_op).inputs[0]));
  return lower_softmax_of_pixels(builder, attention.softmax_op, scores.tensor);
}

Status add_mask(Builder& builder, std::int32_t op) { return find_lowering(builder.op(op).type)(builder, op); }

// Into the value of the attention's result.
Status add_means(Builder& builder, const Attention& attention, const Scores& which) {
  REEF_ASSIGN_OR_RETURN(const Value weights, builder.value(builder.op(attention.means_op).inputs[0]));
  REEF_ASSIGN_OR_RETURN(const Value result, builder.value(attention.result));
  AttentionPiece all;
  REEF_ASSIGN_OR_RETURN(all.tokens, tokens_of(builder, attention.values));
  all.scores_first_head = which.first_head;
  all.scores_heads = which.heads;
  all.depth = attention.value_depth;
  add_pieces(builder, attention.means_op, attention.values, all, weights.tensor, result.tensor, which.are_last);
  return ok_status();
}

std::int64_t row_of_scores(const Attention& attention) {
  return std::int64_t{divide_up(attention.keys.tokens, kWord)} * kWord;
}

bool is_in_parts(const Attention& attention) {
  const std::int64_t rows = std::int64_t{attention.heads} * attention.queries.tokens;
  return rows * row_of_scores(attention) > kMostScoreBytes * chip::kTiles;
}

// Scores in parts that take so much memory, or as little as rows of the queries' image allow.
std::vector<Scores> parts_of(const Attention& attention, const TiledTensor& queries) {
  const std::int32_t rows = divide_up(queries.height, chip::kTileRows);
  const std::int64_t head_bytes =
      rows * std::int64_t{divide_up(queries.width, chip::kTileColumns)} * row_of_scores(attention);
  const auto slices = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(divide_up(head_bytes, kMostScoreBytes), 1, std::int64_t{rows}));
  const auto most = static_cast<std::int32_t>(std::max<std::int64_t>(kMostScoreBytes / head_bytes, 1));
  const std::int32_t heads = divide_up(attention.heads, divide_up(attention.heads, most));
  std::vector<Scores> parts;
  for (std::int32_t head = 0; head < attention.heads; head += heads) {
    for (std::int32_t slice = 0; slice < slices; ++slice) {
      Scores part{.first_head = head, .heads = std::min(heads, attention.heads - head), .are_last = false};
      if (slices > 1) {
        part.rows.emplace();
        for (int t = 0; t < chip::kTileRows; ++t) {
          (*part.rows)[at(t)] = share_of(queries.height, t, slice, slices);
        }
      }
      parts.push_back(part);
    }
  }
  parts.back().are_last = true;
  return parts;
}

// What is between both products, and these, part by part.
Status add_parts(Builder& builder, const Attention& attention) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t queries, tokens_of(builder, attention.queries));
  for (const Scores& part : parts_of(attention, builder.tensor(queries))) {
    builder.begin_op(attention.scores_op);
    REEF_RETURN_IF_ERROR(add_scores(builder, attention, part));
    for (const std::int32_t mask : attention.masks) {
      builder.begin_op(mask);
      REEF_RETURN_IF_ERROR(add_mask(builder, mask));
    }
    builder.begin_op(attention.softmax_op);
    REEF_RETURN_IF_ERROR(add_softmax(builder, attention));
    builder.begin_op(attention.means_op);
    REEF_RETURN_IF_ERROR(add_means(builder, attention, part));
  }
  return ok_status();
}

}  // namespace

Status lower_attention(Builder& builder, std::int32_t op, const Attention& attention) {
  const Scores all{.first_head = 0, .heads = attention.heads};
  if (op == attention.means_op) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t queries, tokens_of(builder, attention.queries));
    const TiledTensor& image = builder.tensor(queries);
    REEF_ASSIGN_OR_RETURN(
        const std::int32_t result,
        builder.new_grid(attention.result, Image{image.height, image.width, attention.heads * attention.value_depth}));
    builder.set_value(attention.result, {result, {}});
    return is_in_parts(attention) ? add_parts(builder, attention) : add_means(builder, attention, all);
  }
  if (is_in_parts(attention)) return ok_status();
  if (op == attention.scores_op) return add_scores(builder, attention, all);
  return op == attention.softmax_op ? add_softmax(builder, attention) : add_mask(builder, op);
}

}  // namespace reef::lower
