// SPDX-License-Identifier: Apache-2.0
// RESIZE_NEAREST_NEIGHBOR: resizes images, taking the nearest pixel.
//
// Only bytes are moved; input and output must be quantized alike, which TFLite takes for granted and so do we.
#include "ir/op.h"
#include "ops/checks.h"
#include "ops/chip_rules.h"
#include "ops/resize.h"

namespace reef::ops {
namespace {

Status resize_nearest_neighbor_infer(InferContext& ctx) { return infer_resize(ctx, 0); }

Result<Kernel> resize_nearest_neighbor_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(
      require_type(ctx.input(0), "input", {DataType::kFloat32, DataType::kInt8, DataType::kUInt8, DataType::kInt16}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const kernels::ResizeGeometry geometry, resize_geometry(ctx));
  const auto element_bytes = static_cast<std::size_t>(ir::bits_per_element(ctx.input(0).type)) / 8;
  return Kernel([=](RunContext& run) {
    const std::byte* input = run.input(0).data;
    std::byte* output = run.output(0).data;
    run.parallel_for(geometry.batches * geometry.output_height, resize_grain(geometry),
                     [&](std::int64_t begin, std::int64_t end) {
                       kernels::resize_nearest(geometry, element_bytes, input, output, begin, end);
                     });
    return ok_status();
  });
}

constexpr ChipRule kResizeNearestNeighborChipRules[] = {chip::kNoHalfPixels};

}  // namespace

constinit const OpDef resize_nearest_neighbor_op =
    define({.name = name_of(Op::RESIZE_NEAREST_NEIGHBOR),
            .summary = "Resizes images by taking the nearest pixel.",
            .inputs = {2, 2},
            .attributes = kResizeAttributes,
            .types = "float32; int8; uint8; int16",
            .traits = trait_set({Trait::kPerImage, Trait::kKeepsNonNegative, Trait::kScalesByChannel}),
            .infer = resize_nearest_neighbor_infer,
            .prepare = resize_nearest_neighbor_prepare,
            .chip = {.first_runtime = 10,
                     .newest_version = 3,
                     .rules = kResizeNearestNeighborChipRules,
                     .parameters = input_set({1})}});

}  // namespace reef::ops
