// SPDX-License-Identifier: Apache-2.0
// Changes to a quantized model that let more of it run on the Edge TPU without changing what it computes beyond the
// rounding of int8.
//
// These are the passes of stage chip in passes.def, called rewrites where users meet them. Each looks for its pattern
// in subgraph 0 and replaces it. What is provably the same (same bytes for all inputs, or bounded by a proof or by
// trying all 256 values that an 8-bit tensor can have) is on by default; what changes the model's interface or may
// change results by more is on only when asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "ir/model.h"
#include "passes/pass_info.h"

namespace reef::passes {

// For each operator of subgraph 0, whether the Edge TPU could run it as it stands. The driver passes in the
// partitioner's judgement. All at once, because it is asked again after every change.
using FitsPredicate = std::function<std::vector<bool>(const ir::Model&)>;

struct RewriteOptions {
  std::vector<std::string> enable;   // names of passes: on, also where results differ by more than one step
  std::vector<std::string> disable;  // names of passes: off
  bool none = false;                 // --no-rewrites: only what `enable` names
  int runtime = 14;                  // what is made must run there
  graph::Evaluate evaluate;          // may be empty: rewrites that must try values are then left out
  // What fits is left alone, and what would not fit is not made. May be empty: then the rules of ops/ decide what to
  // touch, and nothing checks what is made.
  FitsPredicate fits;
};

// Results that differ by this many steps of the output's scale are rounding; larger differences need the user's word.
inline constexpr int kLargestDifference = 1;

// One replacement that was made (or was found and left, see `made`).
struct Application {
  std::string_view rewrite;    // its name
  std::int32_t op = -1;        // index of the replaced operator in the model as it was given; -1: the whole model
  std::string what;            // "op 12 HARD_SWISH 'features/act' became DEPTHWISE_CONV_2D and MUL"
  std::string place;           // name of the tensor that the replaced operator computed
  int largest_difference = 0;  // in steps of the output's scale, over everything that was tried; 0: the same bytes
  bool made = true;            // false: possible, but off; `what` says "could become", `how` what to pass
  std::string how;             // the option that switches it on (or, when made, off)
};

// Applies what is on, in order, again and again until nothing changes. `model` must be verified and stays so; tensors
// and operators that nothing uses any more are removed; what is left keeps names and order. Fails on an unknown name in
// the options. Same model, same result.
Result<std::vector<Application>> apply_rewrites(ir::Model& model, const RewriteOptions& options);

}  // namespace reef::passes
