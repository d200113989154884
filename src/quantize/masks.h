// SPDX-License-Identifier: Apache-2.0
// Numbers that stand for "nothing here": the filling of a padded max pool, -1e9 in an attention mask, -inf in a WHERE.
// They are no values of the network, and a range that held them would have no room for those: it would round all of
// them to one number. They do not count, and are cut to the end of the range, where they do what they are for.
//
// Three ways to know them:
//   - by size: no network computes with numbers of 1e30 and more, infinities among them;
//   - in front of a SOFTMAX, whose rows give 0 for what lies far below the row's largest element;
//   - as constants that an operator puts between values a thousand times smaller.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/model.h"
#include "quantize/op_rules.h"
#include "quantize/range_choice.h"

namespace reef::quantize {

inline constexpr float kMask = 1e30f;  // from this size on a number is a mask wherever it stands
// Also infinities and NaN.
inline bool is_masked(float value) { return !(value < kMask && value > -kMask); }

// For each tensor of the first subgraph: the length of the rows that SOFTMAX takes of it, if nothing else reads it; 0
// else.
std::vector<std::int64_t> softmax_rows(const ir::Model& model);

// What a SOFTMAX over rows of `row` elements makes of `values`: elements far below their row's largest count as so much
// less that all of them together are half a step of the result; rows that are masked as a whole are left out.
// `memory` holds the result unless nothing had to be changed.
std::span<const float> as_softmax_reads(std::span<const float> values, std::int64_t row, std::vector<float>& memory);

// Ranges without the masks that constants bring in, and without what only pushes a sum beyond the range of its result.
// `ranges`: of the tensors of the first subgraph.
std::vector<Range> without_masks(const ir::Model& model, const std::vector<Decision>& decisions,
                                 std::vector<Range> ranges);

// The part of a constant operand's range that makes a difference to the result's, which saturates.
// `position`: of the constant among the operator's inputs; `other`: the range of the other operand, `result`: of the
// result; `step`: of the other operand.
Range useful_range(const ir::Operator& op, std::size_t position, const Range& constant, const Range& other,
                   const Range& result, double step);

}  // namespace reef::quantize
