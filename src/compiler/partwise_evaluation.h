// SPDX-License-Identifier: Apache-2.0
// A model run on the CPU of which some operators are computed as the chip computes them.
//
// The parts become custom operators of one model, which the interpreter runs like any other: variables, loops and
// branches work as ever, and what a streaming model remembers stays from run to run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "compiler/verification.h"
#include "execute/cpu/interpreter.h"

namespace reef::compiler {

class PartwiseEvaluation {
 public:
  // `source` must be one that the CPU runtime prepares. `generations`: of the compiler, by part. `options.budget`: also
  // of the chip reference.
  static Result<std::unique_ptr<PartwiseEvaluation>> create(std::shared_ptr<const ir::Model> source,
                                                            std::vector<VerifiedPart> parts,
                                                            std::vector<int> generations,
                                                            cpu::InterpreterOptions options = {});

  cpu::Interpreter& interpreter() { return *interpreter_; }
  // Of the last run, by part: what went in and came out, by tensor of the source.
  const std::vector<reference::TensorBytes>& part_inputs() const { return part_inputs_; }
  const std::vector<reference::TensorBytes>& part_outputs() const { return part_outputs_; }

 private:
  PartwiseEvaluation(std::shared_ptr<const ir::Model> source, std::vector<VerifiedPart> parts,
                     std::vector<int> generations, Budget budget);
  Result<ops::Kernel> prepare_part(ops::PrepareContext& context);
  Status run_part(std::size_t part, ops::RunContext& run);

  std::shared_ptr<const ir::Model> source_;
  std::vector<VerifiedPart> parts_;
  std::vector<int> generations_;
  Budget budget_;
  std::vector<reference::TensorBytes> part_inputs_, part_outputs_;
  std::unique_ptr<cpu::Interpreter> interpreter_;
};

// One run from the model's inputs to its outputs.
Result<TensorList> evaluate_with_parts(const ir::Model& model, const std::vector<VerifiedPart>& parts,
                                       const std::vector<int>& generations, const TensorList& inputs,
                                       const Budget& budget = {});

}  // namespace reef::compiler
