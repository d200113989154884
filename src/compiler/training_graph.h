// SPDX-License-Identifier: Apache-2.0
// The model that the chip computes, for a program that trains it.
//
// Quantization-aware training repeats the chip's arithmetic in another framework (bindings/python/reef/torch). It needs
// three things from here: the graph after all rewrites, because these change last bits; the codes of functions that the
// chip computes by table; and a way to put trained constants and scales back into the model.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/plan.h"
#include "ir/model.h"
#include "ops/table_functions.h"

namespace reef::compiler {

struct TrainingOp {
  // Why the chip does not run it, a clause; empty: it does. QUANTIZE of a float input and DEQUANTIZE of an output never
  // run on the chip, and are listed here, too.
  std::string on_cpu;
  bool is_rewritten = false;  // a rewrite made it: scales between such operators are part of how it works
};

struct TrainingGraph {
  std::shared_ptr<const ir::Model> model;  // as `reef compile` would give it to the code generator
  std::vector<TrainingOp> ops;             // by operator of subgraph 0
  std::vector<std::string> rewrites;       // what was done, a sentence each
};

// What the scales of the graph are for. The compiler puts one table in the place of several operators (a ReefFunction),
// whose 256 values hold for the scales that the model has.
enum class GraphUse {
  kTraining,  // scales will change: several operators stay several
  kChecking,  // scales stay: the graph is the one that `reef compile` gives to the code generator
};

// `model` must be verified and quantized. The rewrites are those that `reef compile` makes with these options, but for
// what `use` says. Which operators there is machine code for is not tried.
Result<TrainingGraph> make_training_graph(const std::shared_ptr<const ir::Model>& model, const PlanOptions& options,
                                          GraphUse use);

// New content for a tensor of subgraph 0.
struct TensorEdit {
  std::int32_t tensor = 0;
  std::span<const std::uint8_t> data;  // empty: stays; else as many bytes as before, and the tensor must be a constant
  std::vector<float> scales;           // empty: stay; else as many as before
  std::vector<std::int64_t> zero_points;
};

// The model with its tensors changed. Constants that share a buffer with others get a buffer of their own. Fails,
// naming the tensor, where an edit does not fit.
Result<ir::Model> with_edits(const ir::Model& model, std::span<const TensorEdit> edits);

// The output codes of an operator that is a function of one 8-bit tensor, in the chip's arithmetic (execute/reference),
// by input code; both 0 to 255 as the chip counts. Fails for other operators.
using FunctionCodes = std::array<std::int32_t, 256>;
Result<FunctionCodes> chip_function_codes(const ir::Operator& op, const ops::ChipAffine& in,
                                          const ops::ChipAffine& out);

}  // namespace reef::compiler
