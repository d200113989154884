// SPDX-License-Identifier: Apache-2.0
// HARD_SWISH: x * clamp(x / 6 + 1 / 2, 0, 1), a depthwise convolution whose saturation is the clamp, and a product.
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {

constinit const Pass hard_swish_chip_pass = {
    .name = "hard-swish",
    .summary = "HARD_SWISH becomes a 1x1 DEPTHWISE_CONV_2D that saturates at 0 and 1, and a MUL.",
    .safety = Safety::kRounding,
    .at_on_chip = [](ChipGraph& edit, std::int32_t index) {
      return replace_operator(
          edit, index, Op::HARD_SWISH,
          [](const Affine8&, const Affine8& out) -> std::vector<Candidate> { return {hard_swish_candidate(out)}; });
    }};

}  // namespace reef::passes
