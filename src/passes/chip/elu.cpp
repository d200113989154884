// SPDX-License-Identifier: Apache-2.0
// ELU: x above zero, exp(x) - 1 below; few straight pieces in 8 bits.
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {

constinit const Pass elu_chip_pass = {
    .name = "elu",
    .summary = "ELU becomes a sum of ramps: 1x1 DEPTHWISE_CONV_2D that saturate at both ends, and ADD.",
    .safety = Safety::kRounding,
    .at_on_chip = [](ChipGraph& edit, std::int32_t index) {
      return replace_operator(edit, index, Op::ELU,
                              [](const Affine8&, const Affine8&) { return std::vector<Candidate>(); });
    }};

}  // namespace reef::passes
