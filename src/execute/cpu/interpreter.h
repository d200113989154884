// SPDX-License-Identifier: Apache-2.0
// Runs a model on the CPU, bit-exact with TFLite's reference kernels for integers.
//
//   create -> [resize_input ...] -> prepare -> { fill input(i), invoke, read output(i) } ...
//
// Shapes are inferred and kernels prepared once; tensors whose shapes are known then live in one planned arena. Ops
// whose shapes depend on values are inferred and prepared while running, with memory from the heap. Ops with constant
// inputs alone are computed at prepare. Safe on hostile models: memory and time are bounded by the options, and every
// failure is a Status. One interpreter may be used by one thread at a time; separate interpreters are independent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "ir/model.h"
#include "ops/op_context.h"

namespace reef::cpu {

// A custom op that is executed elsewhere, such as on an Edge TPU. Its tensors have the shapes that the model says;
// `prepare` returns what runs it.
struct ForeignOp {
  std::string type;  // custom code
  std::function<Result<ops::Kernel>(ops::PrepareContext&)> prepare;
};

// An op that has just run: its place in the model and its tensors, with values.
struct OpRun {
  std::int32_t subgraph = 0;
  std::int32_t op_index = 0;
  const ir::Operator* op = nullptr;
  std::span<ops::Tensor* const> inputs;  // null: an optional one left out
  std::span<ops::Tensor* const> outputs;
};

struct InterpreterOptions {
  int threads = 1;
  std::int64_t max_memory_bytes = std::int64_t{4} << 30;  // tensors and scratch; the model itself is not counted
  double time_limit_seconds = 0;                          // per prepare and per invoke; 0: none
  Budget budget = {};                                     // of everything that the command does; counts in addition
  double max_work = 0;                                    // all runs together, in units of ops::cpu_work; 0: no limit
  bool profile = false;                                   // measure each op
  bool keeps_all_tensors = false;                         // tensor() has every value after invoke; takes more memory
  // The newest release is the default everywhere. 2.9 with its defects is for those who ask for it by name.
  ops::TfliteRelease tflite_release = ops::TfliteRelease::kCurrent;
  ops::FloatSums float_sums = ops::FloatSums::kAsTflite;
  std::vector<ForeignOp> foreign_ops;
  // Told of every op right after it ran, while its operands are still in memory; ops computed once at prepare are not
  // seen. It may change the outputs' values, which later ops then read. An error ends the run with that error.
  std::function<Status(const OpRun&)> after_op;
  // Every op by itself and every tensor in a place of its own; implied by after_op and keeps_all_tensors. Else copies
  // that change nothing are left out, element-wise ops overwrite operands that nobody needs any more, and ops are
  // joined where that does not change a result (subgraph_joins.cpp).
  bool one_by_one = false;
};

struct OpTiming {
  std::int32_t subgraph = 0;
  std::int32_t op_index = 0;
  std::string type;
  std::string output_name;
  std::int64_t calls = 0;
  double total_ms = 0;  // measured; 0 for ops that another one does the work of
  double least_ms = 0;  // of all calls
  // Which code ran, as kernels/simd/trace.h names it; empty for ops that another one does the work of.
  std::string kernel;
  double products = 0;  // multiplications of a call, of ops that have weights or multiply matrices
  double bytes = 0;     // read and written by a call
};

struct MemoryReport {
  std::int64_t arena_bytes = 0;             // the planned block of the main subgraph
  std::int64_t largest_live_set_bytes = 0;  // its lower bound
  std::int64_t other_bytes = 0;             // variables, folded constants, dynamic tensors, other subgraphs: now
  std::int64_t peak_bytes = 0;              // most that arena and others took together so far
};

class Interpreter {
 public:
  // `model` must have passed ir::verify. Fails when an op is not known, naming each one.
  static Result<std::unique_ptr<Interpreter>> create(std::shared_ptr<const ir::Model> model,
                                                     const InterpreterOptions& options = {});
  ~Interpreter();

  int input_count() const;
  int output_count() const;
  // Before prepare: type and shape as the model says. After: with data. After invoke: outputs are valid.
  const ops::Tensor& input(int i) const;
  const ops::Tensor& output(int i) const;
  // Any tensor of the main subgraph, with the shape that was inferred. Its value is there after invoke for inputs,
  // outputs, constants and variables; for others if options.keeps_all_tensors.
  const ops::Tensor& tensor(std::int32_t index) const;
  // Its shape and memory may be others after every invoke.
  bool is_dynamic(std::int32_t index) const;
  // Output i's shape and memory may be others after every invoke. Known after prepare.
  bool has_dynamic_output(int i) const;
  // Memory of input i to be filled. Valid between prepare and the next prepare or resize_input.
  std::span<std::byte> input_bytes(int i);

  Status resize_input(int i, const ir::Shape& shape);  // prepare must follow
  Status prepare();
  Status invoke();
  void reset_variables();  // to zero, as at the start

  // Sentences about ops whose results deserve attention; known after prepare.
  std::vector<std::string> notes() const;
  // Counted where max_work is given: all prepares and invokes so far.
  double work_done() const;
  MemoryReport memory() const;
  std::vector<OpTiming> timings() const;  // in execution order; empty unless options.profile

 private:
  class Impl;
  explicit Interpreter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reef::cpu
