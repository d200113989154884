// SPDX-License-Identifier: Apache-2.0
// MatMul, Gemm and Einsum. A product with a known matrix is FULLY_CONNECTED, others are BATCH_MATMUL.
#include "import/onnx/shared_parts.h"

namespace reef::import {

Id matrix_product(GraphBuilder& b, Id x, Id y) {
  const bool x_is_row = b.rank(x) == 1, y_is_column = b.rank(y) == 1;
  if (x_is_row) x = reshape(b, x, {1, b.dim(x, 0)});
  if (y_is_column) y = reshape(b, y, {b.dim(y, 0), 1});
  Id result = kAbsent;
  if (b.rank(y) == 2 && b.is_known(y) && !b.is_known(x)) {
    result = fully_connected(b, x, transpose(b, y, {1, 0}), kAbsent);
  } else {
    result = matmul(b, x, y);
  }
  Dims dims = dims_of(b.shape(result));
  if (x_is_row) dims.erase(dims.end() - 2);
  if (y_is_column) dims.pop_back();
  return reshape(b, result, dims);
}

Status convert_matmul(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(b.rank(ctx.in(0)) >= 1 && b.rank(ctx.in(1)) >= 1, "an operand has no dimensions");
  const ir::DataType type = b.type(ctx.in(0));
  const Id x = cast(b, ctx.in(0), ir::DataType::kFloat32), y = cast(b, ctx.in(1), ir::DataType::kFloat32);
  return ctx.give(cast(b, matrix_product(b, x, y), type));
}

// alpha * A' * B' + beta * C
Status convert_gemm(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(2));
  const ir::DataType type = b.type(ctx.in(0));
  Id x = cast(b, ctx.in(0), ir::DataType::kFloat32), y = cast(b, ctx.in(1), ir::DataType::kFloat32);
  REEF_REQUIRE(b.rank(x) == 2 && b.rank(y) == 2, "operands A and B must have two dimensions");
  const float alpha = ctx.float_attribute("alpha", 1), beta = ctx.float_attribute("beta", 1);
  if (ctx.int_attribute("transA", 0) != 0) x = transpose(b, x, {1, 0});
  const bool transposes_y = ctx.int_attribute("transB", 0) != 0;
  const Id weights = transposes_y ? y : transpose(b, y, {1, 0});
  const std::int64_t outputs = b.dim(weights, 0);
  Id c = ctx.has(2) && beta != 0 ? cast(b, ctx.in(2), ir::DataType::kFloat32) : kAbsent;
  if (c != kAbsent) {
    REEF_RETURN_IF_ERROR(ctx.require_inputs(3));
    if (beta != 1) c = mul(b, c, beta);
  }
  const bool is_bias = c != kAbsent && alpha == 1 && b.is_known(c) && b.elements(c) == outputs &&
                       (b.rank(c) == 1 || (b.rank(c) == 2 && b.dim(c, 0) == 1));
  if (is_bias) c = reshape(b, c, {outputs});
  Id result = fully_connected(b, x, weights, is_bias ? c : kAbsent);
  if (alpha != 1) result = mul(b, result, alpha);
  if (c != kAbsent && !is_bias) result = add(b, result, c);
  return ctx.give(cast(b, result, type));
}

}  // namespace reef::import
