// SPDX-License-Identifier: Apache-2.0
// Reductions over axes: one exact sum (or maximum, or minimum) for each result, brought to its scale once; and the
// division of rows by their lengths.
//
// How it is known: the mean of height and width is an average over the whole map. For other axes and for SUM no program
// of Google's is known; ours have the same arithmetic, and the result is within one of TFLite's.
#include <algorithm>

#include "execute/reference/chip_reference_op.h"
#include "numeric/chip_squares.h"
#include "numeric/chip_tables.h"

namespace reef::reference {
namespace {

using numeric::ChipClamp;
using numeric::ChipPoolOrder;

struct Axes {
  std::vector<bool> is_reduced;
  std::int64_t count = 1;  // elements that make one
  // Height and width of a map, and nothing else of more than one element.
  bool are_map = false;
};

Result<Axes> axes_of(const ChipOp& op) {
  const ir::Shape& shape = op.value(0).shape;
  const int rank = shape.rank();
  if (op.value(0).codes.empty()) return unsupported("the chip has no tensors of no elements");
  Axes axes;
  axes.is_reduced.resize(static_cast<std::size_t>(rank));
  for (const std::int32_t axis : op.value(1).codes) {
    REEF_REQUIRE(axis >= -rank && axis < rank, "there is no dimension {}", axis);
    axes.is_reduced[reef::at(axis < 0 ? axis + rank : axis)] = true;
  }
  for (int d = 0; d < rank; ++d) {
    if (axes.is_reduced[reef::at(d)]) axes.count *= shape[d];
  }
  const auto& r = axes.is_reduced;
  axes.are_map = rank == 4 && r[1] && r[2] && !r[3] && (!r[0] || shape[0] == 1);
  return axes;
}

// Calls visit(result, code) for every element of the input.
template <typename Visit>
void for_each_element(const ChipOp& op, const Axes& axes, const Visit& visit) {
  const ChipValue& in = op.value(0);
  for (std::size_t i = 0; i < in.codes.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), at = 0, distance = 1;
    for (int d = in.shape.rank() - 1; d >= 0; --d) {
      if (!axes.is_reduced[reef::at(d)]) {
        at += rest % in.shape[d] * distance;
        distance *= in.shape[d];
      }
      rest /= in.shape[d];
    }
    visit(static_cast<std::size_t>(at), in.codes[i]);
  }
}

Status total(ChipOp& op, bool is_mean) {
  REEF_ASSIGN_OR_RETURN(const Axes axes, axes_of(op));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(op.output()));
  const bool count_last = axes.are_map && op.options().compiler_generation < 15;
  const float multiplier =
      is_mean ? numeric::chip_pool_multiplier(from.scale(), to.scale(), static_cast<std::int32_t>(axes.count),
                                              count_last ? ChipPoolOrder::kCountLast : ChipPoolOrder::kOutputLast)
              : numeric::chip_rescale_multiplier(from.scale(), to.scale());
  const ChipClamp clamp = numeric::chip_clamp(to.scale(), to.zero(), numeric::ChipActivation::kNone);
  std::vector<std::int64_t> sums(static_cast<std::size_t>(op.output().shape.elements()));
  for_each_element(op, axes, [&](std::size_t at, std::int32_t code) { sums[at] += code - from.zero(); });
  std::vector<std::int32_t> codes;
  for (const std::int64_t sum : sums) codes.push_back(requantized(sum, multiplier, clamp, to.zero()));
  return op.give(std::move(codes));
}
Status mean(ChipOp& op) { return total(op, true); }
Status sum(ChipOp& op) { return total(op, false); }

Status extreme_along_axes(ChipOp& op, bool is_maximum) {
  REEF_ASSIGN_OR_RETURN(const Axes axes, axes_of(op));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(op.output()));
  if (!(from == to)) return unsupported("it is not known how the chip takes an extreme and changes the scale");
  std::vector<std::int32_t> codes(static_cast<std::size_t>(op.output().shape.elements()), is_maximum ? 0 : 255);
  for_each_element(op, axes, [&](std::size_t at, std::int32_t code) {
    codes[at] = is_maximum ? std::max(codes[at], code) : std::min(codes[at], code);
  });
  return op.give(std::move(codes));
}
Status reduce_max(ChipOp& op) { return extreme_along_axes(op, true); }
Status reduce_min(ChipOp& op) { return extreme_along_axes(op, false); }

// Rows (along the last dimension) divided by their length: times one over the root of the sum of squares, which is
// rounded to 16 bits.
Status l2_normalization(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(op.output()));
  const ChipValue& in = op.value(0);
  REEF_REQUIRE(in.shape.rank() > 0 && in.shape.last() > 0, "a tensor without rows");
  const ChipClamp clamp = numeric::chip_clamp(to.scale(), to.zero(), numeric::ChipActivation::kNone);
  const auto depth = static_cast<std::size_t>(in.shape.last());
  std::vector<std::int32_t> codes;
  for (std::size_t row = 0; row < in.codes.size(); row += depth) {
    std::int64_t sum = 0;
    for (std::size_t i = row; i < row + depth; ++i) {
      sum += std::int64_t{in.codes[i] - from.zero()} * (in.codes[i] - from.zero());
    }
    const float one = sum < numeric::kRootSplit ? numeric::kCoarseRoot : numeric::kFineRoot;
    const std::int64_t root =
        numeric::chip_round(numeric::chip_inverse_root(one).at(static_cast<float>(sum)), 0, 65535);
    const float multiplier = numeric::chip_root_multiplier(one, to.scale());
    for (std::size_t i = row; i < row + depth; ++i) {
      codes.push_back(requantized((in.codes[i] - from.zero()) * root, multiplier, clamp, to.zero()));
    }
  }
  return op.give(std::move(codes));
}

}  // namespace

std::vector<ChipOpEntry> chip_reduction_ops() {
  return {{Op::L2_NORMALIZATION, l2_normalization},
          {Op::MEAN, mean, 2},
          {Op::SUM, sum, 2},
          {Op::REDUCE_MAX, reduce_max, 2},
          {Op::REDUCE_MIN, reduce_min, 2}};
}

}  // namespace reef::reference
