// SPDX-License-Identifier: Apache-2.0
// Preparing and running one subgraph. Order of things: bind (look ops up, once), prepare (infer shapes and prepare
// kernels in op order, fold what is constant, then place all tensors of known shape), run (kernels in op order; ops
// whose shapes were not known are inferred and prepared here, with memory of their own).
#include "execute/cpu/subgraph_runner.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "ir/describe.h"
#include "ops/registry.h"

namespace reef::cpu {
namespace {

constexpr std::int64_t kMaxFoldedBytes = std::int64_t{64} << 20;

Status keep_shapes(ops::InferContext&) { return ok_status(); }
Result<ops::Kernel> never_prepare(ops::PrepareContext&) {
  return internal_error("an op that is executed elsewhere has no kernel here");
}
// Definition of an op that is executed elsewhere: it keeps shapes, and is never folded.
constinit const ops::OpDef kForeignOp = ops::define({.name = "foreign op",
                                                     .summary = "Executed elsewhere.",
                                                     .inputs = {0, ops::kAnyNumber},
                                                     .outputs = {0, ops::kAnyNumber},
                                                     .types = "any",
                                                     .is_custom = true,
                                                     .has_state = true,
                                                     .infer = keep_shapes,
                                                     .prepare = never_prepare});

}  // namespace

void SubgraphRunner::find(const std::vector<ForeignOp>& foreign_ops, OpState& state) {
  state.def = ops::find_op(*state.op);
  if (state.def != nullptr || !state.op->is_custom()) return;
  for (const ForeignOp& foreign : foreign_ops) {
    if (foreign.type != state.op->type) continue;
    state.foreign = &foreign;
    state.def = &kForeignOp;
  }
}

Result<ops::Kernel> SubgraphRunner::make_kernel(const OpState& state, ops::PrepareContext& context) {
  return state.foreign != nullptr ? state.foreign->prepare(context) : state.def->prepare(context);
}

SubgraphRunner::SubgraphRunner(const ir::Model& model, std::int32_t index, ops::Environment& environment,
                               MemoryBudget& budget, WorkBudget& work, const InterpreterOptions& options)
    : model_(model),
      graph_(model.subgraphs[index_of(index)]),
      environment_(environment),
      budget_(budget),
      work_(work),
      options_(options),
      tensors_(graph_.tensors.size()),
      dynamic_(graph_.tensors.size()),
      own_memory_(graph_.tensors.size()) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const ir::Tensor& source = graph_.tensors[i];
    tensors_[i].name = source.name;
    tensors_[i].type = source.type;
    tensors_[i].shape = source.shape;
    tensors_[i].quantization = &source.quantization;
    tensors_[i].is_variable = source.is_variable;
  }
  for (const std::int32_t input : graph_.inputs) input_shapes_.push_back(tensors_[index_of(input)].shape);
}

Status SubgraphRunner::bind(const std::vector<ForeignOp>& foreign_ops,
                            std::map<std::string, std::vector<std::size_t>>& unknown) {
  ops_.resize(graph_.operators.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    OpState& state = ops_[i];
    const ir::Operator& op = graph_.operators[i];
    state.op = &op;
    find(foreign_ops, state);
    if (state.def == nullptr) {
      unknown[(op.is_custom() ? "custom op " : "") + op.type].push_back(i);
      continue;
    }
    REEF_RETURN_IF_ERROR(place(ops::check_arity(*state.def, op), state));
    if (op.opaque_options || op.opaque_options_2) {
      return place(unsupported("its options are newer than this version and cannot be interpreted"), state);
    }
    const std::unordered_set<std::int32_t> read(op.inputs.begin(), op.inputs.end());
    for (const std::int32_t tensor : op.outputs) {
      if (read.contains(tensor)) {
        return place(
            invalid_input("tensor {} is both an input and an output; an op cannot write what it reads", tensor), state);
      }
    }
    bind_operands(state);
    for (const std::int32_t tensor : op.outputs) state.outputs.push_back(&tensors_[index_of(tensor)]);
    for (const std::int32_t tensor : op.intermediates) {
      state.intermediates.push_back(tensor < 0 ? nullptr : &tensors_[index_of(tensor)]);
    }
  }
  find_uses();
  return ok_status();
}

// The operands that the model says.
void SubgraphRunner::bind_operands(OpState& state) {
  state.computed = state.op;
  state.joined_op.reset();
  state.is_joined = false;
  state.inputs.clear();
  for (const std::int32_t tensor : state.op->inputs) {
    state.inputs.push_back(tensor < 0 ? nullptr : &tensors_[index_of(tensor)]);
  }
}

Status SubgraphRunner::place(Status status, const OpState& state) const {
  if (status.ok()) return status;
  const auto index = state.op - graph_.operators.data();
  const std::string output =
      state.op->outputs.empty()
          ? ""
          : fmt::format(" ('{}')", ir::describe_name(graph_.tensors[index_of(state.op->outputs[0])].name));
  return status.in(fmt::format("op {} {}{}", index, state.op->type, output));
}

