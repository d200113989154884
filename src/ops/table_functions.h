// SPDX-License-Identifier: Apache-2.0
// Functions of one variable that the Edge TPU computes by an activation table of Reef's own making
// (numeric/table_fit.h), in one pass: GELU, SiLU, a number divided by x, the unary operators of unary_function() that a
// rewrite has marked, and ReefFunction, whose 256 values it carries. Code generator, rewrites and chip reference take
// the table from here, so that they speak of the same numbers.
//
// LOGISTIC, TANH and RSQRT are not among them: Google's compilers have tables for these.
#pragma once

#include <functional>

#include "ir/model.h"
#include "ir/op.h"
#include "numeric/table_fit.h"
#include "ops/op_def.h"

namespace reef::ops {

// The function of real numbers that a unary operator is, whether or not the chip gets it by a table; null: it is not
// listed (table_functions.cpp).
std::function<double(double)> unary_function(const ir::Operator& op);

// Whether the chip has the operator by such a table.
bool has_table(const ir::Operator& op);

// The attribute of a unary operator that the chip computes by a table: true. Google's compilers leave these operators
// on the CPU, and for some scales a table does not come near enough, so rewrites set it where all 256 values were
// tried. It is never in files.
inline constexpr char kByTable[] = "reef_by_table";

// The first runtime version that runs the operator, by its definition or by a table; 0: none does.
int first_runtime(const OpDef& definition, const ir::Operator& op);

// An operator of Reef's own (reef_function.cpp): a function of one 8-bit tensor, with its 256 results from the lowest
// input to the highest, as stored numbers and as real numbers that are not rounded yet.
inline constexpr char kCodes[] = "codes";
inline constexpr char kValues[] = "values";

// The attribute of a MUL that is a SiLU: the operand, 0 or 1, that is x where the other is LOGISTIC of x. It is set by
// the rewrite `one-pass` and never in files. Such a MUL is computed from x alone.
inline constexpr char kSiluOperand[] = "reef_silu_operand";
// The attribute of a DIV of a constant number by x: the number. Set by the rewrite `one-pass` and never in files.
inline constexpr char kNumerator[] = "reef_numerator";
// The operand that the function is of: 0 but for these two.
std::size_t table_operand(const ir::Operator& op);

// How a tensor stores real numbers, as the chip does: codes are 0..255.
struct ChipAffine {
  float scale = 1;
  int zero_point = 0;
  friend auto operator<=>(const ChipAffine&, const ChipAffine&) = default;
};
// The operator must be one that has_table(). Takes a fraction of a millisecond the first time.
numeric::TableFit table_fit(const ir::Operator& op, const ChipAffine& in, const ChipAffine& out);

// There is no code for a table that is further from the function than this, in steps; with it, a result is the rounded
// value of the function or the one next to it. No scales are known for which a function of these is.
inline constexpr double kLargestTableError = 0.25;

}  // namespace reef::ops
