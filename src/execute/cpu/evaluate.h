// SPDX-License-Identifier: Apache-2.0
// Values of tensors, now: the one way in which Reef computes with a model for its own purposes (constants are folded,
// rewrites tried, written files checked), as opposed to running one because a user asked for its outputs.
//
// It computes as the current release of TFLite does, which is what models run by everywhere else: a constant that was
// folded by the rules of another release would be a wrong number without a word. What foreign files can make it do is
// bounded in memory, time and work. tests/structure_test.cpp sees to it that nobody else makes an interpreter.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "execute/cpu/interpreter.h"
#include "ir/model.h"

namespace reef::cpu {

struct Value {
  ir::Shape shape;  // as computed, which need not be what the model declares
  std::vector<std::uint8_t> bytes;
};

// Limits of one Evaluator. Constants of real models are far below them.
struct EvaluationBound {
  std::int64_t memory_bytes = std::int64_t{1} << 30;  // of each evaluation: tensors and scratch
  // Limits of all evaluations together. Work is counted (ops::cpu_work; about a nanosecond of plain code each), so that
  // the same model is treated alike on every machine. The time limit is a net below it for ops that take much longer.
  double work = 2e10;
  double seconds = 60;
};

// Computes small models: some operators (ir::excerpt) and the constants that they read.
class Evaluator {
 public:
  explicit Evaluator(const EvaluationBound& bound = {}) : left_(bound) {}

  // The outputs of `model`, which must be verified or made of operators of a verified one. kResourceExhausted: the
  // bound is used up; nothing is known about the model.
  Result<std::vector<Value>> operator()(ir::Model model, std::span<const std::vector<std::uint8_t>> inputs = {});
  // The bound is used up: every further evaluation fails.
  bool is_exhausted() const { return left_.work <= 0 || left_.seconds <= 0; }

 private:
  EvaluationBound left_;
};

// A model that is ready to run: for whole models that Reef runs with inputs of its own, once or many times.
Result<std::unique_ptr<Interpreter>> prepared(std::shared_ptr<const ir::Model> model,
                                              const InterpreterOptions& options = {});

// Whether every operator is known and has as many operands as it needs; nothing is computed.
Status check_operators(const ir::Model& model);

// Copies `inputs` in, runs, and copies the outputs out.
Result<std::vector<Value>> run_once(Interpreter& interpreter, std::span<const std::vector<std::uint8_t>> inputs);

}  // namespace reef::cpu
