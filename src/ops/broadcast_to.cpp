// SPDX-License-Identifier: Apache-2.0
// BROADCAST_TO: repeats a tensor along new dimensions and along those of size 1, up to a given shape.
//
// Only bytes are copied, so the element type matters by its size alone.
#include <algorithm>

#include "kernels/fill/repeat.h"
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr int kHighestRank = 8;  // TFLite's limit

// Size of the input along the output's dimension i; new dimensions in front have size 1.
std::int32_t aligned_size(const Shape& input, const Shape& output, int i) {
  const int skipped = output.rank() - input.rank();
  return i < skipped ? 1 : input[i - skipped];
}

Status broadcast_to_infer(InferContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "shape", {DataType::kInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(1), "shape", 1, 1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> dims, ctx.ints(1));
  REEF_REQUIRE(dims.size() <= kHighestRank && static_cast<int>(dims.size()) >= input.rank(),
               "{} cannot be broadcast to {} dimensions; it must keep its own, and {} is the most", input.to_string(),
               dims.size(), kHighestRank);
  Shape output;
  for (const std::int64_t dim : dims) {
    REEF_REQUIRE(dim >= 0 && dim <= INT32_MAX, "shape ('{}') holds {}; sizes must be between 0 and 2^31 - 1",
                 ctx.input(1).name, dim);
    output.push_back(static_cast<std::int32_t>(dim));
  }
  for (int i = 0; i < output.rank(); ++i) {
    const std::int32_t size = aligned_size(input, output, i);
    REEF_REQUIRE(size == 1 || size == output[i], "{} cannot be broadcast to {}", input.to_string(), output.to_string());
  }
  REEF_RETURN_IF_ERROR(check_shape(output));
  return give_shape(ctx, std::move(output));
}

// Offset in the input, in elements, of what the output holds at `index` of its dimensions [0, end).
std::int64_t input_offset(const Shape& input, const Shape& output, int end, std::int64_t index) {
  std::int64_t offset = 0, stride = 1;
  for (int i = output.rank() - 1; i >= 0; --i) {
    const std::int32_t size = aligned_size(input, output, i);
    if (i < end) {
      if (size != 1) offset += index % output[i] * stride;
      index /= output[i];
    }
    stride *= size;
  }
  return offset;
}

Status broadcast_to_run(RunContext& ctx, std::size_t element_bytes) {
  const Shape& input = ctx.input(0).shape;
  const Shape& output = ctx.output(0).shape;
  if (output.elements() == 0) return ok_status();
  // The innermost dimension that is repeated, and the run of elements behind it that is not.
  int repeated = output.rank() - 1;
  while (repeated >= 0 && aligned_size(input, output, repeated) == output[repeated]) --repeated;
  const std::int64_t run_elements = output.product(repeated + 1, output.rank());
  const std::int64_t copies = repeated >= 0 ? output[repeated] : 1;
  const std::int64_t outer = repeated >= 0 ? output.product(0, repeated) : 1;
  const std::size_t run_bytes = static_cast<std::size_t>(run_elements) * element_bytes;
  const std::byte* from = ctx.input(0).data;
  std::byte* to = ctx.output(0).data;
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 15) / (run_elements * copies));
  ctx.parallel_for(outer, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto offset = static_cast<std::size_t>(input_offset(input, output, repeated, i)) * element_bytes;
      kernels::repeat_bytes(from + offset, run_bytes, static_cast<std::size_t>(copies),
                            to + static_cast<std::size_t>(i * copies) * run_bytes);
    }
  });
  return ok_status();
}

Result<Kernel> broadcast_to_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  const int bits = ir::bits_per_element(ctx.input(0).type);
  if (bits < 8) return unsupported_types(ctx);
  return Kernel([bytes = static_cast<std::size_t>(bits) / 8](RunContext& ctx) { return broadcast_to_run(ctx, bytes); });
}

}  // namespace

constinit const OpDef broadcast_to_op =
    define({.name = name_of(Op::BROADCAST_TO),
            .summary = "Repeats a tensor up to a given shape.",
            .inputs = {2, 2},
            .types = "any of 8, 16, 32, 64 or 128 bits; shape: int32, int64",
            .form = Form::kMove,
            .infer = broadcast_to_infer,
            .prepare = broadcast_to_prepare,
            .chip = {.instead = "Let ADD or MUL broadcast, or use TILE.", .rewrite = "broadcast-to"}});

}  // namespace reef::ops
