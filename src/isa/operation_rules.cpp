// SPDX-License-Identifier: Apache-2.0
// Facts that follow from an operation's fields: which dimension a clip shortens, which steps make one result, and which
// operations only copy.
#include <algorithm>
#include <limits>

#include "isa/movers.h"
#include "isa/operation.h"

namespace reef::isa {

int clipped_dim(const Instruction& instruction, const NestFields& nest) {
  return instruction.opcode() == Opcode::kNarrowToWide && nest.name == movers::kToWideIn.name &&
                 instruction.test(movers::kTranspose)
             ? 1
             : 0;
}

bool TensorOperation::is_plain_copy() const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool is_exact = scale == 1 && max == kInfinity && min == -kInfinity && constant == 0;
  const bool has_zeros = in_zero != 0 || param_zero != 0 || out_zero != 0 || has_zero_line;
  return is_exact && !has_zeros && !in_16 && !param_16 && !out_16 && !has_bias && !has_scales && !activation;
}

// The inner psum dimensions decide, or the loop dimensions in the mask; a resampling operation's results follow its
// taps. Where a clip cuts the last index of a summed dimension short, the results beyond it end one index earlier.
bool ends_result(const TensorOperation& operation, Opcode opcode, const NestCursor& loops, const NestCursor& psum) {
  if (opcode == Opcode::kResample) return loops.at_last(0) && loops.at_last(1);
  if (operation.group_level >= 0) {
    for (int k = 0; k < std::min(operation.group_level, operation.psum.dims); ++k) {
      if (!psum.at_last(k)) return false;
    }
    return true;
  }
  const NestShape& shape = operation.loops;
  const auto sums = [&](int dim) { return (operation.reduce_dims >> dim & 1) != 0; };
  const bool beyond_clip = shape.clip_dim > 0 && !sums(0) && sums(shape.clip_dim) && loops.index(0) >= shape.clip_steps;
  for (int k = 0; k < shape.dims; ++k) {
    if (!sums(k)) continue;
    const bool is_last =
        beyond_clip && k == shape.clip_dim ? loops.index(k) + 2 >= shape.count[at(k)] : loops.at_last(k);
    if (!is_last) return false;
  }
  return true;
}

}  // namespace reef::isa
