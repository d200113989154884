// SPDX-License-Identifier: Apache-2.0
// Which tensor of a float model a tensor of its quantized version stands for.
//
// By the quantizer's own list of names where there is one; by equal names, if the operators that compute them are of
// the same type; else by structure: an operator of the same type on matched operands. Conversions (QUANTIZE,
// DEQUANTIZE) hold the values of their operand. What matches nothing is left out and said.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "ir/uses.h"

namespace reef::evaluate {

struct NamePair {
  std::string float_name, quantized_name;
};

struct TensorMatch {
  std::vector<std::int32_t> float_of;  // for each tensor of the quantized model's first graph; -1: none
  // Of those tensors of the quantized model that were equalized: a value times its channel's factor (the last
  // dimension) is the float model's.
  std::map<std::int32_t, std::vector<float>> factors_of;
  ir::Uses uses;  // of the float model's first graph
  int by_list = 0, by_name = 0, by_structure = 0;
  std::vector<std::string> unmatched;  // results of the quantized model that stand for nothing in the float model
};

// Both models must have passed ir::verify and have as many inputs.
Result<TensorMatch> match_tensors(const ir::Model& float_model, const ir::Model& quantized,
                                  std::span<const NamePair> names = {});

// QUANTIZE or DEQUANTIZE: the same values in another form.
bool is_conversion(const ir::Operator& op);

}  // namespace reef::evaluate
