// SPDX-License-Identifier: Apache-2.0
// From ranges to scales, with the equalities that operators need and as few requantizations as possible.
//
// Tensors that an operator wants at one scale (concatenation, pooling, reshape ...) form a group; its range holds those
// of all its members, so that producers write directly in the scale that is needed. A tensor stays out of a group, and
// is requantized on the way in, where its own scale is fixed (LOGISTIC ...) and the group's values do not fit it, or
// where it has another reader and the group is so much wider that this reader would suffer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/model.h"
#include "quantize/op_rules.h"
#include "quantize/range_choice.h"

namespace reef::quantize {

struct Scales {
  std::vector<std::optional<Affine>> tensors;  // of the first subgraph: each that integer operators compute or read
  // Input `second` of operator `first`, where that is not the tensor's own: constants, and what is requantized.
  std::map<std::pair<std::int32_t, int>, Affine> edges;
  int requantizations = 0;
};

// TFLite's comparisons take every scale but 1 (ops/comparison.cpp), which a constant 0 has, or pixels from 0 to 255:
// gives input `edge`, tensor `t`, another one.
void avoid_scale_1(const std::pair<std::int32_t, int>& edge, std::int32_t t, Scales& scales);

// The scale and zero point for a range. symmetric: zero point 0 and [-max, max].
Affine affine_for(const Range& range, Mode mode);

// `ranges`: of every float tensor that is not constant. `apart`: operators' inputs that shall not join, by measurement.
Scales assign_scales(const ir::Model& model, const std::vector<Decision>& decisions, const std::vector<Range>& ranges,
                     Mode mode, const std::vector<std::pair<std::int32_t, int>>& apart = {});

}  // namespace reef::quantize
