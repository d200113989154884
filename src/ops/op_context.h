// SPDX-License-Identifier: Apache-2.0
// An op's view of the model around it, in each of three phases:
//   infer    input types and shapes (and values, where already known) -> output shapes
//   prepare  everything but the values: check once, precompute once, return the kernel
//   run      values in, values out
//
// Guarantees that whoever drives an op (execute/cpu) gives in `prepare` and `run`, so that kernels need not repeat
// them: arity is within the OpDef's bounds; every present tensor of fixed element size has a valid shape, at most 2^31
// - 1 elements and exactly byte_size(shape, type) bytes; output memory does not overlap input memory, except that an
// output may lie exactly where an input does for which the OpDef allows it; while a kernel runs, data pointers are
// never null (also for tensors without elements; but see OpDef::value_from_shapes) and aligned to 8 bytes at least.
// Nothing else is promised: types, ranks, attribute values, quantization and index values come from the file and must
// be checked by the op before use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/model.h"

namespace reef::ops {

using ir::DataType;
using ir::Shape;

// One tensor as an op sees it.
struct Tensor {
  std::string_view name;
  DataType type = DataType::kFloat32;
  Shape shape;
  const ir::Quantization* quantization = nullptr;  // never null once bound
  std::byte* data = nullptr;                       // null: not known in this phase
  std::size_t bytes = 0;
  bool is_constant = false;
  bool is_variable = false;

  std::int64_t elements() const { return shape.elements(); }

  // The elements as T. The caller has checked that `type` is T's type (bool tensors may be read as uint8_t).
  template <typename T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(data), bytes / sizeof(T)};
  }
  template <typename T>
  std::span<T> mutable_values() {
    return {reinterpret_cast<T*>(data), bytes / sizeof(T)};
  }
};

// A tensor that owns its memory: values of resource variables and what passes between subgraphs.
struct OwnedTensor {
  DataType type = DataType::kFloat32;
  Shape shape;
  std::vector<std::byte> data;
};

// Which release of TFLite's reference kernels decides where releases disagree. They do in few places, each named in the
// op's head comment; docs/numerics.md lists them all.
enum class TfliteRelease {
  k2_9,      // 2.9.1, the release the recorded golden outputs come from, known defects included
  kCurrent,  // LiteRT 2.3
};

// How sums of float products (convolutions, dense layers, matrix products) are rounded.
enum class FloatSums {
  kAsTflite,  // every product and every sum, in the reference kernels' order: their bits, on every machine
  kFused,     // a product added is rounded once, where the CPU has an instruction for that: faster, nearer to the true
              // sum, and on another kind of CPU other bits
};

// State that lives beside the graph while it runs. Implemented by the interpreter.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual ThreadPool& threads() = 0;
  virtual TfliteRelease tflite_release() const = 0;
  virtual FloatSums float_sums() const = 0;
  // Variables by handle; handles are made from (container, shared_name) by VAR_HANDLE.
  virtual std::int32_t variable_handle(std::string_view container, std::string_view shared_name) = 0;
  virtual std::map<std::int32_t, OwnedTensor>& variables() = 0;
  // Runs subgraph `index` on copies of `inputs`; `outputs` receives copies of its results.
  virtual Status run_subgraph(std::int32_t index, std::span<const Tensor* const> inputs,
                              std::vector<OwnedTensor>& outputs) = 0;
  // Shapes of subgraph `index`'s outputs for inputs of these shapes; kDeferred when they depend on values.
  virtual Result<std::vector<Shape>> infer_subgraph(std::int32_t index, std::span<const Tensor* const> inputs) = 0;
  virtual std::int32_t subgraph_count() const = 0;
  // True the first time it is asked for a subgraph; CALL_ONCE runs its subgraph then and never again.
  virtual bool first_use_of(std::int32_t subgraph) = 0;
  // Gives `output` a new shape and fresh memory. Only for outputs whose shape infer could not tell even at run time.
  virtual Status resize_output(Tensor& output, const Shape& shape) = 0;
};

