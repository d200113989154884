// SPDX-License-Identifier: Apache-2.0
// A tensor's values as real numbers, whatever its type.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/shape.h"
#include "ops/op_context.h"

namespace reef::evaluate {

struct TensorValues {
  std::string name;
  ir::Shape shape;
  std::vector<double> values;
};

// Quantized values are multiplied out, with a scale per channel where there is one. An error for types without numbers.
Result<std::vector<double>> real_values(const ops::Tensor& tensor);
// Elements [first, first + count) of it, which must exist: a report on a large tensor goes through it in pieces,
// because 8 bytes for each element are many times the tensor.
Result<std::vector<double>> real_values(const ops::Tensor& tensor, std::size_t first, std::size_t count);
Result<TensorValues> tensor_values(const ops::Tensor& tensor);

}  // namespace reef::evaluate
