// SPDX-License-Identifier: Apache-2.0
// The functions that the Edge TPU evaluates by table: the coefficients that Google's compilers put into programs.
//
// A table is eight polynomials (ChipTable, chip_tensor.h). Its argument is a real number, clamped first to the range
// beyond which the function is flat; its value is in units of the output's scale. For another output scale the
// compilers multiply every coefficient of one base table by 1/scale, in float32; the breaks stay.
//
// How it is known: read from compiled programs. 913 load instructions in 240 public files hold nine tables, and these
// four with their scaling give seven of them to the bit. The other two are not given: an older compiler's logistic
// (other breaks) and a tanh whose constant term, -8e-15 here, is 2.5e-14. How Google fitted the coefficients is not
// known. zoo_tables_test.cpp compares with every program of the model collection.
#pragma once

#include "numeric/chip_tensor.h"

namespace reef::numeric {

struct ChipFunction {
  ChipTable table;
  float min = 0, max = 0;           // limits of the argument
  bool is_odd = false;              // the table serves |x|, the sign is put back
  bool is_reciprocal_root = false;  // the table serves [1, 4) (chip_reciprocal_root)

  // Before rounding, in units of the output's scale.
  float at(float x) const;
};

// 1 / (1 + e^-x). Within 0.008/256 of the function for an output scale of 1/256.
ChipFunction chip_logistic(float output_scale);

// Within 0.0003/128 of the function for an output scale of 1/128.
ChipFunction chip_tanh(float output_scale);

// x * x, by one polynomial: SQUARED_DIFFERENCE of Google's compiler (docs/hardware/public_files.md#larger-files).
ChipFunction chip_square(float output_scale);

// SOFTMAX. Numerators are kChipExpOne * e^x for x <= 0, always; the denominator is found through kChipRootOne /
// sqrt(x), a table for [1, 4) that goes with chip_reciprocal_root().
inline constexpr float kChipExpOne = 65535, kChipRootOne = 46340;
ChipFunction chip_exp();
ChipTable chip_root_table();

// `one` / sqrt(x): the same table in other units. Whether the limits of the argument count in this mode is not known:
// there are none.
ChipFunction chip_inverse_root(float one);

}  // namespace reef::numeric