// Part common to the phases.
class OpContext {
 public:
  OpContext(const ir::Operator& op, std::span<Tensor* const> inputs, std::span<Tensor* const> outputs,
            Environment* environment)
      : op_(op), inputs_(inputs), outputs_(outputs), environment_(environment) {}

  const ir::Operator& op() const { return op_; }
  const ir::Attributes& attributes() const { return op_.attributes; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  // False for an index beyond the end and for an optional input left out.
  bool has_input(int i) const { return i < input_count() && inputs_[at(i)] != nullptr; }
  // Precondition: has_input(i).
  const Tensor& input(int i) const { return *inputs_[at(i)]; }
  const Tensor& output(int i) const { return *outputs_[at(i)]; }
  // A tensor that only carries types and scales (LSTM); null beyond the end. Known from prepare on.
  const Tensor* intermediate(int i) const {
    return static_cast<std::size_t>(i) < intermediates_.size() ? intermediates_[at(i)] : nullptr;
  }
  void set_intermediates(std::span<Tensor* const> intermediates) { intermediates_ = intermediates; }
  // Null only in shape inference outside of an interpreter (importers, verifiers).
  Environment* environment() const { return environment_; }

 protected:
  const ir::Operator& op_;
  std::span<Tensor* const> inputs_;
  std::span<Tensor* const> outputs_;
  std::span<Tensor* const> intermediates_;
  Environment* environment_;
};

class InferContext : public OpContext {
 public:
  using OpContext::OpContext;

  // infer may return kDeferred: before the model runs it means "ask again when the inputs' values exist"; if it still
  // does so then, the kernel itself gives its outputs their shapes with RunContext::resize_output.

  // Values of a small integer tensor (shape, axes, paddings; int8 to int64). kDeferred when they are known only at run
  // time: return that status as it is and the op will be asked again when the values exist.
  Result<std::vector<std::int64_t>> ints(int i) const;
  // Any tensor's values, or kDeferred. Check the type first.
  Status require_value(int i) const;
  // Whether the shapes rest on values that may differ next time.
  bool used_changing_values() const { return used_changing_values_; }

  void set_output_shape(int i, Shape shape) { outputs_[at(i)]->shape = std::move(shape); }

 private:
  mutable bool used_changing_values_ = false;
};

class PrepareContext : public OpContext {
 public:
  using OpContext::OpContext;

  // Asks for temporary memory, 64-byte aligned, alive only while this op runs (see RunContext::scratch). Contents are
  // undefined at the start of a run. The last request counts.
  void request_scratch(std::int64_t bytes) { scratch_bytes_ = bytes; }
  std::int64_t scratch_bytes() const { return scratch_bytes_; }

  // Something the user should know about this op, such as that the release followed computes it wrongly.
  void note(std::string_view sentence) const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::int64_t scratch_bytes_ = 0;
  mutable std::vector<std::string> notes_;
};

class RunContext : public OpContext {
 public:
  RunContext(const ir::Operator& op, std::span<Tensor* const> inputs, std::span<Tensor* const> outputs,
             Environment* environment, std::span<std::byte> scratch)
      : OpContext(op, inputs, outputs, environment), scratch_(scratch) {}

  using OpContext::output;
  Tensor& output(int i) { return *outputs_[at(i)]; }
  // An input that the op may change. Precondition: has_input(i) and input(i).is_variable (check in prepare).
  Tensor& variable(int i) { return *inputs_[at(i)]; }
  std::span<std::byte> scratch() const { return scratch_; }
  Status resize_output(int i, const Shape& shape) { return environment_->resize_output(output(i), shape); }

  // body(begin, end) over [0, count) on all threads; see ThreadPool. Heavy kernels must loop this way, with chunks
  // well under a second, so that time limits are kept.
  void parallel_for(std::int64_t count, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> body) const {
    environment_->threads().parallel_for(count, grain, body);
  }

 private:
  std::span<std::byte> scratch_;
};

// The result of prepare: everything is checked and precomputed. It is called once per invocation.
using Kernel = std::function<Status(RunContext&)>;

}  // namespace reef::ops
