// SPDX-License-Identifier: Apache-2.0
// The one editor of graphs: a subgraph of a model, changed in place, for all passes.
//
// The graph knows at all times who computes and who reads each tensor. Passes add and remove operators without a
// thought for their order: a removed operator leaves its slot behind, a new one takes a slot at the end and a position
// in the neighbourhood of what it was made for. `settle` sorts the slots into an order that works and is as close as
// possible to the original, so that an operator's id is its index in the subgraph again; `finish` does so at the end.
// Operators with effects beside their results (variables, control flow, operators that this version does not know) keep
// their order among themselves and are never removed.
//
// Tensors and operators are named by index. Indices of operators hold until `settle` or `finish`; references to either
// hold until the next one is added.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "execute/cpu/evaluate.h"
#include "graph/layout.h"
#include "ir/model.h"
#include "ir/op.h"

namespace reef::graph {

using OpId = std::int32_t;
using TensorId = std::int32_t;
inline constexpr std::int32_t kNone = -1;

// Computes a small model (cpu::Evaluator): values of its inputs in, values of its outputs out.
using Evaluate = std::function<Result<std::vector<cpu::Value>>(ir::Model, std::span<const std::vector<std::uint8_t>>)>;

// How an 8-bit tensor stores real numbers: real = scale * (q - zero_point).
struct Affine8 {
  ir::DataType type = ir::DataType::kInt8;  // int8 or uint8
  float scale = 1;
  std::int32_t zero_point = 0;
  std::int32_t lowest() const { return type == ir::DataType::kInt8 ? -128 : 0; }
  std::int32_t highest() const { return lowest() + 255; }
  friend bool operator==(const Affine8&, const Affine8&) = default;
};

class Graph {
 public:
  // `model` must be verified and outlive this. `evaluate` may be empty: then nothing can be computed.
  explicit Graph(ir::Model& model, std::size_t subgraph = 0, Evaluate evaluate = {});

  // False: operators read what is written later (possible where tensors have no elements); nothing must be changed.
  bool is_ordered() const { return is_ordered_; }

  // ---- Reading ----
  // Its operators are the slots: some are removed, and new ones stand at the end, until `settle`.
  const ir::Model& model() const { return *model_; }
  const ir::Subgraph& graph() const { return model_->subgraphs[subgraph_]; }
  std::size_t subgraph() const { return subgraph_; }
  const Evaluate& evaluate() const { return evaluate_; }
  const std::vector<std::int32_t>& inputs() const { return graph().inputs; }
  // Operators are 0 .. op_slots() - 1; removed ones are not alive.
  OpId op_slots() const { return static_cast<OpId>(slots_.size()); }
  bool is_alive(OpId op) const { return slots_[index(op)].alive; }
  const ir::Operator& op(OpId op) const { return graph().operators[index(op)]; }
  const std::string& type(OpId id) const { return op(id).type; }
  bool is(OpId id, OpName type) const { return id != kNone && op(id).type == type; }
  // Index of the operator, in the model as it was given, that this one is or was made for.
  std::int32_t origin(OpId op) const { return slots_[index(op)].origin; }
  const ir::Tensor& tensor(TensorId tensor) const { return graph().tensors[index(tensor)]; }
  const ir::Shape& shape(TensorId id) const { return tensor(id).shape; }
  // The tensor's shape is what the file says, whatever the inputs are.
  bool is_static(TensorId tensor) const;
  // Arity is right, operands and results are static, plain and present (a bias may be left out), no state is involved.
  bool is_sound(OpId op) const;
  // "op 12 HARD_SWISH 'features/act'", with the index that the operator had in the model as given.
  std::string describe(OpId op) const;

  OpId producer(TensorId tensor) const { return producers_[index(tensor)]; }  // kNone: none
  // One entry per use: an operator that reads the tensor twice is there twice.
  const std::vector<OpId>& users(TensorId tensor) const { return users_[index(tensor)]; }
  // Ascending, each once.
  std::vector<OpId> consumers(TensorId tensor) const;
  // One operator reads it, however often, and the graph does not give it out.
  bool has_one_user(TensorId tensor) const;
  bool is_graph_input(TensorId tensor) const { return is_input_[index(tensor)]; }
  bool is_graph_output(TensorId tensor) const { return is_output_[index(tensor)]; }
  // Its bytes are in the model and nothing changes them.
  bool is_constant(TensorId tensor) const;
  // The only operator that reads the tensor, if the graph does not give it out.
  OpId only_user(TensorId tensor) const { return has_one_user(tensor) ? users(tensor)[0] : kNone; }

  // ---- Constants and quantization ----
  std::optional<std::vector<std::int64_t>> ints(TensorId tensor) const;  // int32 and int64
  std::optional<std::vector<float>> floats(TensorId tensor) const;       // float32
  // The value of a float32 constant whose elements are all the same (at least one).
  std::optional<float> uniform(TensorId tensor) const;
  // The numbers of an int8 or uint8 tensor with one sound scale and zero point.
  std::optional<Affine8> affine(TensorId tensor) const;
  // Both are 8-bit tensors that store real numbers in the same way (or both have no quantization).
  bool same_quantization(TensorId a, TensorId b) const;

