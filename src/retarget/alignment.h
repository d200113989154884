// SPDX-License-Identifier: Apache-2.0
// Which part of the model a compiled file replaces.
//
// A compiled file is a TFLite model in which one custom operator stands for the compiled part; operators that the
// compiler left to the CPU are still there. Starting from inputs and outputs, which correspond by position, these
// operators are found in the model, and thereby the model's tensors at the border of the compiled part.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::retarget {

struct Alignment {
  std::int32_t custom_op = 0;                    // in the compiled file
  std::vector<std::int32_t> inputs, outputs;     // model tensors, by position of the custom operator's
  std::vector<std::int32_t> chip_ops;            // model operators of the compiled part, ascending
  std::map<std::int32_t, std::int32_t> cpu_ops;  // operator of the compiled file -> of the model
  std::map<std::int32_t, std::int32_t> tensors;  // the same for tensors
};

// Both models must be verified. Refuses, saying what differs.
Result<Alignment> align(const ir::Model& compiled, const ir::Model& model);

}  // namespace reef::retarget
