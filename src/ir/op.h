// SPDX-License-Identifier: Apache-2.0
// The names of the ops that Reef knows, as an enum made from ops.def: a name that is misspelt does not compile.
//
// Operators keep their type as text (ir::Operator::type), since a model may hold ops that this version does not know:
// `op.type == Op::CONV_2D` compares it with a name, and `op.type = name_of(Op::CONV_2D)` sets it. What an op does is in
// its definition (ops/op_def.h).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>

namespace reef {

enum class Op : std::uint16_t {
#define OP(file, name) name,
#include "base/at.h"
#include "ir/ops.def"
#undef OP
};

inline constexpr std::string_view kOpNames[] = {
#define OP(file, name) #name,
#include "ir/ops.def"
#undef OP
};

// "CONV_2D".
constexpr std::string_view name_of(Op op) { return kOpNames[at(op)]; }

constexpr bool operator==(std::string_view type, Op op) { return type == name_of(op); }

// Whether `type` is one of `ops`.
constexpr bool is_one_of(std::string_view type, std::span<const Op> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](Op op) { return type == op; });
}
constexpr bool is_one_of(std::string_view type, std::initializer_list<Op> ops) {
  return is_one_of(type, std::span<const Op>(ops.begin(), ops.size()));
}

// The type of an operator that is made or looked for: an op that Reef knows, or the type of an operator that exists,
// known or not. A literal must be a name of ops.def: others do not compile. It ends with the text that it was made of.
class OpName {
 public:
  constexpr OpName() = default;  // none
  constexpr OpName(Op op) : name_(name_of(op)) {}
  template <std::size_t kSize>
  consteval OpName(const char (&name)[kSize]) : name_(name, kSize - 1) {
    if (std::find(std::begin(kOpNames), std::end(kOpNames), name_) == std::end(kOpNames))
      throw "ops.def has no such op";
  }
  template <std::convertible_to<std::string_view> Text>
  requires(!std::is_array_v<Text>) constexpr OpName(const Text& type) : name_(type) {}

  constexpr bool empty() const { return name_.empty(); }
  constexpr operator std::string_view() const { return name_; }
  constexpr bool operator==(Op op) const { return name_ == op; }
  friend constexpr bool operator==(OpName a, OpName b) { return a.name_ == b.name_; }
  template <std::same_as<std::string_view> Text>
  friend constexpr bool operator==(OpName a, Text b) {
    return a.name_ == b;
  }

 private:
  std::string_view name_;
};

}  // namespace reef
