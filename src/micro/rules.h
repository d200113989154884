// SPDX-License-Identifier: Apache-2.0
// Rules for operators that TFLite Micro refuses although it has the operator and the types, and for those that it
// computes differently from TFLite.
//
// Every rule was seen broken: tests/micro/verdicts.tsv has what the runtime said to such models, and a test compares
// all of its lines with these rules. "Computes otherwise" is a refusal, too: the model would run and give other numbers
// than `reef run`, LiteRT and the Edge TPU's own toolchain, and nobody would be told.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "micro/op_view.h"
#include "micro/operators.h"

namespace reef::micro {

struct Finding {
  std::string_view rule;    // its name: "constant-operand"
  std::string particulars;  // a whole sentence: what about this operator breaks it
  std::string remedy;       // a whole sentence: what to do
};

// All rules that the operator breaks. It must be in the table with its types.
std::vector<Finding> check_parameters(const OpView& view, Releases releases);

}  // namespace reef::micro
