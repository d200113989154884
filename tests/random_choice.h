// SPDX-License-Identifier: Apache-2.0
// Choices of generated networks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

#include "ir/model.h"

namespace reef::testing {

struct RandomChoice {
  explicit RandomChoice(unsigned seed) : random(seed) {}
  int among(std::initializer_list<int> values) {
    return *(values.begin() + std::uniform_int_distribution<int>(0, static_cast<int>(values.size()) - 1)(random));
  }
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }
  bool likely(int percent) { return between(0, 99) < percent; }
  // A zero point of the type: at the ends, in the middle, anywhere.
  std::int64_t zero_point(ir::DataType type) {
    return (type == ir::DataType::kInt8 ? -128 : 0) + among({0, 3, 100, 128, 128, 140, 255});
  }
  std::mt19937 random;
};

}  // namespace reef::testing
