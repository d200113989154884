// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL: both zero points are subtracted, sums are exact, and rounded once.
//
// How it is known: Google's compilers leave it to the CPU, but map FULLY_CONNECTED of two computed operands, which is
// the same product, and compute it in this way (docs/hardware/public_files.md#larger-files).
#include <algorithm>

#include "execute/reference/chip_reference_op.h"

namespace reef::reference {
namespace {

struct Matrices {
  std::int64_t rows = 0, columns = 0;  // as they are multiplied
  bool swapped = false;                // they lie as columns x rows
  std::int32_t zero = 0;
  const ChipValue* value = nullptr;

  // Matrix `index` row by row, without its zero point.
  std::vector<std::int32_t> at(std::int64_t index) const {
    std::vector<std::int32_t> result(static_cast<std::size_t>(rows * columns));
    const std::int32_t* from = value->codes.data() + index * rows * columns;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::int64_t source = swapped ? column * rows + row : row * columns + column;
        result[reef::at(row * columns + column)] = from[source] - zero;
      }
    }
    return result;
  }
};

Matrices matrices_of(const ChipValue& value, bool swapped, std::int32_t zero) {
  const std::int64_t rows = value.shape.last(1), columns = value.shape.last(0);
  return {swapped ? columns : rows, swapped ? rows : columns, swapped, zero, &value};
}

// The matrix of an operand that product `index` has: leading dimensions of 1 are repeated.
std::int64_t matrix_of(const ir::Shape& operand, const ir::Shape& output, std::int64_t index) {
  std::int64_t matrix = 0, stride = 1;
  for (int from_end = 2; from_end < output.rank(); ++from_end) {
    const std::int64_t size = output.last(from_end), at = index % size;
    index /= size;
    if (from_end >= operand.rank()) continue;
    if (operand.last(from_end) != 1) matrix += stride * at;
    stride *= operand.last(from_end);
  }
  return matrix;
}

Status batch_matmul(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const ChipQuantization x_q, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization y_q, op.quantization(op.input(1)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization out_q, op.quantization(op.output()));
  for (const ir::Tensor* tensor : {&op.input(0), &op.input(1), &op.output()}) {
    if (!ir::is_integer_8(tensor->type)) return unsupported("it is known for 8-bit tensors only");
  }
  if (y_q.scales.size() != 1) return unsupported("the chip has one scale for each operand");
  const ir::Shape& out = op.output().shape;
  REEF_REQUIRE(op.value(0).shape.rank() >= 2 && op.value(1).shape.rank() >= 2 && out.rank() >= 2,
               "an operand is no matrix");
  const Matrices x = matrices_of(op.value(0), op.attributes().get_bool("adj_x"), x_q.zero());
  const Matrices y = matrices_of(op.value(1), op.attributes().get_bool("adj_y"), y_q.zero());
  const float multiplier = numeric::chip_product_multiplier(x_q.scale(), y_q.scale(), out_q.scale());
  const numeric::ChipClamp clamp = numeric::chip_clamp(out_q.scale(), out_q.zero(), numeric::ChipActivation::kNone);
  std::vector<std::int32_t> codes;
  codes.reserve(static_cast<std::size_t>(out.elements()));
  std::vector<std::int64_t> sums(static_cast<std::size_t>(y.columns));
  for (std::int64_t product = 0; product < out.product(0, out.rank() - 2); ++product) {
    const std::vector<std::int32_t> a = x.at(matrix_of(op.value(0).shape, out, product));
    const std::vector<std::int32_t> b = y.at(matrix_of(op.value(1).shape, out, product));
    for (std::int64_t row = 0; row < x.rows; ++row) {
      REEF_RETURN_IF_ERROR(op.check_budget());
      std::fill(sums.begin(), sums.end(), 0);
      for (std::int64_t k = 0; k < x.columns; ++k) {
        const std::int32_t factor = a[reef::at(row * x.columns + k)];
        const std::int32_t* weights = b.data() + k * y.columns;
        for (std::size_t n = 0; n < sums.size(); ++n) sums[n] += std::int64_t{factor} * weights[n];
      }
      for (const std::int64_t sum : sums) codes.push_back(requantized(sum, multiplier, clamp, out_q.zero()));
    }
  }
  return op.give(std::move(codes));
}

}  // namespace

std::vector<ChipOpEntry> chip_product_ops() { return {{Op::BATCH_MATMUL, batch_matmul, 2}}; }

}  // namespace reef::reference
