// SPDX-License-Identifier: Apache-2.0
// L2_NORMALIZATION: every pixel's channels divided by the root of the sum of their squares.
//
//   roots     one over the root, a number of 16 bits for each pixel; in two parts of which one is 0 (tiled/squares.h)
//   products  channels times the root: as a pool of single pixels, with these numbers in the place of ones; for both
//             parts, of which one gives zeros
//   sum       of both: exact
//
// How it is known: our own; no compiled program with this operator is known. Within one of TFLite's result.
#include <cmath>

#include "ir/describe.h"
#include "lower/constants.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"
#include "numeric/chip_squares.h"

namespace reef::lower {
namespace {

using tiled::PixelRoots;

// Sums of more squares might not fit 32 bits.
constexpr std::int32_t kMostChannels = 32768;

Status finish_roots(Builder& builder, tiled::Step& step) {
  auto& work = std::get<PixelRoots>(step.work);
  const TiledTensor& image = builder.tensor(work.input);
  const std::int64_t bytes = std::int64_t{tiled::kPixelFactorBytes} * image.rows.max_own() * image.columns.max_own();
  auto& objects = builder.program().narrow;
  objects[at(work.fine)].bytes = objects[at(work.coarse)].bytes = bytes;
  work.limit_offset = static_cast<std::int32_t>(bytes);
  work.scratch = builder.new_narrow(2 * bytes);
  work.selector_words = builder.new_narrow(std::int64_t{tiled::kRootSelectorWords} * chip::kNarrowWordBytes);
  work.selector = builder.new_wide(1);
  work.lines = builder.new_wide(tiled::kRootLines);
  step.narrow_used = {work.fine, work.coarse, work.scratch, work.selector_words};
  step.wide_used = {work.selector, work.lines};
  return ok_status();
}

// Channels times what `factors` has for their pixel.
Result<std::int32_t> add_products(Builder& builder, std::int32_t op, std::int32_t image, std::int32_t factors,
                                  float one) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_like(builder.op(op).outputs[0], image));
  const TiledTensor& tensor = builder.tensor(output);
  tiled::Pool pool = plain_pool(builder, image, output, {{.outputs = tensor.height}, {.outputs = tensor.width}});
  pool.is_average = true;
  pool.factors = factors;
  pool.multiplier = numeric::chip_root_multiplier(one, tensor.scale);
  add_pool(builder, op, pool);
  builder.program().steps.back().narrow_used = {factors};
  return output;
}

}  // namespace

Status lower_l2_normalization(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(builder.op(op)));
  if (activation != numeric::ChipActivation::kNone) return unsupported("a fused activation is not generated");
  REEF_RETURN_IF_ERROR(elements_of(builder, from).status());
  REEF_ASSIGN_OR_RETURN(std::int32_t image, builder.grid(from));
  if (builder.tensor(image).channels > kMostChannels) {
    return unsupported("{} channels are more than a sum of squares can have", builder.tensor(image).channels);
  }
  if (builder.tensor(image).channels % chip::kNarrowWordBytes != 0) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t clean, builder.new_like(from, image));
    add_clean_copy(builder, op, image, clean);
    image = clean;
  }
  PixelRoots roots;
  roots.input = image;
  roots.input_zero = builder.tensor(image).zero_point;
  roots.fine = builder.new_narrow(0);
  roots.coarse = builder.new_narrow(0);
  builder.add_step(op, roots, {Read{image}}, {}, finish_roots);
  tiled::Sum sum;
  REEF_ASSIGN_OR_RETURN(sum.a, add_products(builder, op, image, roots.fine, numeric::kFineRoot));
  REEF_ASSIGN_OR_RETURN(sum.b, add_products(builder, op, image, roots.coarse, numeric::kCoarseRoot));
  REEF_ASSIGN_OR_RETURN(sum.output, new_result(builder, op, image));
  const TiledTensor& out = builder.tensor(sum.output);
  if (!(out.scale > 0) || !std::isfinite(out.scale)) return unsupported("{} is no scale", out.scale);
  sum.offset = -2 * out.zero_point;
  sum.clamp = numeric::chip_clamp(out.scale, out.zero_point, numeric::ChipActivation::kNone);
  sum.output_zero = out.zero_point;
  add_sum_step(builder, op, sum);
  return ok_status();
}

}  // namespace reef::lower
