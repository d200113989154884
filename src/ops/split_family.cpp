// SPDX-License-Identifier: Apache-2.0
#include "ops/split_family.h"

#include "ops/movement.h"

namespace reef::ops {
namespace {

Shape piece_shape(const Tensor& input, const Pieces& pieces, int i) {
  Shape shape = input.shape;
  shape[pieces.axis] = static_cast<std::int32_t>(pieces.sizes[at(i)]);
  return shape;
}

}  // namespace

void set_piece_shapes(InferContext& ctx, const Tensor& input, const Pieces& pieces) {
  for (int i = 0; i < ctx.output_count(); ++i) ctx.set_output_shape(i, piece_shape(input, pieces, i));
}

Status check_pieces(const PrepareContext& ctx, const Tensor& input) {
  for (int i = 0; i < ctx.output_count(); ++i) REEF_RETURN_IF_ERROR(check_moved(input, ctx.output(i)));
  return ok_status();
}

Result<std::vector<Move>> split_moves(const OpContext& ctx, int number, const Pieces& pieces) {
  const Tensor& input = ctx.input(number);
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  for (int i = 0; i < ctx.output_count(); ++i) {
    REEF_RETURN_IF_ERROR(require_output_shape(ctx.output(i), piece_shape(input, pieces, i)));
  }
  std::vector<Move> moves;
  if (input.elements() == 0) return moves;
  const std::int64_t rows = input.shape.product(0, pieces.axis);
  const std::int64_t inner_bytes = input.shape.product(pieces.axis + 1, input.shape.rank()) * bytes;
  const std::int64_t from_stride = input.shape[pieces.axis] * inner_bytes;
  std::int64_t from = 0;
  for (int i = 0; i < ctx.output_count(); ++i) {
    const std::int64_t row_bytes = pieces.sizes[at(i)] * inner_bytes;
    moves.push_back(
        {number,
         i,
         {.loops = {{rows, from_stride, row_bytes}}, .run_bytes = row_bytes, .from_offset = from, .to_offset = 0}});
    from += row_bytes;
  }
  return moves;
}

}  // namespace reef::ops
