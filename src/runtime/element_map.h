// SPDX-License-Identifier: Apache-2.0
// Which element is which, through operators that only move bytes.
//
// The chip computes nothing for them: their result is bytes of other tensors, wherever these lie. The operator itself
// says which, when the CPU runs it on numbers of elements instead of elements.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "retarget/network.h"

namespace reef::runtime {

// Each element of the result depends on one element of each operand.
bool is_elementwise(const ir::Operator& op);

// An element of a tensor, by its position in memory order.
struct Element {
  std::int32_t tensor = -1;  // -1: padding, or a constant
  std::int32_t index = 0;
  friend bool operator==(const Element&, const Element&) = default;
};

class ElementMaps {
 public:
  explicit ElementMaps(const retarget::Network& network);

  // The origin of each element of a tensor, when moves are traced back as far as the quantization stays the same. An
  // element that is not moved is its own origin.
  Result<const std::vector<Element>*> origins(std::int32_t tensor);
  // Where each element of `part` (which origins() names) stands in `whole`.
  static constexpr std::int32_t kNowhere = -1, kSeveralPlaces = -2;
  Result<const std::vector<std::int32_t>*> places(std::int32_t part, std::int32_t whole);
  // Which elements depend on no input of the model: padding, and what operators on single elements make of it. (What
  // others make of it is not looked at.)
  Result<const std::vector<bool>*> constants(std::int32_t tensor);
  // Operator on the chip that makes a tensor; -1: none.
  std::int32_t producer(std::int32_t tensor) const { return uses_.producer(tensor); }
  // The operator only moves bytes (though it may also change their quantization).
  bool is_move(std::int32_t op) const;
  // For each element of the operator's output number `output`: which element of its inputs it is.
  Result<std::vector<Element>> sources(std::int32_t op, std::size_t output) const;

 private:
  const retarget::Network& network_;
  ir::Uses uses_;  // of the operators on the chip
  std::map<std::int32_t, std::vector<Element>> origins_;
  std::map<std::int32_t, std::vector<bool>> constants_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> places_;
};

}  // namespace reef::runtime
