// SPDX-License-Identifier: Apache-2.0
// MUL of two computed tensors, or of one and a constant.
#include <algorithm>

#include "lower/constants.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"
#include "ops/table_functions.h"

namespace reef::lower {
namespace {

using tiled::Product;

// Narrow memory that the spread operand may take; what does not fit is done in rounds.
constexpr std::int64_t kMostSpreadBytes = 16 << 10;
constexpr std::int64_t kMostSpreadSteps = std::int64_t{1} << 14;  // of a loop

std::int64_t most_pixels(const TiledTensor& tensor) {
  switch (tensor.spread) {
    case tiled::Spread::kGrid:
      return std::int64_t{tensor.rows.max_own()} * tensor.columns.max_own();
    case tiled::Spread::kVector:
      return 1;
    case tiled::Spread::kCopies:
      return std::int64_t{tensor.height} * tensor.width;
  }
  return 1;
}

// Google's way takes four times the result's memory.
constexpr std::int64_t kMostOneByOneBytes = 64 << 10;
constexpr std::int32_t kOneByOneBlock = 4;  // words

bool finish_one_by_one(Builder& builder, tiled::Step& step, Product& product) {
  const TiledTensor& tensor = builder.tensor(product.output);
  const std::int64_t bytes = most_pixels(tensor) * tensor.pixel_words() * chip::kNarrowWordBytes * tiled::kSpreadWords;
  const bool known = tensor.pixel_words() == 1 || tensor.pixel_words() % kOneByOneBlock == 0;
  if (builder.level() != tiled::Level::kAsGoogle || tensor.spread != tiled::Spread::kGrid || !known ||
      bytes > kMostOneByOneBytes) {
    return false;
  }
  product.one_by_one = true;
  product.spread = builder.new_narrow(bytes);
  product.matrices = builder.new_wide(tiled::kOneByOneLines);
  step.narrow_used = {product.spread};
  step.wide_used = {product.matrices};
  product.identity = builder.identity(step);
  if (!builder.take_place(product.output, product.b)) builder.take_place(product.output, product.a);
  return true;
}

Status product_finish_product(Builder& builder, tiled::Step& step) {
  auto& product = std::get<Product>(step.work);
  if (finish_one_by_one(builder, step, product)) return ok_status();
  const TiledTensor& tensor = builder.tensor(product.output);
  const std::int64_t pixels = std::max<std::int64_t>(1, most_pixels(tensor));  // none in a slice of few rows
  const std::int64_t words = tensor.spread == tiled::Spread::kVector
                                 ? std::min(tensor.pixel_words(), tiled::kVectorRun / chip::kNarrowWordBytes)
                                 : tensor.pixel_words();
  const std::int64_t bytes_of_word = pixels * tiled::kSpreadWords * chip::kNarrowWordBytes;
  // So many do not fit either: slices, for whose choice sketches are made, will have fewer.
  if (pixels > kMostSpreadSteps && !builder.is_sketch()) {
    return unsupported("a tile has {} pixels, more than a loop can count", pixels);
  }
  product.words_at_once =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(kMostSpreadBytes / bytes_of_word, 1, words));
  product.spread = builder.new_narrow(bytes_of_word * product.words_at_once);
  product.spreader_words = builder.new_narrow(tiled::kSpreaderWords * chip::kNarrowWordBytes);
  product.spreader = builder.new_wide(1);
  product.matrices = builder.new_wide(2 * tiled::kMostProductBlock);
  step.narrow_used = {product.spread, product.spreader_words};
  step.wide_used = {product.spreader, product.matrices};
  if (!builder.take_place(product.output, product.a)) builder.take_place(product.output, product.b);
  return ok_status();
}

}  // namespace

Status lower_product(Builder& builder, std::int32_t op) {
  if (ops::has_table(builder.op(op))) return lower_fitted_function(builder, op);  // SiLU
  REEF_ASSIGN_OR_RETURN(const bool with_constant, lower_with_constant(builder, op));
  if (with_constant) return ok_status();
  REEF_ASSIGN_OR_RETURN(const bool with_numbers, lower_with_pixel_numbers(builder, op));
  if (with_numbers) return ok_status();
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(builder.op(op)));
  REEF_ASSIGN_OR_RETURN(const Operands operands, spread_operands(builder, op));
  const std::int32_t to = builder.op(op).outputs[0];
  Product product;
  product.a = operands.a;
  product.b = operands.b;
  REEF_ASSIGN_OR_RETURN(product.output, builder.new_like(to, product.a));
  const TiledTensor &a = builder.tensor(product.a), &b = builder.tensor(product.b);
  const TiledTensor& out = builder.tensor(product.output);
  product.a_zero = a.zero_point;
  product.b_zero = b.zero_point;
  product.output_zero = out.zero_point;
  product.multiplier = numeric::chip_product_multiplier(a.scale, b.scale, out.scale);
  product.clamp = numeric::chip_clamp(out.scale, out.zero_point, activation);
  builder.set_value(to, {product.output, {}});
  const std::int32_t output = product.output;
  builder.add_step(op, product, {Read{operands.a}, Read{operands.b}}, {output}, product_finish_product);
  return ok_status();
}

}  // namespace reef::lower
