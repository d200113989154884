// SPDX-License-Identifier: Apache-2.0
// GELU: x * sigmoid(1.702 x) where 8 bits cannot tell it from the real one, else a sum of ramps.
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {

constinit const Pass gelu_chip_pass = {
    .name = "gelu",
    .summary = "GELU becomes x * LOGISTIC(1.702 x) or a sum of ramps (see elu), whichever is within a step.",
    .safety = Safety::kRounding,
    .at_on_chip = [](ChipGraph& edit, std::int32_t index) {
      return replace_operator(edit, index, Op::GELU,
                              [](const Affine8& in, const Affine8& out) -> std::vector<Candidate> {
                                return {gelu_candidate(in, out), kinked_gelu_candidate(in, out)};
                              });
    }};

}  // namespace reef::passes
