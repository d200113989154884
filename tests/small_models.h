// SPDX-License-Identifier: Apache-2.0
// Pieces of models that tests put together by hand.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/model.h"

namespace reef::testing {

inline ir::Tensor tensor(ir::DataType type, ir::Shape shape) {
  ir::Tensor result;
  result.type = type;
  result.shape = std::move(shape);
  return result;
}

inline ir::Operator op(const char* type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs) {
  ir::Operator result;
  result.type = type;
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  return result;
}

}  // namespace reef::testing
