// SPDX-License-Identifier: Apache-2.0
// How operators that only move elements move axes. The operator itself shows it, when it runs on numbers of elements
// instead of elements; so any such operator is understood, whatever its attributes are.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/model.h"

namespace reef::prune {

// Where the indices of one axis of a result come from: one axis of one operand.
struct MovedAxis {
  static constexpr std::int32_t kPadding = -1, kOther = -2;  // comes from another operand
  std::int32_t output = 0;                                   // tensor
  int output_axis = 0;
  std::int32_t input = 0;  // tensor
  int input_axis = 0;
  std::vector<std::int32_t> from;  // by index of the result's axis: index of the operand's axis, kPadding or kOther
};

// Axes whose coordinates depend on several others (DEPTH_TO_SPACE's channels) are left out. nullopt: the operator could
// not be run.
std::optional<std::vector<MovedAxis>> moved_axes(const ir::Model& model, const ir::Operator& op);

// Axes that must stay whole for the operator's sizes and indices to stay right: those of operands that no axis of a
// result follows, and those whose operator counts in steps that shrinking_moves.cpp does not adapt.
std::vector<std::pair<std::int32_t, int>> whole_axes(const ir::Model& model, const ir::Operator& op,
                                                     const std::vector<MovedAxis>& moved);

}  // namespace reef::prune