Status SubgraphRunner::resize_input(int i, const ir::Shape& shape) {
  const ir::Tensor& tensor = graph_.tensors[index_of(graph_.inputs[index_of(i)])];
  REEF_REQUIRE(shape.is_usable(), "input {} ('{}') cannot have shape {}", i, tensor.name, shape.to_string());
  REEF_REQUIRE(constant_data(model_, tensor).empty() && !tensor.is_variable,
               "input {} ('{}') is a constant or a variable and cannot be resized", i, tensor.name);
  input_shapes_[index_of(i)] = shape;
  tensors_[index_of(graph_.inputs[index_of(i)])].shape = shape;
  tensors_[index_of(graph_.inputs[index_of(i)])].data = nullptr;
  prepared_ = false;
  return ok_status();
}

Status SubgraphRunner::prepare() {
  prepared_ = false;
  notes_.clear();
  arena_.release();
  REEF_RETURN_IF_ERROR(reset_tensors());
  for (OpState& state : ops_) {
    REEF_RETURN_IF_ERROR(place(prepare_op(state), state));
    if (environment_.threads().past_deadline()) {
      return place(make_error(StatusCode::kResourceExhausted, "the time limit has passed while preparing"), state);
    }
  }
  if (may_join_ops()) {
    drop_joined_padding();
    join_maps();
  }
  REEF_RETURN_IF_ERROR(plan_memory());
  steps_.clear();
  for (OpState& state : ops_) {
    if (!state.folded && !state.is_done_elsewhere) steps_.push_back(&state);
  }
  prepared_ = true;
  return ok_status();
}

Status SubgraphRunner::prepare_op(OpState& state) {
  state.folded = state.shape_deferred = state.value_deferred = state.is_done_elsewhere = false;
  state.kernel = nullptr;
  state.elementwise = state.def->elementwise;
  bind_operands(state);
  if (may_join_ops()) join_padding(state);
  const auto is_dynamic = [&](const ops::Tensor* t) { return t && dynamic_[at(t - tensors_.data())]; };
  state.shape_deferred = std::any_of(state.inputs.begin(), state.inputs.end(), is_dynamic);
  if (!state.shape_deferred) {
    const Status status = infer_and_prepare(state);
    if (status.code() != StatusCode::kDeferred) {
      REEF_RETURN_IF_ERROR(status);
      // A variable has a value already, but not the one it will have while running.
      if (!state.value_deferred) return try_fold(state);
    }
    state.shape_deferred = state.value_deferred = true;
  }
  for (ops::Tensor* output : state.outputs) {
    const auto i = static_cast<std::size_t>(output - tensors_.data());
    REEF_REQUIRE(!output->is_constant && !output->is_variable,
                 "output '{}' is a constant or a variable, but its shape depends on values", output->name);
    dynamic_[i] = true;
    if (!own_memory_[i]) own_memory_[i] = std::make_unique<Block>();
  }
  return ok_status();
}

// An output's memory is planned after this, except where it exists already: constants, which no op may write, and
// variables, whose size the model fixes.
Status SubgraphRunner::check_outputs(OpState& state) {
  for (const ops::Tensor* output : state.outputs) {
    REEF_RETURN_IF_ERROR(check_size(*output));
    REEF_REQUIRE(!output->is_constant, "output '{}' is a constant and cannot be written", output->name);
    REEF_REQUIRE(!output->is_variable || storage_bytes(*output) == static_cast<std::int64_t>(output->bytes),
                 "output '{}' is a variable of {} bytes, but shape {} needs {}", output->name, output->bytes,
                 output->shape.to_string(), storage_bytes(*output));
  }
  return ok_status();
}

Status SubgraphRunner::infer_and_prepare(OpState& state) {
  ops::InferContext infer(*state.computed, state.inputs, state.outputs, &environment_);
  const Status inferred = state.def->infer(infer);
  if (infer.used_changing_values()) state.value_deferred = true;
  REEF_RETURN_IF_ERROR(inferred);
  REEF_RETURN_IF_ERROR(check_outputs(state));
  ops::PrepareContext prepare(*state.computed, state.inputs, state.outputs, &environment_);
  prepare.set_intermediates(state.intermediates);
  REEF_ASSIGN_OR_RETURN(state.kernel, make_kernel(state, prepare));
  if (!prepared_) {  // not again for every invocation
    for (const std::string& note : prepare.notes()) notes_.push_back(place(invalid_input("{}", note), state).message());
  }
  state.scratch_bytes = prepare.scratch_bytes();
  state.prepared_for.clear();
  for (const ops::Tensor* input : state.inputs) state.prepared_for.push_back(input ? input->shape : ir::Shape());
  return ok_status();
}

