// SPDX-License-Identifier: Apache-2.0
// From sums to stored numbers by other rules than numeric/chip_tensor.h has: the alternatives of beliefs about
// rounding, saturation and tables. Plain loops: only tools/doubt_device and tests run them.
#pragma once

#include <cstdint>

#include "execute/device/beliefs.h"
#include "execute/device/cell_results.h"
#include "isa/operation.h"
#include "numeric/chip_tensor.h"

namespace reef::device {

bool is_about_results(Belief belief);

struct ResultsOtherwise {
  Belief doubted;
  const isa::TensorOperation& op;
  const ResultRule& rule;
  bool sums_are_whole;              // constant and bias are added already
  const numeric::ChipTable* table;  // null: none was loaded

  template <typename Value>
  void put(const std::int32_t* sums, std::int64_t count, Value* values) const {
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<Value>(result(sums[i], i % rule.pattern));
  }

 private:
  std::int32_t result(std::int32_t sum, std::int64_t cell) const;
  std::int32_t whole(std::int32_t sum, std::int64_t cell) const;
  double through_table(double scaled) const;
  double in_table(double x) const;
  std::int32_t rounded(double value) const;
};

}  // namespace reef::device
