// SPDX-License-Identifier: Apache-2.0
// SPLIT and SPLIT_V: cut a tensor into consecutive pieces along one dimension.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/movement.h"
#include "ops/op_context.h"

namespace reef::ops {

struct Pieces {
  int axis = 0;
  std::vector<std::int64_t> sizes;  // along the axis, one per output; their sum is the input's size
};

void set_piece_shapes(InferContext& ctx, const Tensor& input, const Pieces& pieces);
Status check_pieces(const PrepareContext& ctx, const Tensor& input);
// The copies that cut input `input` into these pieces.
Result<std::vector<Move>> split_moves(const OpContext& ctx, int input, const Pieces& pieces);

}  // namespace reef::ops
