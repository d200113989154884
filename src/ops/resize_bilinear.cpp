// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR: resizes images, interpolating between the four nearest pixels.
//
// uint8 is interpolated in float, int8 and int16 in fixed point (10 fraction bits), as TFLite's reference kernels do;
// see kernels/resize. Input and output must be quantized alike, which TFLite takes for granted and so do we.
#include <fmt/format.h>
#include <numeric>

#include "ir/op.h"
#include "ops/checks.h"
#include "ops/chip_rules.h"
#include "ops/resize.h"

namespace reef::ops {
namespace {

Status resize_bilinear_infer(InferContext& ctx) { return infer_resize(ctx, 1); }

template <typename T>
Result<Kernel> resize_bilinear_make_kernel(const kernels::ResizeGeometry& geometry) {
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

Result<Kernel> resize_bilinear_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const kernels::ResizeGeometry geometry, resize_geometry(ctx));
  REEF_REQUIRE(!geometry.align_corners || !geometry.half_pixel_centers,
               "align_corners and half_pixel_centers exclude each other");
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t>(
      ctx, ctx.input(0).type, [&]<typename T>() { return resize_bilinear_make_kernel<T>(geometry); });
}

// Most elements of the result: between 524,288, which map, and 8,388,608, which do not.
constexpr std::int64_t kResizeBilinearMostElementsOnChip = 1 << 21;
// Interpolation weights are 8-bit numbers with a sign: fractions with larger denominators are not exact.
constexpr std::int64_t kFinestFraction = 128;

// The smallest n for which every output pixel along an axis lies at a multiple of 1/n between two input pixels.
std::int64_t position_denominator(std::int64_t input, std::int64_t output, bool align_corners, bool half_pixels) {
  if (align_corners && output > 1) {
    input -= 1;
    output -= 1;
  }
  if (input <= 0 || output <= 0) return 1;
  // Pixel i lies at i * input / output, or with half pixels at ((2i + 1) * input - output) / (2 * output).
  if (!half_pixels) return output / std::gcd(input, output);
  const std::int64_t common = std::gcd(std::gcd(2 * input, input - output), 2 * output);
  return 2 * output / common;
}

std::string is_imprecise(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  const Shape& output = ctx.output(0).shape;
  if (input.rank() != 4 || output.rank() != 4) return "";
  const bool align_corners = ctx.attributes().get_bool("align_corners");
  const bool half_pixels = ctx.attributes().get_bool("half_pixel_centers");
  const std::int64_t y = position_denominator(input[1], output[1], align_corners, half_pixels);
  const std::int64_t x = position_denominator(input[2], output[2], align_corners, half_pixels);
  if (y * x <= kFinestFraction) return "";
  return fmt::format("from {}x{} to {}x{} pixels the weights are multiples of 1/{}", input[1], input[2], output[1],
                     output[2], chip::number_text(y * x));
}

std::string resize_bilinear_is_large(const OpContext& ctx) {
  const Tensor& output = ctx.output(0);
  if (output.shape == ctx.input(0).shape || output.elements() <= kResizeBilinearMostElementsOnChip) return "";
  return fmt::format("output is {}", chip::tensor_text(output));
}

constexpr ChipRule kResizeBilinearChipRules[] = {
    chip::kNoHalfPixels,
    {
        .id = "resize-one-pixel",
        .says = "A single pixel is not enlarged.",
        .suggestion = "Repeat the pixel with TILE, which maps, or let the op behind it broadcast.",
        .broken = chip::enlarges_one_pixel,
        .source = RuleSource::kMeasured,
        .evidence = "1x1 to 33x33 does not map (DeepLab v3); TILE of the same shapes does.",
        .rewrite = "resize",
    },
    {
        .id = "resize-precision",
        .says = "Interpolation weights are multiples of 1/128.",
        .suggestion = "Enlarge by 2, 4 or 8, in several steps if need be, or use RESIZE_NEAREST_NEIGHBOR.",
        .broken = is_imprecise,
        .status = GoogleStatus::kImprecise,
        .source = RuleSource::kMeasured,
        .evidence = "Table 1 speaks of precision and gives no number. 6 to 12, 12 to 24, 24 to 48 and 33 to 33 map; 33 "
                    "to 513, whose weights are multiples of 1/256, does not. The limit is what 8-bit weights can hold.",
        .rewrite = "resize",
    },
    {
        .id = "resize-size",
        .says = "The result has at most 2,097,152 elements.",
        .suggestion = "End the model before it and enlarge on the CPU, or enlarge fewer channels.",
        .broken = resize_bilinear_is_large,
        .source = RuleSource::kReported,
        .evidence =
            "128x128x32 maps, 512x512x32 does not (edgetpu#31). Where the limit lies between them is not known.",
        .rewrite = "resize",
    },
};

}  // namespace

constinit const OpDef resize_bilinear_op = define(
    {.name = name_of(Op::RESIZE_BILINEAR),
     .summary = "Resizes images with bilinear interpolation.",
     .inputs = {2, 2},
     .attributes = kResizeAttributes,
     .types = "float32; int8; uint8; int16",
     .traits = trait_set({Trait::kPerImage, Trait::kKeepsNonNegative, Trait::kScalesByChannel}),
     .infer = resize_bilinear_infer,
     .prepare = resize_bilinear_prepare,
     .chip = {
         .first_runtime = 10, .newest_version = 3, .rules = kResizeBilinearChipRules, .parameters = input_set({1})}});

}  // namespace reef::ops
