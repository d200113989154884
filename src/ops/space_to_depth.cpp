// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_DEPTH: moves blocks of space into channels.
//
// output[b, y, x, (dy * block + dx) * depth + c] = input[b, y * block + dy, x * block + dx, c]
//
// Only bytes are moved, so the element type matters by its size alone; input and output must be quantized alike, which
// TFLite takes for granted and so do we.
#include <cstring>

#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kAttributes[] = {{"block_size", "side of the square block, at least 1"}};
constexpr std::string_view kTypes[] = {"float32", "int8", "uint8", "int16", "int32", "int64"};

Status infer(InferContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  const std::int64_t block = ctx.attributes().get_int("block_size");
  REEF_REQUIRE(block >= 1, "block_size is {}; it must be at least 1", block);
  REEF_REQUIRE(input.shape[1] % block == 0 && input.shape[2] % block == 0,
               "height and width of {} must be multiples of block_size {}", input.shape.to_string(), block);
  const std::int64_t depth = input.shape[3] * block * block;
  REEF_REQUIRE(depth <= INT32_MAX, "block_size {} makes {} channels; that is too many", block, depth);
  ctx.set_output_shape(0, {input.shape[0], static_cast<std::int32_t>(input.shape[1] / block),
                           static_cast<std::int32_t>(input.shape[2] / block), static_cast<std::int32_t>(depth)});
  return ok_status();
}

Status run(RunContext& ctx, std::int64_t block, std::size_t element_bytes) {
  const Tensor& input = ctx.input(0);
  const Shape& out = ctx.output(0).shape;
  // A row of `block` neighbouring pixels is contiguous on both sides.
  const std::size_t run_bytes = static_cast<std::size_t>(block) * static_cast<std::size_t>(input.shape[3]) * element_bytes;
  const std::byte* from = input.data;
  std::byte* to = ctx.output(0).data;
  const std::int64_t input_row_runs = out[2];
  ctx.parallel_for(std::int64_t{out[0]} * out[1], 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t x = 0; x < out[2]; ++x) {
        for (std::int64_t dy = 0; dy < block; ++dy) {
          const std::int64_t source_run = (row * block + dy) * input_row_runs + x;
          const std::int64_t target_run = (row * out[2] + x) * block + dy;
          std::memcpy(to + static_cast<std::size_t>(target_run) * run_bytes,
                      from + static_cast<std::size_t>(source_run) * run_bytes, run_bytes);
        }
      }
    }
  });
  return ok_status();
}

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input",
                                    {DataType::kFloat32, DataType::kInt8, DataType::kUInt8, DataType::kInt16,
                                     DataType::kInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  const std::int64_t block = ctx.attributes().get_int("block_size");
  const auto element_bytes = static_cast<std::size_t>(ir::bits_per_element(ctx.input(0).type)) / 8;
  return Kernel([=](RunContext& run_ctx) { return run(run_ctx, block, element_bytes); });
}

}  // namespace

extern const OpDef space_to_depth_op;
constinit const OpDef space_to_depth_op = define({.name = "SPACE_TO_DEPTH",
                                                  .summary = "Moves square blocks of pixels into channels.",
                                                  .attributes = kAttributes,
                                                  .types = kTypes,
                                                  .infer = infer,
                                                  .prepare = prepare});

}  // namespace reef::ops
