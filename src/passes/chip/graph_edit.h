// SPDX-License-Identifier: Apache-2.0
// Reading and changing subgraph 0 of a verified model, for rewrites.
//
// A rewrite finds its pattern at an operator, makes tensors and operators for the replacement (OpList) and commits
// them: they take the operator's place, the last of them computing the tensors that it computed, so that those who read
// them notice nothing. What is no longer used is swept up afterwards. All indices are of the model as it is now; any
// change may move operators, and compact() moves tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ir/uses.h"
#include "passes/chip/rewrite.h"

namespace reef::rewrite {

// How an 8-bit tensor stores real numbers: real = scale * (q - zero_point).
struct Affine8 {
  ir::DataType type = ir::DataType::kInt8;  // int8 or uint8
  float scale = 1;
  std::int32_t zero_point = 0;
  std::int32_t lowest() const { return type == ir::DataType::kInt8 ? -128 : 0; }
  std::int32_t highest() const { return lowest() + 255; }
  friend bool operator==(const Affine8&, const Affine8&) = default;
};

class GraphEdit {
 public:
  // `model` must be verified. Both must outlive this.
  GraphEdit(ir::Model& model, const RewriteOptions& options);

  // ---- Reading. References hold until the next change ----
  const ir::Model& model() const { return *model_; }
  const ir::Subgraph& graph() const { return model_->subgraphs[0]; }
  const RewriteOptions& options() const { return *options_; }
  std::int32_t op_count() const { return static_cast<std::int32_t>(graph().operators.size()); }
  const ir::Operator& op(std::int32_t index) const { return graph().operators[static_cast<std::size_t>(index)]; }
  const ir::Tensor& tensor(std::int32_t index) const { return graph().tensors[static_cast<std::size_t>(index)]; }
  const ir::Shape& shape(std::int32_t tensor_index) const { return tensor(tensor_index).shape; }

  std::int32_t producer(std::int32_t tensor) const;                       // -1: none
  const std::vector<std::int32_t>& consumers(std::int32_t tensor) const;  // ascending, each once
  bool is_graph_input(std::int32_t tensor) const;
  bool is_graph_output(std::int32_t tensor) const;
  // One operator reads it and the graph does not give it out.
  bool has_one_use(std::int32_t tensor) const;
  // Its bytes are in the model and nothing changes them.
  bool is_constant(std::int32_t tensor) const;
  // The shape is what the file says, whatever the inputs.
  bool is_static(std::int32_t tensor) const;
  // Values of a constant int32 or int64 tensor.
  std::optional<std::vector<std::int64_t>> ints(std::int32_t tensor) const;
  // Of an int8 or uint8 tensor with one sound scale and zero point.
  std::optional<Affine8> affine(std::int32_t tensor) const;
  // Both are 8-bit tensors that store real numbers in the same way (or both have no quantization).
  bool same_quantization(std::int32_t a, std::int32_t b) const;
  // Arity is right, there are operands and results, all of them are static (a bias may be left out), and none is a
  // variable.
  bool is_sound(std::int32_t op) const;
  // It depends on the model's inputs or on what is kept between invocations.
  bool varies(std::int32_t tensor) const;
  // Its first dimension is that of a batch of inputs: several images are no dimension of one.
  bool is_batch_of_inputs(std::int32_t tensor) const;
  // Whether the chip can run it as it stands.
  bool fits(std::int32_t op) const;

  // ---- Making. None of these changes what the graph computes ----
  std::int32_t add_tensor(ir::Tensor tensor);
  std::int32_t add_constant(ir::Tensor tensor, std::vector<std::uint8_t> data);

  // ---- Changing ----
  // Whether a replacement that differs by so many steps may be made. If not, it is noted as possible.
  bool accepts(std::int32_t op, std::string_view into, int difference);
  // Puts `with` in the place of operator `op` and notes it; `into` says what it became: "DEPTHWISE_CONV_2D and MUL".
  // Does nothing and returns false if one of the new operators does not fit. `except`: a type that need not.
  bool commit(std::int32_t op, std::vector<ir::Operator> with, std::string_view into, int difference = 0,
              std::string_view except = {});
  // The same without looking at what fits.
  void commit_anyway(std::int32_t op, std::vector<ir::Operator> with, std::string_view into, int difference = 0);
  // Every operator and the graph's outputs read `to` instead of `from`.
  void replace_uses(std::int32_t from, std::int32_t to);
  // For what commit() cannot express; the caller leaves a verified graph. Lookups are made anew.
  ir::Model& change();
  // Notes what was done by change(); `what` is the whole sentence (see is_trial).
  void note_change(std::int32_t op, std::string what, std::string place, int difference = 0);
  // Whether this is done on a copy, to see what could be: say "could become" and not "became".
  bool is_trial() const { return is_trial_; }
  // Found, but not made, whatever the options: `what` is the whole sentence.
  void note_left(std::int32_t op, std::string what, std::string place, int difference, std::string how);
  // "op 12 HARD_SWISH 'features/act'", with the index that the operator had in the model as given.
  std::string describe(std::int32_t op) const;
  // Removes operators without effect.
  void remove_dead();
  // Removes tensors and buffers that nothing refers to.
  void compact();
  // Rearranges bookkeeping after change() replaced the operators: origin of each, as indices before.
  void set_origins(std::vector<std::int32_t> origins) { origins_ = std::move(origins); }
  const std::vector<std::int32_t>& origins() const { return origins_; }

  // ---- For the driver ----
  void begin(const RewriteInfo& rewrite, bool is_trial);
  std::vector<Application> take_applications();
  int changes() const { return changes_; }

 private:
  const ir::Uses& uses() const;
  void find_varying() const;
  void forget();  // what was found out about the graph
  void note(std::int32_t op, std::string what, std::string place, int difference);

  ir::Model* model_;
  const RewriteOptions* options_;
  const RewriteInfo* rewrite_ = nullptr;
  bool is_trial_ = false;
  int changes_ = 0;
  std::vector<std::int32_t> origins_;  // of each operator: index in the model as given
  std::vector<Application> applications_;
  mutable std::optional<std::vector<bool>> fits_;  // of every operator, until the graph changes
  mutable std::optional<ir::Uses> uses_;           // until the graph changes; so is the next
  mutable std::vector<std::uint8_t> varies_;
};

}  // namespace reef::rewrite
