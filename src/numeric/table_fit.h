// SPDX-License-Identifier: Apache-2.0
// Activation tables of the Edge TPU for functions that Google's compilers have none for.
//
// An 8-bit tensor has 256 values, so a function of one is 256 numbers. A table has eight polynomials of degree four:
// each takes over where the one before would be off by more than allowed, and all of it is computed in the chip's own
// arithmetic (ChipTable::at), so that the error that is stated is the error there is, cancellation in float32 included.
//
// How it is known: the format of tables is read from Google's programs (chip_tables.h); coefficients are our own. No
// table of this kind has run on silicon.
#pragma once

#include <array>

#include "numeric/chip_tables.h"

namespace reef::numeric {

// Values of a function at all codes of its argument, in steps of the output, before rounding and zero point. Not a
// number: any will do.
using CodeValues = std::array<double, 256>;

struct TableFit {
  ChipFunction function;
  double error = 0;  // largest distance from the values, in steps of the output; what saturates equally is equal
};

// The argument of code c is scale * (c - zero_point). Results are codes of `output_zero_point` above the values, within
// 0..255.
TableFit fit_table(const CodeValues& values, float scale, int zero_point, int output_zero_point);

}  // namespace reef::numeric
