// SPDX-License-Identifier: Apache-2.0
// Replacing a function of one 8-bit tensor, element by element, by operators that the chip has.
//
// Such a tensor has 256 values, so whatever computes the function, and whatever is to replace it, is tried on all of
// them: the difference is not estimated but counted.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/table_functions.h"
#include "passes/chip/chip_graph.h"

namespace reef::passes {

using graph::tanh_affine;
using graph::unit_affine;

// Results for all inputs from the lowest to the highest, as stored numbers.
using Table = std::array<std::int32_t, 256>;

// Operators `ops` (indices, ascending), which compute `y` from `x` and constants of one value each, on all values of x.
// Nothing if they cannot be run.
std::optional<Table> tabulate(const ChipGraph& edit, std::span<const std::int32_t> ops, std::int32_t x, std::int32_t y);

// By how many steps the result of operators `ops`, which compute `z` from `x` and `y`, changes at most when y, which is
// table[x], is a step off. 256: they cannot be run.
int amplification(const ChipGraph& edit, std::span<const std::int32_t> ops, std::int32_t x, std::int32_t y,
                  std::int32_t z, const Table& table);

// How the chip stores such a tensor: its codes are 0..255.
ops::ChipAffine chip_affine(const Affine8& affine);
// Steps by which the chip's results, by table, differ from `wanted` at most.
int table_difference(const numeric::TableFit& fit, const Affine8& in, const Affine8& out, const Table& wanted);

// Whether operators of Google's compilers come closer to `wanted` than a table that is `difference` steps off.
bool others_are_closer(const ChipGraph& edit, const Affine8& in, const Affine8& out, const Table& wanted,
                       int difference);

// One way to compute a function: makes the operators that compute `y` from `x`, both [1, h, w, c], or says no.
struct Candidate {
  std::string into;  // "DEPTHWISE_CONV_2D and MUL"
  std::function<bool(OpList&, std::int32_t x, std::int32_t y)> build;
};

// Ways to compute well-known functions between tensors stored like this.
Candidate line_candidate(const Affine8& in, const Affine8& out, const Table& table);
Candidate hard_swish_candidate(const Affine8& out);
Candidate silu_candidate(const Affine8& out);
Candidate gelu_candidate(const Affine8& in, const Affine8& out);
Candidate kinked_gelu_candidate(const Affine8& in, const Affine8& out);
Candidate logistic_candidate(const Affine8& out);
Candidate tanh_candidate(const Affine8& out);

// Steps by which the candidate's results differ from `wanted` at most; 256: it cannot be built or run.
int differs_by(const ChipGraph& edit, const Affine8& in, const Affine8& out, const Candidate& candidate,
               const Table& wanted);

// Puts the best candidate in the place of operator `last`, the last of those that compute y from x: the first within
// kLargestDifference, sums of ramps (ramps.h) if there is none, else (if the user wants it) the closest. Returns
// whether the graph changed.
bool replace_function(ChipGraph& edit, std::int32_t last, std::int32_t x, std::int32_t y, const Table& wanted,
                      std::span<const Candidate> candidates);

// The same for an operator of this type by itself, where it does not fit the chip.
bool replace_operator(
    ChipGraph& edit, std::int32_t index, OpName type,
    const std::function<std::vector<Candidate>(const Affine8& in, const Affine8& out)>& candidates_of);

}  // namespace reef::passes
