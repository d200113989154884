// SPDX-License-Identifier: Apache-2.0
// What each operator needs in integers (op_rules.def), and which operators of a model can be had in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "quantize/options.h"

namespace reef::quantize {

// real = scale * (q - zero_point)
struct Affine {
  float scale = 1;
  std::int32_t zero_point = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};

// The least number that 8 bits hold, and whether that cuts a value off by more than a step.
inline double lowest(const Affine& affine) { return double{affine.scale} * (-128 - affine.zero_point); }
inline bool ends_above(const Affine& affine, double value) { return value < lowest(affine) - affine.scale; }

enum class RuleKind : std::uint8_t { kFree, kSameScale, kUnit, kWeighted, kRecurrent };

struct OpRule {
  std::string_view type;
  RuleKind kind = RuleKind::kFree;
  int version8 = 0, version16 = 0;                           // 0: no such kernel
  Affine unit8, unit16;                                      // kUnit: of the result
  int input = 0, weights = -1, bias = -1, channel_axis = 0;  // kWeighted: positions among the inputs
  bool compares = false;                                     // no operand may have scale 1

  // Whether input `position` is an activation, not weights, bias or state.
  bool is_activation(int position) const {
    return (kind != RuleKind::kWeighted && kind != RuleKind::kRecurrent) || position == input;
  }
};

// Null: the operator has no integer kernel that Reef would use.
const OpRule* rule_of(std::string_view type);

// What becomes of an operator.
enum class Treatment : std::uint8_t {
  kUntouched,  // has no float32 operands
  kFloat,      // stays float: no kernel, or the user or the measurements want it so
  kInteger,
};

struct Decision {
  Treatment treatment = Treatment::kUntouched;
  const OpRule* rule = nullptr;  // of kInteger
  std::string why;               // of kFloat
};

// For every operator of the first subgraph. `keep_float`: operators by number that stay float, beside those that
// options.keep_float names.
std::vector<Decision> decide(const ir::Model& model, const QuantizeOptions& options,
                             const std::vector<std::int32_t>& keep_float = {});

// Fails if options.keep_float has a name that no operator's result has.
Status check_names(const ir::Model& model, const QuantizeOptions& options);

// Ends of the names of tensors that hold something else than in the float model, though the outputs are the same: who
// compares the models must not take one for the other. Patterns of users are for the name without them.
inline constexpr std::string_view kCentredSuffix = "_centred", kEqualizedSuffix = "_equalized";
std::string_view without_suffixes(std::string_view name);

// `name` matches `pattern`, in which * stands for anything.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace reef::quantize
