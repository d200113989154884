// SPDX-License-Identifier: Apache-2.0
// Types that the parts of the chip reference share: a tensor's value as the chip holds it, and one op with its
// operands.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "execute/reference/chip_reference.h"
#include "ir/model.h"
#include "ir/op.h"
#include "numeric/chip_requantize.h"

namespace reef::reference {

// The chip knows only unsigned numbers: 8-bit codes are 0..255 and 16-bit ones 0..65535, so that those of int8 and
// int16 tensors are 128 and 32768 higher than TFLite's. int32 (shapes, biases) as they are.
struct ChipValue {
  ir::Shape shape;
  std::vector<std::int32_t> codes;
};

ChipValue chip_value(const ir::Tensor& tensor, const std::uint8_t* bytes, std::size_t size);
std::vector<std::uint8_t> tflite_bytes(const ir::Tensor& tensor, const ChipValue& value);

// Scale and zero point, the latter as the chip has it.
struct ChipQuantization {
  std::vector<float> scales;        // one, or one per channel
  std::vector<std::int32_t> zeros;  // as many as scales
  int dimension = 0;                // of the channels
  float scale() const { return scales[0]; }
  std::int32_t zero() const { return zeros[0]; }
  friend bool operator==(const ChipQuantization&, const ChipQuantization&) = default;
};

// An operator and the values of its operands. Indices are positions in the operator's lists.
class ChipOp {
 public:
  ChipOp(const ir::Model& model, const ir::Subgraph& graph, const ir::Operator& op,
         std::map<std::int32_t, ChipValue>& values, const ChipReferenceOptions& options)
      : model_(model), graph_(graph), op_(op), values_(values), options_(options) {}

  const ChipReferenceOptions& options() const { return options_; }
  const ir::Operator& op() const { return op_; }
  const ir::Attributes& attributes() const { return op_.attributes; }
  std::size_t inputs() const { return op_.inputs.size(); }
  std::size_t outputs() const { return op_.outputs.size(); }
  bool has(std::size_t i) const { return i < op_.inputs.size() && op_.inputs[i] >= 0; }
  const ir::Tensor& input(std::size_t i) const { return tensor(op_.inputs[i]); }
  const ir::Tensor& output(std::size_t i = 0) const { return tensor(op_.outputs[i]); }
  bool is_constant(std::size_t i) const { return !ir::constant_data(model_, input(i)).empty(); }
  const ChipValue& value(std::size_t i) const { return values_.at(op_.inputs[i]); }

  // Fails where the tensor is not quantized in a way that the chip has (or not at all).
  Result<ChipQuantization> quantization(const ir::Tensor& tensor) const;
  Result<numeric::ChipActivation> fused_activation() const;

  // For loops over foreign sizes: every few thousand products.
  Status check_budget() const { return options_.budget.check("computing a model in the chip's arithmetic"); }

  // Sets output `i`, whose shape is the declared one.
  void set(std::size_t i, std::vector<std::int32_t> codes) {
    values_[op_.outputs[i]] = {output(i).shape, std::move(codes)};
  }
  // The only output, last of all: `return op.give(codes);`.
  Status give(std::vector<std::int32_t> codes) {
    set(0, std::move(codes));
    return ok_status();
  }
  // A variable's value after the op; see kVariableOutputSuffix.
  void set_variable(std::size_t input, std::vector<std::int32_t> codes) {
    values_[-1 - op_.inputs[input]] = {this->input(input).shape, std::move(codes)};
  }

 private:
  const ir::Tensor& tensor(std::int32_t i) const { return graph_.tensors[at(i)]; }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  const ir::Operator& op_;
  std::map<std::int32_t, ChipValue>& values_;  // by tensor; -1 - tensor: a variable afterwards
  const ChipReferenceOptions& options_;
};

// The line of chip_reference.h after the bias. `limit`: 255 or 65535.
std::int32_t requantized(std::int64_t sum, float multiplier, numeric::ChipClamp clamp, std::int32_t zero,
                         std::int32_t limit = 255);

// A copy to another scale: the identity where both are equal.
Result<std::vector<std::int32_t>> rescaled(const std::vector<std::int32_t>& codes, const ChipQuantization& from,
                                           const ChipQuantization& to, numeric::ChipActivation activation);

using ChipOpFunction = Status (*)(ChipOp& op);
struct ChipOpEntry {
  Op type;
  ChipOpFunction function;
  std::size_t inputs = 1;  // so many, from the first, are not optional
};
// The ops of each file.
std::vector<ChipOpEntry> chip_sum_ops();          // chip_reference_sums.cpp: convolutions, pools
std::vector<ChipOpEntry> chip_product_ops();      // chip_reference_products.cpp: of two computed matrices
std::vector<ChipOpEntry> chip_reduction_ops();    // chip_reference_reductions.cpp: MEAN, SUM, extremes over axes
std::vector<ChipOpEntry> chip_elementwise_ops();  // chip_reference_elementwise.cpp
std::vector<ChipOpEntry> chip_movement_ops();     // chip_reference_movement.cpp: what only moves elements, and resize
std::vector<ChipOpEntry> chip_softmax_ops();      // chip_reference_softmax.cpp
std::vector<ChipOpEntry> chip_lstm_ops();         // chip_reference_lstm.cpp

}  // namespace reef::reference
