// SPDX-License-Identifier: Apache-2.0
// How operators work on operands in another layout: which layouts belong together, and what changes in attributes and
// parameters (axes, paddings, sizes). One entry per kind of operator; all of them compute the same values, in another
// order. Where that order is the order of a sum (reductions over several axes, FULLY_CONNECTED behind a flattened map),
// floating-point results may differ by rounding.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace reef::passes {

// Layouts of an operator's operands. nullopt: not concerned, or not known yet.
struct Relayout {
  std::vector<std::optional<Layout>> inputs, outputs;
};

struct LayoutRule {
  // Given at least one layout, finds all that go with it, those of constants included. False: the operator cannot work
  // so, or those given contradict each other.
  bool (*complete)(const Graph&, OpId, Relayout&) = nullptr;
  // Changes attributes and parameters. Operands that have a layout are replaced by the caller, afterwards; shapes in
  // the graph are still the old ones.
  void (*apply)(Graph&, OpId, const Relayout&) = nullptr;
};

// Null: the operator is tied to its layout. The operator must be sound.
const LayoutRule* find_layout_rule(const Graph& graph, OpId op);

// The layout that TRANSPOSE or a RESHAPE of axes of size 1 brings its input into; nullopt for all others. What is
// returned for a TRANSPOSE is a permutation.
std::optional<Layout> conversion_of(const Graph& graph, OpId op);

// ---- For the rules ----
// One layout for all data operands and results, which have the same rank. `data`: which inputs are concerned; no
// other must be given one.
bool same_layout(Relayout& wanted, const Graph& graph, OpId op, std::span<const std::size_t> data);
// No input but the first is given a layout, as parameters must not be.
bool only_first_given(const Relayout& wanted);
// Axis of the operator counted from 0; -1: out of range.
int normal_axis(std::int64_t axis, int rank);

extern const LayoutRule kElementwiseRule, kReshapeRule;
const LayoutRule* find_axis_rule(std::string_view type);       // layout_rules_axis.cpp
const LayoutRule* find_extent_rule(std::string_view type);     // layout_rules_extent.cpp: one value per axis
const LayoutRule* find_last_axis_rule(std::string_view type);  // layout_rules_last_axis.cpp: tied to the last axis

}  // namespace reef::passes