// Computes an op now if its operands are already known, so that shapes derived from its result become static and
// constant weights are not converted again in every invocation.
Status SubgraphRunner::try_fold(OpState& state) {
  if (state.def->has_state || state.outputs.empty() || state.inputs.empty()) return ok_status();
  const auto is_known = [](const ops::Tensor* t) { return t == nullptr || t->is_constant; };
  if (!state.def->value_from_shapes && !std::all_of(state.inputs.begin(), state.inputs.end(), is_known))
    return ok_status();
  std::int64_t bytes = state.scratch_bytes;
  for (const ops::Tensor* output : state.outputs) {
    bytes += storage_bytes(*output);
    if (output->is_variable || ir::bits_per_element(output->type) == 0) return ok_status();
  }
  if (bytes > kMaxFoldedBytes) return ok_status();
  for (ops::Tensor* output : state.outputs) {
    auto memory = std::make_unique<Block>();
    REEF_RETURN_IF_ERROR(memory->allocate(budget_, storage_bytes(*output)));
    output->data = memory->data();
    output->bytes = static_cast<std::size_t>(memory->bytes());
    own_memory_[at(output - tensors_.data())] = std::move(memory);
  }
  Block scratch;
  REEF_RETURN_IF_ERROR(scratch.allocate(budget_, state.scratch_bytes));
  ops::RunContext run(*state.op, state.inputs, state.outputs, &environment_,
                      {scratch.data(), static_cast<std::size_t>(scratch.bytes())});
  if (work_.is_limited()) [[unlikely]]
    REEF_RETURN_IF_ERROR(work_.take(run));
  REEF_RETURN_IF_ERROR(state.kernel(run));
  for (ops::Tensor* output : state.outputs) output->is_constant = true;
  state.folded = true;
  state.kernel = nullptr;
  return ok_status();
}

// Small models have ops of 50 nanoseconds: what is done for each of them counts.
Status SubgraphRunner::run() {
  ++runs_;
  const ThreadPool& threads = environment_.threads();
  for (OpState* const state : steps_) {
    const Status status = options_.profile ? run_measured(*state) : run_op(*state);
    if (!status.ok()) [[unlikely]]
      return place(status, *state);
    if (options_.after_op) REEF_RETURN_IF_ERROR(place(tell_observer(*state), *state));
    if (threads.past_deadline()) {
      return place(make_error(StatusCode::kResourceExhausted, "the time limit has passed"), *state);
    }
  }
  return ok_status();
}

Status SubgraphRunner::run_measured(OpState& state) {
  kernels::watch_kernels();
  const kernels::KernelNotes before = kernels::take_kernel_notes();  // of an operator that runs this subgraph
  const auto start = std::chrono::steady_clock::now();
  Status status = run_op(state);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const kernels::KernelNotes taken = kernels::take_kernel_notes();
  state.kernels |= taken;
  kernels::note(before | taken);
  state.total_ms += ms;
  state.least_ms = state.calls == 0 ? ms : std::min(state.least_ms, ms);
  ++state.calls;
  return status;
}

Status SubgraphRunner::tell_observer(OpState& state) {
  return options_.after_op({.subgraph = static_cast<std::int32_t>(&graph_ - model_.subgraphs.data()),
                            .op_index = static_cast<std::int32_t>(state.op - graph_.operators.data()),
                            .op = state.op,
                            .inputs = state.inputs,
                            .outputs = state.outputs});
}

Status SubgraphRunner::run_op(OpState& state) {
  if (state.shape_deferred) REEF_RETURN_IF_ERROR(prepare_deferred(state));
  ops::RunContext run(*state.computed, state.inputs, state.outputs, &environment_,
                      {state.scratch, static_cast<std::size_t>(state.scratch_bytes)});
  if (work_.is_limited()) [[unlikely]]
    REEF_RETURN_IF_ERROR(work_.take(run));
  return state.kernel(run);
}

// Shapes and kernel of an op that could not be prepared before its inputs existed.
Status SubgraphRunner::prepare_deferred(OpState& state) {
  bool same_shapes = state.kernel != nullptr && !state.value_deferred;
  for (std::size_t i = 0; same_shapes && i < state.inputs.size(); ++i) {
    same_shapes = state.inputs[i] == nullptr || state.inputs[i]->shape == state.prepared_for[i];
  }
  if (!same_shapes) {
    const Status status = infer_and_prepare(state);
    if (status.code() == StatusCode::kDeferred) {
      // The kernel sizes its outputs itself.
      state.value_deferred = true;
      for (ops::Tensor* output : state.outputs) output->shape = ir::Shape({0});
      ops::PrepareContext prepare(*state.op, state.inputs, state.outputs, &environment_);
      prepare.set_intermediates(state.intermediates);
      REEF_ASSIGN_OR_RETURN(state.kernel, make_kernel(state, prepare));
      state.scratch_bytes = prepare.scratch_bytes();
    } else {
      REEF_RETURN_IF_ERROR(status);
    }
  }
  for (ops::Tensor* output : state.outputs) REEF_RETURN_IF_ERROR(resize_output(*output, ir::Shape(output->shape)));
  if (state.scratch_bytes > dynamic_scratch_.bytes() || dynamic_scratch_.data() == nullptr) {
    REEF_RETURN_IF_ERROR(dynamic_scratch_.allocate(budget_, state.scratch_bytes));
  }
  state.scratch = dynamic_scratch_.data();
  return ok_status();
}

}  // namespace reef::cpu
