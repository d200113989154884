// SPDX-License-Identifier: Apache-2.0
// Which operator of the model each tensor op of the template computes, and what it must therefore contain.
//
// Tensor ops are taken in program order. What an op reads is known (provenance.h), so the candidates are the operators
// that read those tensors; each kind of operator has its rules for what its tensor ops look like (roles_*.cpp). A rule
// that agrees offers a Choice: the operator, the label of the result, and every constant. Where several agree, they are
// tried in the order of the model, and a choice that leads nowhere is taken back; what remains when all tensor ops and
// all operators have found each other is an isomorphism, and any isomorphism computes the model.
//
// Nothing is taken from the template's numbers except that they must agree among themselves (what one op writes with
// some zero point, the next must read with it).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "retarget/follow.h"
#include "retarget/network.h"
#include "retarget/op_view.h"

namespace reef::retarget {

// The identity of a value.
struct Label {
  enum class Kind : std::uint8_t { kTensor, kStage, kFill } kind = Kind::kTensor;
  std::int32_t number = 0;  // tensor; operator; instruction of the fill
  std::int32_t stage = 0;   // of an operator that takes several tensor ops (Stage)
  friend auto operator<=>(const Label&, const Label&) = default;

  static Label tensor(std::int32_t index) { return {Kind::kTensor, index, 0}; }
  static Label of_stage(std::int32_t op, int stage) { return {Kind::kStage, op, stage}; }
  static Label fill(std::uint32_t instruction) { return {Kind::kFill, static_cast<std::int32_t>(instruction), 0}; }
};
using Labels = std::set<Label>;

enum Stage : int {
  kSoftmaxMax,
  kSoftmaxNegated,
  kSoftmaxShifted,
  kSoftmaxExp,
  kSoftmaxRoot,
  kSoftmaxInverse,
  kPreluPositive,
  kPreluNegative,
  kPreluScaled,
  kMaximumDifference,
  kLstmGateIn,  // + gate
  kLstmGateRecurrent = kLstmGateIn + 4,
  kLstmGate = kLstmGateRecurrent + 4,
  kLstmUpdate = kLstmGate + 4,
  kLstmWideForget,
  kLstmKept,
  kLstmWideOutput,
  kLstmCellTanh,
};

// Labels of an operand, by kind.
struct Operand {
  std::vector<std::int32_t> tensors;
  std::vector<Label> stages;
  std::vector<std::uint32_t> fills;
  bool has_values() const { return !tensors.empty() || !stages.empty(); }
  // Nothing but results of this stage of this operator.
  bool is_stage(std::int32_t op, int stage) const;
};

// A constant word that a mesh instruction must store.
struct FillValue {
  std::uint32_t instruction = 0;
  std::uint32_t value = 0;
  friend bool operator==(const FillValue&, const FillValue&) = default;
};

// Bytes of a blob.
struct BlobRange {
  Origin blob = Origin::kCached;  // kCached or kStreamed
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

// A layer's parameters in a blob.
struct LayerChunk {
  BlobRange range;
  std::int32_t op = -1;
  std::string part;                                            // of the operator; empty: all of it
  std::shared_ptr<const darwinn::LayerParameters> parameters;  // the model's, in the template's form
  std::int32_t tensor = -1;                                    // or a constant tensor as it is
};

// 32-bit words of a blob at their places.
struct BlobWords {
  Origin blob = Origin::kCached;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> words;  // offset, value
};

// The operator that one tensor instruction works for.
struct Choice {
  std::int32_t op = -1;             // -1: it only moves bytes
  std::string role;                 // words
  std::string part;                 // at most one tensor op group may have it; empty: no such limit
  Labels label;                     // of the result
  std::vector<Labels> cell_labels;  // of each cell, where they differ; empty: all have `label`
  std::array<std::optional<std::uint32_t>, kConstants> constants;  // absent: does not depend on the model
  std::vector<FillValue> fills;
  std::optional<LayerChunk> new_chunk;  // first op that reads this chunk
  std::int32_t chunk = -1;              // index of the chunk, set when chosen
  std::vector<BlobWords> words;
  std::string words_part;  // not empty: the first op that reads these words
  // Constants of the template that must be the zero point with which its other ops write what this one reads.
  std::optional<Constant> input_zero, parameter_zero;
  // The output zero point is that of the tensor in `label`.
  bool writes_zero = true;

  void set(Constant constant, std::uint32_t value) { constants[at(constant)] = value; }
};

struct Template {
  DecodedExecutable execution;
  std::optional<DecodedExecutable> caching;
  Trace trace;
  std::vector<OpView> ops;  // views of trace.tensor_ops
  std::span<const std::uint8_t> blob(Origin origin) const;
  std::uint32_t fill_value(std::uint32_t instruction) const;
  std::vector<std::int32_t> input_tensors, output_tensors;  // of the model, by layer index
};

struct Matching {
  std::vector<Choice> choices;  // by index of Template::ops
  std::vector<LayerChunk> chunks;
  std::map<std::uint32_t, std::uint32_t> fills;  // instruction -> value
};

struct MatchOptions {
  // The template was compiled from this very model: constants must be those of the template.
  bool must_be_equal = false;
  // Operator of each tensor op, as found with the template's own source. Empty: any.
  std::vector<std::int32_t> ops;
};

// Refuses with the first thing that differs between template and model.
Result<Matching> match(const Template& compiled, const Network& network, const MatchOptions& options = {});

}  // namespace reef::retarget
