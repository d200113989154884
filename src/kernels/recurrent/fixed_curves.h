// SPDX-License-Identifier: Apache-2.0
// The fixed-point curves of integer LSTM cells: numeric::logistic and numeric::tanh of many 16-bit numbers.
//
// One number takes the scalar functions some 20 nanoseconds, more than everything else in a small cell. They are made
// of 16-bit products, which vectors do 8 or 16 at a time (fixed_curves_body.h); CPUs for which there is no such code
// look results up in tables (curve_table.h). Results are those of the scalar functions, for all 65,536 numbers.
#pragma once

#include <cstdint>

namespace reef::kernels {

// Numbers with 3 integer bits; results have none. In place.
void logistic_q3(std::int16_t* values, std::int64_t count);
// Numbers with `integer_bits` integer bits, 0 to 6 (what is more counts as 6); results have none. `result` may be
// `values`.
void tanh_q15(int integer_bits, const std::int16_t* values, std::int64_t count, std::int16_t* result);

}  // namespace reef::kernels
