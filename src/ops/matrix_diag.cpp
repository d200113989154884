// SPDX-License-Identifier: Apache-2.0
// MATRIX_DIAG: makes a square matrix of each innermost vector, with the vector on the diagonal and zero bytes
// elsewhere.
#include <array>

#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status matrix_diag_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 1, kMaxMovedRank));
  Shape shape = ctx.input(0).shape;
  shape.push_back(shape.last());
  return give_shape(ctx, std::move(shape));
}

Status matrix_diag_run(RunContext& ctx) {
  const Tensor& input = ctx.input(0);
  Tensor& output = ctx.output(0);
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  if (output.elements() == 0) return ok_status();
  const std::array<std::byte, 16> zero{};
  kernels::fill(ctx.environment()->threads(), output.data, output.elements(), zero.data(),
                static_cast<std::size_t>(bytes));
  const std::int64_t size = input.shape.last(), vectors = input.elements() / size;
  copy(ctx,
       {.loops = {{vectors, size * bytes, size * size * bytes}, {size, bytes, (size + 1) * bytes}}, .run_bytes = bytes},
       input.data, output.data);
  return ok_status();
}

Result<Kernel> matrix_diag_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  return Kernel(matrix_diag_run);
}

}  // namespace

constinit const OpDef matrix_diag_op = define({.name = name_of(Op::MATRIX_DIAG),
                                               .summary = "Puts vectors on the diagonals of matrices.",
                                               .types = kWholeByteTypes,
                                               .infer = matrix_diag_infer,
                                               .prepare = matrix_diag_prepare,
                                               .chip = {.instead = "Multiply by a constant identity matrix."}});

}  // namespace reef::ops
