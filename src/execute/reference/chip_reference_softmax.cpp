// SPDX-License-Identifier: Apache-2.0
// SOFTMAX. Compilers from 15 on let the tiles compute it from two function tables, with 16-bit intermediates; those
// before let the scalar core compute it in float32, one element after the other. Both orders of operations are those of
// the programs. Assumed for the scalar core: 2^x and 1/x are the float32 numbers closest to the exact results.
#include <algorithm>
#include <cmath>
#include <span>

#include "execute/reference/chip_reference_op.h"
#include "numeric/chip_tables.h"

namespace reef::reference {
namespace {

constexpr std::int32_t kSoftmaxMax16 = 65535;
constexpr float kOutputScale = 1.0f / 256;  // the only one seen

void tile_row(std::span<const std::int32_t> in, float scale, std::vector<std::int32_t>& out) {
  const numeric::ChipFunction exp = numeric::chip_exp();
  const std::int32_t highest = *std::max_element(in.begin(), in.end());
  std::vector<std::int32_t> numerators;
  std::int64_t sum = 0;
  for (const std::int32_t code : in) {
    const float argument = static_cast<float>(code - highest) * scale;
    numerators.push_back(numeric::chip_round(exp.at(argument), 0, kSoftmaxMax16));
    sum += numerators.back();
  }
  const float one = 1.0f / numeric::kChipExpOne;
  const float root = numeric::chip_reciprocal_root(numeric::chip_root_table(), static_cast<float>(sum) * one);
  const std::int64_t rounded_root = numeric::chip_round(root, 0, kSoftmaxMax16);
  const std::int32_t inverse =
      requantized(rounded_root * rounded_root, one, {.max = 32768, .min = 0}, 0, kSoftmaxMax16);
  const float root_unit = 1.0f / numeric::kChipRootOne;
  const float multiplier = numeric::chip_product_multiplier(root_unit, root_unit, kOutputScale);
  for (const std::int32_t numerator : numerators) {
    out.push_back(requantized(std::int64_t{numerator} * inverse, multiplier, {.max = 255, .min = 0}, 0));
  }
}

float exp2_of(float x) { return static_cast<float>(std::exp2(double{x})); }

void scalar_row(std::span<const std::int32_t> in, float scale, std::int32_t zero, std::vector<std::int32_t>& out) {
  constexpr float kLog2E = 1.442695f;
  std::vector<float> reals;
  for (const std::int32_t code : in) reals.push_back(static_cast<float>(code - zero) * scale);
  const float highest = *std::max_element(reals.begin(), reals.end());
  const auto power = [&](float real) { return exp2_of((real - highest) * kLog2E); };
  float sum = 0;
  for (const float real : reals) sum += power(real);
  const float inverse = 1.0f / sum;
  for (const float real : reals) {
    const float code = power(real) * inverse * 256.0f;
    out.push_back(static_cast<std::int32_t>(std::nearbyint(std::max(std::min(code, 255.0f), 0.0f))));
  }
}

Status softmax(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(op.output()));
  // Google's programs only have a beta of 1; another one is taken to be a factor of the scale.
  const float scale = from.scale() * static_cast<float>(op.attributes().get_float("beta", 1));
  if (to.scale() != kOutputScale || to.zero() != 0) {
    return unsupported("it is not known with an output scale other than 1/256");
  }
  const std::vector<std::int32_t>& in = op.value(0).codes;
  const auto size = static_cast<std::size_t>(op.value(0).shape.last());
  std::vector<std::int32_t> codes;
  for (std::size_t row = 0; row < in.size(); row += size) {
    const auto elements = std::span(in).subspan(row, size);
    if (op.options().compiler_generation >= 15) {
      tile_row(elements, scale, codes);
    } else {
      scalar_row(elements, scale, from.zero(), codes);
    }
  }
  return op.give(std::move(codes));
}

}  // namespace

std::vector<ChipOpEntry> chip_softmax_ops() { return {{Op::SOFTMAX, softmax}}; }

}  // namespace reef::reference