  // ---- Tensors ----
  TensorId add_tensor(ir::Tensor tensor);
  // A computed tensor of the type and quantization of `like`, named after it.
  TensorId add_like(TensorId like, ir::Shape shape);
  TensorId add_constant(ir::Tensor tensor, std::vector<std::uint8_t> data);
  TensorId add_ints(std::vector<std::int32_t> values, ir::Shape shape);
  TensorId add_ints(std::vector<std::int32_t> values);  // of rank 1
  TensorId add_floats(std::vector<float> values, ir::Shape shape, const std::string& name);
  // The constant's bytes with another shape of as many elements. No bytes are copied.
  TensorId reshaped_constant(TensorId constant, ir::Shape shape);
  // A tensor that nothing computes (any more) gets these bytes.
  void set_constant(TensorId tensor, std::vector<std::uint8_t> data);
  ir::Tensor& change_tensor(TensorId tensor) { return change().tensors[index(tensor)]; }

  // ---- Operators ----
  // A new operator in the neighbourhood of `near` (in the file's order). Its results must have no producer yet.
  OpId add_op(OpId near, OpName type, std::string_view options_type, ir::Attributes attributes,
              std::vector<TensorId> inputs, std::vector<TensorId> outputs);
  // The operator's results stay and are computed otherwise.
  void become(OpId op, OpName type, std::string_view options_type, ir::Attributes attributes,
              std::vector<TensorId> inputs);
  // The operators `with`, in order, take the place of `op` and compute its results (or those that anyone reads). The
  // first of them gets the id that is returned, the others follow.
  OpId substitute(OpId op, std::vector<ir::Operator> with);
  // All operators anew, in order, each with its origin.
  void set_operators(std::vector<ir::Operator> operators, const std::vector<std::int32_t>& origins);
  void set_input(OpId op, std::size_t i, TensorId tensor);
  void set_inputs(OpId op, std::vector<TensorId> inputs);
  void set_outputs(OpId op, std::vector<TensorId> outputs);
  void set_attribute(OpId op, std::string_view name, ir::AttributeValue value);
  void set_type_version(OpId op, std::int32_t version) { change().operators[index(op)].version = version; }
  void remove(OpId op);

  // Everybody who reads `from`, the graph included, gets `to`, which must be equal to it in type, shape and value.
  // Names of graph outputs survive: then `from` stays and the producer of `to` computes it. Returns the tensor that is
  // left, or kNone, with nothing changed, where `from` is a graph output and `to` is an input, a constant or another
  // output.
  TensorId replace(TensorId from, TensorId to);
  // The same for passes that change the interface: where the graph gave out `from`, it gives out `to`.
  void redirect(TensorId from, TensorId to);
  // The graph's input number `place` becomes `to`, in its signatures as well.
  void set_graph_input(std::size_t place, TensorId to);

  // RESHAPE, TRANSPOSE or both: x in another layout, as `into` (a tensor nobody computes) or a new tensor.
  TensorId convert(OpId near, TensorId x, const Layout& layout, TensorId into = kNone);
  TensorId reshape(OpId near, TensorId x, ir::Shape shape, TensorId into = kNone);
  // A tensor as it is in another layout, with nobody to compute it yet; constants are rearranged.
  TensorId add_in_layout(TensorId tensor, const Layout& layout);
  // Possible: whole bytes per element, scales along an axis that stays.
  bool can_lay_out(TensorId tensor, const Layout& layout) const;

  // Removes operators whose results nobody reads, and the bytes of constants that nobody reads any more: weights that a
  // pass has replaced are not kept twice.
  void sweep();
  // Sorts the operators and drops the slots of removed ones. Returns the former id of each operator.
  Result<std::vector<OpId>> settle();
  // Sweeps, settles, and gives new tensors names of their own. The model is whole afterwards.
  Status finish();

 private:
  struct Slot {
    bool alive = true;
    bool has_effect = false;    // beside its results
    std::int64_t position = 0;  // in the file, or of what it was made for
    std::int32_t origin = -1;
  };
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  ir::Subgraph& change() { return model_->subgraphs[subgraph_]; }
  bool has_effect(const ir::Operator& op) const;
  void index_tensors();
  void index_operators();
  OpId append(ir::Operator op, std::int64_t position, std::int32_t origin);
  void link(OpId op);
  void unlink(OpId op);
  void redirect_users(TensorId from, TensorId to);
  void lost_use(TensorId tensor);
  void give_buffer(TensorId tensor, std::int32_t buffer);
  void release(TensorId tensor);
  Result<std::vector<OpId>> order() const;
  void name_new_tensors();

  ir::Model* model_;
  std::size_t subgraph_;
  Evaluate evaluate_;
  std::vector<Slot> slots_;  // of each operator of the subgraph
  std::vector<OpId> producers_;
  std::vector<std::vector<OpId>> users_;
  std::vector<bool> is_input_, is_output_;
  std::vector<TensorId> perhaps_dead_;
  std::vector<std::int32_t> buffer_uses_;  // by tensors of all subgraphs, and metadata
  std::size_t given_tensors_ = 0;
  bool is_ordered_ = true;
};

// Elements of a constant in another layout: `shape` and `element_bytes` describe `data`.
std::vector<std::uint8_t> rearranged(std::span<const std::uint8_t> data, const ir::Shape& shape,
                                     std::size_t element_bytes, const Layout& layout);

}  // namespace reef::graph
