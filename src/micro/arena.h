// SPDX-License-Identifier: Apache-2.0
// How large TFLite Micro's tensor arena must be.
//
// Problem: the arena is a constant in the program, found by trial and error on the board: too small, and
// AllocateTensors() fails; too large, and memory is wasted. Approach: the allocator's steps are repeated on sizes
// alone. From the arena's end down come structures that stay (tensors, nodes, parameters, what each kernel keeps); from
// its start up come tensors and scratch memory, planned by lifetime (greedy_plan). While that is planned, the planner's
// own lists stand where tensors will: small models with many tensors need more for planning than for running.
//
// Sizes of structures depend on the release and on the size of a pointer (operator_sizes.def). What kernels keep is for
// the reference kernels of `tflite-micro`, and for Coral's SDK for those that it has from CMSIS-NN. Other optimized
// kernels may ask for other scratch memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ir/model.h"
#include "micro/operators.h"

namespace reef::micro {

// A build of TFLite Micro.
enum class Build : std::uint8_t {
  kTflm32,  // the current release with pointers of 32 bits: microcontrollers
  kTflm64,  // the Python package `tflite-micro`: 64 bits, an allocator that records, support for compressed tensors
  kCoral,   // Coral's SDK on the Dev Board Micro's Cortex-M7
};

struct ArenaSize {
  std::int64_t bytes = 0;       // of the arena: the smallest multiple of 16 in which the model is prepared
  std::int64_t tensors = 0;     // planned: tensors and scratch memory that live at one time, gaps included
  std::int64_t structures = 0;  // what stays
  std::int64_t planning = 0;    // what the planner needs while it plans
  bool inputs_overlap = false;  // two inputs of the model share memory: whoever fills one writes over the other
};

// Fails for tensors whose size is not known (dynamic shapes, strings) and for models with more tensors than anyone
// plans. `model` must be verified.
Result<ArenaSize> predict_arena(const ir::Model& model, Build build);

}  // namespace reef::micro
