// SPDX-License-Identifier: Apache-2.0
// Reductions along any set of dimensions.
//
// Elements are combined in the order in which they lie in memory, per output element: TFLite's order, on which float
// sums depend. Neighbouring dimensions that are treated alike are merged first, so that the innermost loop is long and
// either folds one run of memory into one accumulator or adds one run to another.
//
// Work is cut along the outermost kept dimension, [0, split_size); a slice of it owns a contiguous run of outputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reef::kernels {

struct ReducePlan {
  struct Dimension {
    std::int64_t size = 0;
    bool reduced = false;
    std::int64_t input_stride = 0;
    std::int64_t output_stride = 0;  // 0 where reduced
  };
  std::vector<Dimension> dimensions;  // merged: kept and reduced ones alternate
  int split_dimension = -1;           // outermost kept dimension; -1: everything is reduced
  std::int64_t split_size = 1;
  std::int64_t outputs_per_split = 1;
  std::int64_t outputs = 1;
  std::int64_t reduced_elements = 1;  // inputs per output
  bool input_is_empty = false;
  bool all_dimensions_reduced = false;  // also those of size 1
};

// `reduced[i]` says whether dimension i of `sizes` goes away. Sizes are not negative, their product is below 2^31.
ReducePlan plan_reduce(std::span<const std::int32_t> sizes, const std::vector<bool>& reduced);

// Splits that make a chunk of work worth handing to a thread.
std::int64_t reduce_grain(const ReducePlan& plan);

namespace reduce_detail {

template <typename T, typename Accumulator, typename Combiner>
struct Reduction {
  const ReducePlan& plan;
  const Combiner& combiner;
  std::int64_t split_begin, split_end;

  // Rows [begin, end) of `length` elements, each into one accumulator: several at a time, because in one row each step
  // waits for the last.
  void fold_rows(const ReducePlan::Dimension& rows, std::int64_t length, std::int64_t begin, std::int64_t end,
                 const T* input, Accumulator* output, bool first) const {
    constexpr std::int64_t kTogether = 8;
    std::int64_t i = begin;
    for (; i + kTogether <= end; i += kTogether) {
      const T* row = input + i * rows.input_stride;
      Accumulator* to = output + i * rows.output_stride;
      Accumulator sums[kTogether];
      for (std::int64_t r = 0; r < kTogether; ++r) {
        const T x = row[r * rows.input_stride];
        sums[r] = first ? combiner.start(x) : combiner.next(to[r * rows.output_stride], x);
      }
      for (std::int64_t k = 1; k < length; ++k) {
        for (std::int64_t r = 0; r < kTogether; ++r) sums[r] = combiner.next(sums[r], row[r * rows.input_stride + k]);
      }
      for (std::int64_t r = 0; r < kTogether; ++r) to[r * rows.output_stride] = sums[r];
    }
    for (; i < end; ++i) {
      const T* row = input + i * rows.input_stride;
      Accumulator& to = output[i * rows.output_stride];
      Accumulator sum = first ? combiner.start(row[0]) : combiner.next(to, row[0]);
      for (std::int64_t k = 1; k < length; ++k) sum = combiner.next(sum, row[k]);
      to = sum;
    }
  }

  // `first`: all reduced indices so far are 0, so accumulators below are to be started rather than continued.
  void level(std::size_t d, const T* input, Accumulator* output, bool first) const {
    const ReducePlan::Dimension& dimension = plan.dimensions[d];
    const bool split = static_cast<int>(d) == plan.split_dimension;
    const std::int64_t begin = split ? split_begin : 0;
    const std::int64_t end = split ? split_end : dimension.size;
    if (d + 2 == plan.dimensions.size() && !dimension.reduced) {
      fold_rows(dimension, plan.dimensions[d + 1].size, begin, end, input, output, first);
    } else if (d + 1 < plan.dimensions.size()) {
      for (std::int64_t i = begin; i < end; ++i) {
        level(d + 1, input + i * dimension.input_stride, output + i * dimension.output_stride,
              first && (i == 0 || !dimension.reduced));
      }
    } else if (dimension.reduced) {
      Accumulator accumulator = first ? combiner.start(input[0]) : combiner.next(*output, input[0]);
      for (std::int64_t i = 1; i < end; ++i) accumulator = combiner.next(accumulator, input[i]);
      *output = accumulator;
    } else if (first) {
      for (std::int64_t i = begin; i < end; ++i) output[i] = combiner.start(input[i]);
    } else {
      for (std::int64_t i = begin; i < end; ++i) output[i] = combiner.next(output[i], input[i]);
    }
  }
};

}  // namespace reduce_detail

// Fills the accumulators of splits [split_begin, split_end). The combiner has
//   Accumulator start(T)               the accumulator after a first element
//   Accumulator next(Accumulator, T)   after one more
//   Accumulator nothing()              after none, for empty inputs
// `output` points to the accumulators of all splits.
template <typename T, typename Accumulator, typename Combiner>
void reduce(const ReducePlan& plan, const T* input, Accumulator* output, const Combiner& combiner,
            std::int64_t split_begin, std::int64_t split_end) {
  if (plan.input_is_empty) {
    const std::int64_t end = split_end * plan.outputs_per_split;
    for (std::int64_t i = split_begin * plan.outputs_per_split; i < end; ++i) output[i] = combiner.nothing();
  } else {
    reduce_detail::Reduction<T, Accumulator, Combiner>{plan, combiner, split_begin, split_end}.level(0, input, output,
                                                                                                     true);
  }
}

}  // namespace reef::kernels
