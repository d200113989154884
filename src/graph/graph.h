// SPDX-License-Identifier: Apache-2.0
// A subgraph taken apart for editing: who computes and who reads each tensor is known at all times, operators keep
// their numbers, and their order is found anew at the end.
//
// Passes add and remove operators without a thought for their order; `finish` puts them into one that works and is as
// close as possible to the original. Operators with effects beside their results (variables, control flow, ops this
// version does not know) keep their order among themselves and are never removed.
//
// Tensors and operators are named by index. Indices hold until `finish`; references to either until the next is added.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/layout.h"
#include "ir/model.h"

namespace reef::cpu {
class Evaluator;
}

namespace reef::simplify {

using OpId = std::int32_t;
using TensorId = std::int32_t;
inline constexpr std::int32_t kNone = -1;

class Graph {
 public:
  // `model` must be verified. Both it and `evaluator` must outlive this.
  Graph(ir::Model& model, std::size_t subgraph, cpu::Evaluator& evaluator);

  // False: operators read what is written later (possible where tensors have no elements); nothing must be changed.
  bool is_ordered() const { return is_ordered_; }

  // ---- Reading ----
  const ir::Model& model() const { return *model_; }
  std::size_t subgraph() const { return subgraph_; }
  // Computes constants; one for the whole model, so that its bound is too.
  cpu::Evaluator& evaluator() { return *evaluator_; }
  const std::vector<std::int32_t>& inputs() const { return graph().inputs; }
  // Operators are 0 .. op_slots() - 1; removed ones are not alive.
  OpId op_slots() const { return static_cast<OpId>(ops_.size()); }
  bool is_alive(OpId op) const { return ops_[index(op)].alive; }
  const ir::Operator& op(OpId op) const { return ops_[index(op)].op; }
  const std::string& type(OpId op) const { return ops_[index(op)].op.type; }
  bool is(OpId op, std::string_view type) const { return op != kNone && ops_[index(op)].op.type == type; }
  const ir::Tensor& tensor(TensorId tensor) const { return graph().tensors[index(tensor)]; }
  const ir::Shape& shape(TensorId id) const { return tensor(id).shape; }
  // Arity is right, operands and results are static, plain and present (a bias may be left out), no state is involved.
  bool is_sound(OpId op) const;

  OpId producer(TensorId tensor) const { return producers_[index(tensor)]; }  // kNone: none
  // One entry per use: an operator that reads the tensor twice is there twice.
  const std::vector<OpId>& users(TensorId tensor) const { return users_[index(tensor)]; }
  // One operator reads it, however often, and the graph does not give it out.
  bool has_one_user(TensorId tensor) const;
  bool is_graph_input(TensorId tensor) const { return is_input_[index(tensor)]; }
  bool is_graph_output(TensorId tensor) const { return is_output_[index(tensor)]; }
  // Its bytes are in the model and nothing changes them.
  bool is_constant(TensorId tensor) const;
  // The only operator that reads the tensor, if the graph does not give it out.
  OpId only_user(TensorId tensor) const { return has_one_user(tensor) ? users(tensor)[0] : kNone; }

  // ---- Constants ----
  std::optional<std::vector<std::int64_t>> ints(TensorId tensor) const;  // int32 and int64
  std::optional<std::vector<float>> floats(TensorId tensor) const;       // float32
  // The value of a float32 constant whose elements are all the same (at least one).
  std::optional<float> uniform(TensorId tensor) const;

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

  // ---- Operators ----
  // A new operator in the neighbourhood of `near` (in the file's order). Its results must have no producer yet.
  OpId add_op(OpId near, std::string_view type, std::string_view options_type, ir::Attributes attributes,
              std::vector<TensorId> inputs, std::vector<TensorId> outputs);
  // The operator's results stay and are computed otherwise.
  void become(OpId op, std::string_view type, std::string_view options_type, ir::Attributes attributes,
              std::vector<TensorId> inputs);
  void set_input(OpId op, std::size_t i, TensorId tensor);
  void set_inputs(OpId op, std::vector<TensorId> inputs);
  void set_outputs(OpId op, std::vector<TensorId> outputs);
  void set_attribute(OpId op, std::string_view name, ir::AttributeValue value);
  void set_type_version(OpId op, std::int32_t version) { ops_[index(op)].op.version = version; }
  ir::Tensor& change_tensor(TensorId tensor) { return graph().tensors[index(tensor)]; }
  void remove(OpId op);

  // Everybody who reads `from`, the graph included, gets `to`, which must be equal to it in type, shape and value.
  // Names of graph outputs survive: then `from` stays and the producer of `to` computes it. Returns the tensor that is
  // left, or kNone, with nothing changed, where `from` is a graph output and `to` is an input, a constant or another
  // output.
  TensorId replace(TensorId from, TensorId to);

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
  // Writes everything back into the model. The graph must not be used afterwards.
  Status finish();

 private:
  struct Node {
    ir::Operator op;
    bool alive = true;
    bool has_effect = false;    // beside its results
    std::int64_t position = 0;  // in the file, or of what it was made for
  };
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  ir::Subgraph& graph() { return model_->subgraphs[subgraph_]; }
  const ir::Subgraph& graph() const { return model_->subgraphs[subgraph_]; }
  bool has_effect(const ir::Operator& op) const;
  void link(OpId op);
  void unlink(OpId op);
  void lost_use(TensorId tensor);
  void give_buffer(TensorId tensor, std::int32_t buffer);
  void release(TensorId tensor);
  Result<std::vector<OpId>> order() const;
  void name_new_tensors();

  ir::Model* model_;
  std::size_t subgraph_;
  cpu::Evaluator* evaluator_;
  std::vector<Node> ops_;
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

}  // namespace reef::simplify
