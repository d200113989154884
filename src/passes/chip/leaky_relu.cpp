// SPDX-License-Identifier: Apache-2.0
// LEAKY_RELU: PRELU with the same slope in every channel, or for runtimes without PRELU the larger (slope above 1: the
// smaller) of x and slope * x.
#include <cmath>

#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr int kFirstRuntimeWithPrelu = 13;

// The slope is one step of its scale: TFLite's PRELU then computes with the very factors of its LEAKY_RELU.
std::int32_t slope_tensor(OpList& list, std::int32_t channels, ir::DataType type, double alpha) {
  Affine8 affine{type, static_cast<float>(std::abs(alpha)), 0};
  if (alpha == 0) affine.scale = 1;
  if (type == ir::DataType::kUInt8 && alpha < 0) affine.zero_point = 1;
  const std::int32_t step = alpha == 0 ? 0 : alpha < 0 ? -1 : 1;
  return list.filled({1, 1, channels}, affine, affine.zero_point + step);
}

Candidate prelu_candidate(const Affine8& in, double alpha) {
  return {"PRELU", [=](OpList& list, std::int32_t x, std::int32_t y) {
            const std::int32_t slope = slope_tensor(list, list.shape(x)[3], in.type, alpha);
            list.add(Op::PRELU, "", {}, {x, slope}, {y}, in.type);
            return true;
          }};
}

Candidate maximum_candidate(const Affine8& in, const Affine8& out, double alpha) {
  const Op choice = alpha > 1 ? Op::MINIMUM : Op::MAXIMUM;
  return {in == out ? fmt::format("DEPTHWISE_CONV_2D and {}", name_of(choice))
                    : fmt::format("2 DEPTHWISE_CONV_2D and {}", name_of(choice)),
          [=](OpList& list, std::int32_t x, std::int32_t y) {
            const std::int32_t straight = in == out ? x : list.line(x, 1, 0, out);
            const std::int32_t leaking = list.line(x, alpha, 0, out);
            return straight >= 0 && leaking >= 0 && list.binary(choice, straight, leaking, out, y) >= 0;
          }};
}

bool leaky_relu_at(ChipGraph& edit, std::int32_t index) {
  const double alpha = edit.op(index).attributes.get_float("alpha");
  if (!std::isfinite(alpha)) return false;
  return replace_operator(edit, index, Op::LEAKY_RELU, [&](const Affine8& in, const Affine8& out) {
    std::vector<Candidate> candidates;
    // Where someone can judge, what does not fit is not made anyway.
    if (edit.options().fits || edit.options().runtime >= kFirstRuntimeWithPrelu) {
      candidates.push_back(prelu_candidate(in, alpha));
    }
    if (alpha != 0) candidates.push_back(maximum_candidate(in, out, alpha));
    return candidates;
  });
}

}  // namespace

constinit const Pass leaky_relu_chip_pass = {
    .name = "leaky-relu",
    .summary = "LEAKY_RELU becomes PRELU, or for runtimes without it the MAXIMUM of x and slope * x.",
    .safety = Safety::kRounding,
    .at_on_chip = leaky_relu_at};

}  // namespace reef::passes
