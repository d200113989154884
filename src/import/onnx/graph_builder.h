// SPDX-License-Identifier: Apache-2.0
// Builds the ir::Model that an ONNX graph becomes: operators are appended in execution order, their results' shapes
// come from the ops' own shape inference, and what can be computed from constants is computed.
//
// A value is the number of a tensor of subgraph 0 (Id). The first failure sticks: it is kept in status(), and
// everything made afterwards is a stand-in (kFailed's shape has enough dimensions of 1 for any reader), so that a
// converter may write expressions and return status() at the end.
//
// Constants: small results of operators on constants are computed at once, which is how shape arithmetic disappears;
// larger ones (transposed weights) when their value is asked for, or at the end by fold_constants(). Operators marked
// kept (DEQUANTIZE of weights) are left in the model, though their value can be asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "execute/cpu/evaluate.h"
#include "ir/model.h"
#include "ir/op.h"

namespace reef::import {

// An enumeration, so that no other number passes for one.
enum Id : std::int32_t { kAbsent = -1 };

class GraphBuilder {
 public:
  GraphBuilder();

  const Status& status() const { return status_; }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const ir::Model& model() const { return model_; }
  // Name of what is being converted: tensors made are named after it.
  void set_scope(std::string name);
  void rename(Id id, std::string name);

  // ---- Reading ----
  ir::DataType type(Id id) const { return tensor(id).type; }
  const ir::Shape& shape(Id id) const { return tensor(id).shape; }
  int rank(Id id) const { return shape(id).rank(); }
  std::int32_t dim(Id id, int axis) const;  // 1 where there is no such axis
  std::int64_t elements(Id id) const { return shape(id).elements(); }
  bool is_shape_known(Id id) const;
  const ir::Tensor& tensor(Id id) const;
  bool is_constant(Id id) const;       // its bytes are there
  bool is_known(Id id) const;          // its bytes are there or can be computed
  std::int32_t producer(Id id) const;  // index of the operator, -1: none
  const ir::Operator& op(std::int32_t index) const { return graph().operators[at(index)]; }

  // ---- Values of constants; nullopt: not known before the model runs ----
  std::optional<Bytes> value(Id id);
  std::optional<std::vector<std::int64_t>> int_values(Id id);  // integers and bool; floats that are whole
  std::optional<std::vector<float>> float_values(Id id);       // any number

  // ---- Leaves ----
  Id input(const std::string& name, ir::DataType type, ir::Shape shape, bool is_graph_input = true);
  // A tensor that its operator changes and keeps from run to run.
  Id variable(ir::DataType type, ir::Shape shape);
  Id constant(ir::DataType type, ir::Shape shape, Bytes data, std::string_view name = {});
  // The same for a slice of a file, which may lie at any address: copied only if it stays in the model, so that the
  // file can go.
  Id borrowed_constant(ir::DataType type, ir::Shape shape, Bytes data, std::string_view name = {});
  Id floats(std::span<const float> values, ir::Shape shape);
  Id ints(std::span<const std::int64_t> values);  // int32 [n]
  Id ints(std::span<const std::int64_t> values, ir::Shape shape, ir::DataType type = ir::DataType::kInt32);
  Id scalar(ir::DataType type, double value);  // of any number type, saturated to its range; exact to 2^53
  Id filled(ir::DataType type, const ir::Shape& shape, double value);
  void set_quantization(Id id, ir::Quantization quantization);
  void set_outputs(const std::vector<Id>& outputs) { graph().outputs.assign(outputs.begin(), outputs.end()); }

  // ---- Operators: any ----
  // One output of type `type`.
  Id emit(OpName op, std::vector<Id> inputs, ir::DataType type, ir::Attributes attributes = {});
  std::vector<Id> emit_many(OpName op, std::vector<Id> inputs, std::vector<ir::DataType> types,
                            ir::Attributes attributes = {});
  // One output, whose operator is not folded away; it stores numbers with `quantization`, if that says something.
  Id emit_kept(OpName op, Id input, ir::DataType type, ir::Quantization quantization = {});

  // ---- End ----
  // Replaces what constants alone lead to by its value, removes operators and tensors without use.
  Status finish();
  ir::Model take() { return std::move(model_); }

 private:
  ir::Subgraph& graph() { return model_.subgraphs[0]; }
  const ir::Subgraph& graph() const { return model_.subgraphs[0]; }
  Id add_tensor(ir::Tensor tensor);
  Id failed_value(ir::DataType type);
  std::string next_name();
  Status infer(const ir::Operator& op, std::vector<ir::Shape>& shapes, bool& is_deferred);
  std::vector<ir::Operator> cone_of(Id target) const;
  Status evaluate(Id id);  // computes and stores the value of a known tensor
  bool is_kept(Id id) const;
  void remove_unused();

  ir::Model model_;
  Status status_;
  std::string scope_;
  int made_in_scope_ = 0;
  // Most bytes that one constant may grow to while folding.
  static constexpr std::int64_t kFoldLimit = std::int64_t{256} << 20;
  cpu::Evaluator evaluator_;
  std::vector<std::int32_t> producers_;       // of each tensor
  std::vector<std::uint8_t> known_, shaped_;  // of each tensor: see is_known, is_shape_known
  std::vector<std::uint8_t> kept_;            // of each operator
  std::set<std::int32_t> borrowed_;           // buffers
  std::map<Id, Bytes> kept_values_;           // of results of kept operators, once asked for
};

}  // namespace reef::import
