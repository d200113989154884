// SPDX-License-Identifier: Apache-2.0
// One subgraph, prepared and run. See interpreter.h for the whole.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "execute/cpu/interpreter.h"
#include "execute/cpu/memory_budget.h"
#include "execute/cpu/work_budget.h"
#include "ir/model.h"
#include "kernels/simd/trace.h"
#include "ops/op_def.h"

namespace reef::cpu {

// Bytes a tensor takes in memory; strings and variants have no fixed size and hold nothing until an op gives them some.
std::int64_t storage_bytes(const ops::Tensor& tensor);
// Refuses shapes that no tensor can have.
Status check_size(const ops::Tensor& tensor);

class SubgraphRunner {
 public:
  // Everything referenced must outlive the runner.
  SubgraphRunner(const ir::Model& model, std::int32_t index, ops::Environment& environment, MemoryBudget& budget,
                 WorkBudget& work, const InterpreterOptions& options);

  // Looks every op up and checks its arity; adds the index of each op that cannot be run to `unknown`, by its type.
  Status bind(const std::vector<ForeignOp>& foreign_ops, std::map<std::string, std::vector<std::size_t>>& unknown);

  const ir::Subgraph& graph() const { return graph_; }
  ops::Tensor& input(int i) { return tensors_[index_of(graph_.inputs[index_of(i)])]; }
  ops::Tensor& output(int i) { return tensors_[index_of(graph_.outputs[index_of(i)])]; }
  const ops::Tensor& tensor(std::int32_t i) const { return tensors_[index_of(i)]; }
  bool is_dynamic(std::int32_t i) const { return dynamic_[index_of(i)]; }
  // True if output i's shape is known only after a run.
  bool has_dynamic_output(int i) const { return dynamic_[index_of(graph_.outputs[index_of(i)])]; }

  Status resize_input(int i, const ir::Shape& shape);
  bool is_prepared() const { return prepared_; }
  Status prepare();
  Status run();
  void reset_variables();
  Status resize_output(ops::Tensor& tensor, const ir::Shape& shape);

  // Notes of ops from when they were prepared, with their places.
  const std::vector<std::string>& notes() const { return notes_; }

  bool is_running = false;  // guards against a subgraph that calls itself
  std::int64_t arena_bytes() const { return arena_.bytes(); }
  std::int64_t largest_live_set_bytes() const { return largest_live_set_bytes_; }

  struct OpState {
    const ir::Operator* op = nullptr;
    const ir::Operator* computed = nullptr;         // what the kernel computes: `op`, or more
    std::unique_ptr<const ir::Operator> joined_op;  // that more
    const ops::OpDef* def = nullptr;
    const ForeignOp* foreign = nullptr;  // executed elsewhere
    std::vector<ops::Tensor*> inputs, outputs, intermediates;
    ops::Kernel kernel;
    std::int64_t scratch_bytes = 0;
    std::byte* scratch = nullptr;
    bool folded = false;          // computed at prepare, nothing to do at run
    bool shape_deferred = false;  // inferred and prepared at run time because an input shape or value was unknown
    bool value_deferred = false;  // ... because its own shape inference needs a value: prepared anew each time
    std::vector<ir::Shape> prepared_for;  // input shapes the kernel was prepared with
    ops::InputSet elementwise = 0;        // as in OpDef, of the kernel's inputs
    bool is_joined = false;               // does the work of earlier ops, too
    bool is_done_elsewhere = false;       // joined with a later op, or nothing but a view: not run
    std::int64_t calls = 0;
    double total_ms = 0, least_ms = 0;
    kernels::KernelNotes kernels = 0;  // code that ran in measured calls
  };
  const std::vector<OpState>& ops() const { return ops_; }
  std::int64_t runs() const { return runs_; }

 private:
  static std::size_t index_of(std::int32_t i) { return static_cast<std::size_t>(i); }

  Status place(Status status, const OpState& state) const;
  Status reset_tensors();
  Status bind_constant(std::size_t tensor);
  static void find(const std::vector<ForeignOp>& foreign_ops, OpState& state);
  static Result<ops::Kernel> make_kernel(const OpState& state, ops::PrepareContext& context);
  Status prepare_op(OpState& state);
  Status infer_and_prepare(OpState& state);
  Status check_outputs(OpState& state);
  Status try_fold(OpState& state);
  void bind_operands(OpState& state);
  Status plan_memory();
  std::vector<std::int32_t> share_memory();
  Status run_op(OpState& state);
  Status run_measured(OpState& state);

  // Joining ops: subgraph_joins.cpp.
  bool may_join_ops() const { return !options_.after_op && !options_.one_by_one && !options_.keeps_all_tensors; }
  std::size_t number_of(const ops::Tensor* tensor) const { return static_cast<std::size_t>(tensor - tensors_.data()); }
  void find_uses();
  OpState* writer_of(const ops::Tensor* tensor);
  bool is_private(const ops::Tensor* tensor) const;
  void join_padding(OpState& convolution);
  void drop_joined_padding();
  const ops::Tensor* mapped_input(const OpState& state) const;
  std::vector<OpState*> chain_of_maps(OpState& first);
  void join_maps();
  Status tell_observer(OpState& state);
  Status prepare_deferred(OpState& state);

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  ops::Environment& environment_;
  MemoryBudget& budget_;
  WorkBudget& work_;
  const InterpreterOptions& options_;

  std::vector<ops::Tensor> tensors_;
  std::vector<ir::Shape> input_shapes_;  // as asked for with resize_input
  // Per tensor:
  std::vector<bool> dynamic_;                       // shape known only at run time; memory in own_memory_
  std::vector<std::unique_ptr<Block>> own_memory_;  // variables, folded values, dynamic tensors, misaligned constants
  std::vector<OpState> ops_;
  std::vector<std::string> notes_;
  Block arena_;
  Block dynamic_scratch_;
  std::int64_t largest_live_set_bytes_ = 0;
  bool prepared_ = false;
  std::vector<OpState*> steps_;  // what a run does, in order
  std::int64_t runs_ = 0;
  // Per tensor: the op that writes it, those that read it (twice, if they do), whether the caller sees it.
  static constexpr std::int32_t kNone = -1, kSeveral = -2;
  std::vector<std::int32_t> writer_;
  std::vector<std::vector<std::int32_t>> readers_;
  std::vector<bool> is_output_;
};

}  // namespace reef::cpu
