// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR: resizes images, interpolating between the four nearest pixels.
//
// uint8 is interpolated in float, int8 and int16 in fixed point (10 fraction bits), as TFLite's reference kernels do;
// see kernels/resize. Input and output must be quantized alike, which TFLite takes for granted and so do we.
#include "ops/checks.h"
#include "ops/resize.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "int8", "uint8", "int16"};

Status infer(InferContext& ctx) { return infer_resize(ctx, 1); }

template <typename T>
Result<Kernel> make_kernel(const kernels::ResizeGeometry& geometry) {
  return Kernel([geometry](RunContext& run) {
    const T* input = run.input(0).values<T>().data();
    T* output = run.output(0).mutable_values<T>().data();
    run.parallel_for(geometry.batches * geometry.output_height, resize_grain(geometry),
                     [&](std::int64_t begin, std::int64_t end) {
                       kernels::resize_bilinear<T>(geometry, input, output, begin, end);
                     });
    return ok_status();
  });
}

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const kernels::ResizeGeometry geometry, resize_geometry(ctx));
  REEF_REQUIRE(!geometry.align_corners || !geometry.half_pixel_centers,
               "align_corners and half_pixel_centers exclude each other");
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return make_kernel<float>(geometry);
    case DataType::kUInt8:
      return make_kernel<std::uint8_t>(geometry);
    case DataType::kInt8:
      return make_kernel<std::int8_t>(geometry);
    case DataType::kInt16:
      return make_kernel<std::int16_t>(geometry);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

extern const OpDef resize_bilinear_op;
constinit const OpDef resize_bilinear_op = define({.name = "RESIZE_BILINEAR",
                                                   .summary = "Resizes images with bilinear interpolation.",
                                                   .inputs = {2, 2},
                                                   .attributes = kResizeAttributes,
                                                   .types = kTypes,
                                                   .infer = infer,
                                                   .prepare = prepare});

}  // namespace reef::ops
