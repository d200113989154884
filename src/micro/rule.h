// SPDX-License-Identifier: Apache-2.0
// How a rule on an operator is written down (rules.h says what they are for).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "micro/op_view.h"

namespace reef::micro {

// What about an operator breaks a rule, a clause; nothing: it keeps it.
using Particulars = std::optional<std::string>;

struct Rule {
  std::string_view name;
  std::string_view says;
  std::string_view remedy;
  Particulars (*broken)(const OpView&);
};

// Rules that hold only for the release in Coral's SDK.
std::span<const Rule> coral_rules();

inline constexpr std::string_view kNear =
    "Leave this operator to the application, or change the layer and convert again.";

inline bool is_integer(ir::DataType type) { return type == ir::DataType::kInt8 || type == ir::DataType::kInt16; }
inline bool has_input(const OpView& view, std::size_t i) { return view.input(i) != nullptr; }
inline std::int64_t zero_point(const ir::Tensor& tensor) {
  return tensor.quantization.zero_point.empty() ? 0 : tensor.quantization.zero_point[0];
}

}  // namespace reef::micro
