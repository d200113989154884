// SPDX-License-Identifier: Apache-2.0
// Reductions along any set of dimensions.
//
// Elements are combined in the order in which they lie in memory, per output element: TFLite's order, on which float
// sums depend. Neighbouring dimensions that are treated alike are merged first, so that the innermost loop is long and
// either folds one run of memory into one accumulator or adds one run to another.
//
// Work is cut along the outermost kept dimension, [0, split_size); a slice of it owns a contiguous run of outputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/simd/loops.h"

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

// A combiner says with these members what else may be done with it:
//   kAnyOrder     elements may be combined in any order, by next(Accumulator, Accumulator) as well: exact integers
//   Narrow, kNarrowElements   accumulators are sums, and a Narrow holds those of so many elements
//   kIsSum        next(a, b) is a + b, of floats
namespace reduce_detail {

template <typename Combiner>
constexpr bool is_in_any_order() {
  if constexpr (requires { Combiner::kAnyOrder; }) return Combiner::kAnyOrder;
  return false;
}
template <typename Combiner>
constexpr bool is_float_sum() {
  if constexpr (requires { Combiner::kIsSum; }) return Combiner::kIsSum;
  return false;
}

// Rows of `length` elements, each into one accumulator, or one row after the other into a row of accumulators. All is
// inlined into loops that are compiled for the CPU's vectors (simd/loops.h).
template <typename T, typename Accumulator, typename Combiner>
struct Folding {
  const Combiner& combiner;
  bool first;  // accumulators are to be started rather than continued

  // kWidth columns of `rows` rows: their accumulators stay in registers.
  template <std::int64_t kWidth>
  void block(const T* input, std::int64_t stride, std::int64_t rows, Accumulator* output) const {
    Accumulator sums[kWidth];
    for (std::int64_t c = 0; c < kWidth; ++c)
      sums[c] = first ? combiner.start(input[c]) : combiner.next(output[c], input[c]);
    if constexpr (requires { typename Combiner::Narrow; }) {
      using Narrow = typename Combiner::Narrow;
      for (std::int64_t r = 1; r < rows; r += Combiner::kNarrowElements) {
        const std::int64_t end = std::min(r + Combiner::kNarrowElements, rows);
        Narrow partial[kWidth] = {};
        for (std::int64_t i = r; i < end; ++i) {
          const T* row = input + i * stride;
          for (std::int64_t c = 0; c < kWidth; ++c) partial[c] = static_cast<Narrow>(partial[c] + row[c]);
        }
        for (std::int64_t c = 0; c < kWidth; ++c) sums[c] = combiner.next(sums[c], Accumulator{partial[c]});
      }
    } else {
      const T* row = input;
      for (std::int64_t left = rows - 1; left > 0; --left) {
        row += stride;
        for (std::int64_t c = 0; c < kWidth; ++c) sums[c] = combiner.next(sums[c], row[c]);
      }
    }
    for (std::int64_t c = 0; c < kWidth; ++c) output[c] = sums[c];
  }

  void columns(const T* input, std::int64_t stride, std::int64_t rows, std::int64_t count, Accumulator* output) const {
    std::int64_t c = 0;
    for (; c + 64 <= count; c += 64) block<64>(input + c, stride, rows, output + c);
    for (; c + 16 <= count; c += 16) block<16>(input + c, stride, rows, output + c);
    for (; c + 4 <= count; c += 4) block<4>(input + c, stride, rows, output + c);
    for (; c < count; ++c) block<1>(input + c, stride, rows, output + c);
  }

  // Rows that follow each other without gaps and are shorter than vectors: as many of them as make a whole number of
  // vectors are taken for one row, whose accumulators are combined in the end. Returns how many rows have been done.
  std::int64_t short_rows(const T* input, std::int64_t rows, std::int64_t count, Accumulator* output) const {
    constexpr std::int64_t kWidth = 64, kFewestTurns = 4;
    if constexpr (is_in_any_order<Combiner>()) {
      const std::int64_t together = kWidth / std::gcd(count, kWidth), length = together * count;
      const std::int64_t turns = rows / together;
      if (count >= kWidth || count % 16 == 0 || turns < kFewestTurns) return 0;
      Accumulator sums[kWidth * kWidth];
      Folding{combiner, true}.columns(input, length, turns, length, sums);
      for (std::int64_t r = 0; r < together; ++r) {
        for (std::int64_t c = 0; c < count; ++c) {
          const Accumulator sum = sums[r * count + c];
          output[c] = first && r == 0 ? sum : combiner.next(output[c], sum);
        }
      }
      return turns * together;
    }
    return 0;
  }

  // All rows into one row of `count` accumulators.
  void down(const T* input, std::int64_t stride, std::int64_t rows, std::int64_t count, Accumulator* output) const {
    const std::int64_t done = stride == count ? short_rows(input, rows, count, output) : 0;
    if (done == rows) return;
    Folding{combiner, first && done == 0}.columns(input + done * stride, stride, rows - done, count, output);
  }

  // One row into one accumulator.
  void along(const T* row, std::int64_t length, Accumulator& output) const {
    constexpr std::int64_t kWidth = 64;
    if constexpr (requires { typename Combiner::Narrow; }) {
      if (length >= 2 * kWidth) {  // sums of columns first, which take fewer bits
        Accumulator sums[kWidth];
        Folding{combiner, true}.template block<kWidth>(row, kWidth, length / kWidth, sums);
        Accumulator sum = first ? Accumulator{} : output;
        for (const Accumulator part : sums) sum = combiner.next(sum, part);
        for (std::int64_t k = length / kWidth * kWidth; k < length; ++k) sum = combiner.next(sum, row[k]);
        output = sum;
        return;
      }
    }
    Accumulator sum = first ? combiner.start(row[0]) : combiner.next(output, row[0]);
    for (std::int64_t k = 1; k < length; ++k) sum = combiner.next(sum, row[k]);
    output = sum;
  }

  // Adds columns [0, columns), a multiple of four, of eight rows of floats to a vector of sums: four by four numbers
  // are turned over in registers, so that each sum adds in order.
  static void add_eight_rows(const float* row, std::int64_t stride, std::int64_t columns, float* sums) {
    using Half [[gnu::vector_size(16)]] = float;
    using Whole [[gnu::vector_size(32)]] = float;
    Whole total;
    std::memcpy(&total, sums, sizeof total);
    for (std::int64_t k = 0; k < columns; k += 4) {
      Whole rows[4];
      for (int r = 0; r < 4; ++r) {
        Half low, high;
        std::memcpy(&low, row + r * stride + k, sizeof low);
        std::memcpy(&high, row + (r + 4) * stride + k, sizeof high);
        rows[r] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
      }
      const Whole a = __builtin_shufflevector(rows[0], rows[2], 0, 8, 1, 9, 4, 12, 5, 13);
      const Whole b = __builtin_shufflevector(rows[0], rows[2], 2, 10, 3, 11, 6, 14, 7, 15);
      const Whole c = __builtin_shufflevector(rows[1], rows[3], 0, 8, 1, 9, 4, 12, 5, 13);
      const Whole d = __builtin_shufflevector(rows[1], rows[3], 2, 10, 3, 11, 6, 14, 7, 15);
      total += __builtin_shufflevector(a, c, 0, 8, 1, 9, 4, 12, 5, 13);
      total += __builtin_shufflevector(a, c, 2, 10, 3, 11, 6, 14, 7, 15);
      total += __builtin_shufflevector(b, d, 0, 8, 1, 9, 4, 12, 5, 13);
      total += __builtin_shufflevector(b, d, 2, 10, 3, 11, 6, 14, 7, 15);
    }
    std::memcpy(sums, &total, sizeof total);
  }

  // kTogether rows at a time, because in one row each step waits for the last.
  template <std::int64_t kTogether>
  void some_rows(const T* row, std::int64_t stride, std::int64_t length, Accumulator* to,
                 std::int64_t to_stride) const {
    Accumulator sums[kTogether];
    for (std::int64_t r = 0; r < kTogether; ++r) {
      const T x = row[r * stride];
      sums[r] = first ? combiner.start(x) : combiner.next(to[r * to_stride], x);
    }
    std::int64_t k = 1;
    if constexpr (is_float_sum<Combiner>()) {
      const std::int64_t columns = (length - k) / 4 * 4;
      for (std::int64_t r = 0; r < kTogether; r += 8) add_eight_rows(row + r * stride + k, stride, columns, sums + r);
      k += columns;
    }
    for (; k < length; ++k) {
      for (std::int64_t r = 0; r < kTogether; ++r) sums[r] = combiner.next(sums[r], row[r * stride + k]);
    }
    for (std::int64_t r = 0; r < kTogether; ++r) to[r * to_stride] = sums[r];
  }

  // Each of `rows` rows into one accumulator of its own.
  void across(const T* input, std::int64_t stride, std::int64_t rows, std::int64_t length, Accumulator* output,
              std::int64_t output_stride) const {
    constexpr std::int64_t kTogether = 8, kVectors = 32;  // elements that make row after row worthwhile
    std::int64_t i = 0;
    if (!is_in_any_order<Combiner>() || length < kVectors) {
      for (; i + kTogether <= rows; i += kTogether)
        some_rows<kTogether>(input + i * stride, stride, length, output + i * output_stride, output_stride);
    }
    for (; i < rows; ++i) along(input + i * stride, length, output[i * output_stride]);
  }
};

template <typename T, typename Accumulator, typename Combiner>
struct Reduction {
  const ReducePlan& plan;
  const Combiner& combiner;
  std::int64_t split_begin, split_end;

  struct Range {
    std::int64_t begin, end;
  };
  Range range_of(std::size_t d) const {
    if (static_cast<int>(d) == plan.split_dimension) return {split_begin, split_end};
    return {0, plan.dimensions[d].size};
  }

  // The last one or two dimensions.
  void innermost(std::size_t d, const T* input, Accumulator* output, bool first) const {
    const ReducePlan::Dimension& dimension = plan.dimensions[d];
    const Folding<T, Accumulator, Combiner> folding{combiner, first};
    const auto [begin, end] = range_of(d);
    const T* from = input + begin * dimension.input_stride;
    Accumulator* to = output + begin * dimension.output_stride;
    if (d + 1 == plan.dimensions.size()) {
      dimension.reduced ? folding.along(from, end - begin, *to) : folding.down(from, 0, 1, end - begin, to);
    } else if (dimension.reduced) {
      const auto [column, columns_end] = range_of(d + 1);
      folding.down(from + column, dimension.input_stride, end - begin, columns_end - column, to + column);
    } else {
      folding.across(from, dimension.input_stride, end - begin, plan.dimensions[d + 1].size, to,
                     dimension.output_stride);
    }
  }

  // `first`: all reduced indices so far are 0, so accumulators below are to be started rather than continued.
  void level(std::size_t d, const T* input, Accumulator* output, bool first) const {
    const std::size_t left = plan.dimensions.size() - d;
    const bool is_looped = left > 2;  // else all that is left is innermost
    const ReducePlan::Dimension& dimension = plan.dimensions[d];
    const Range range = is_looped ? range_of(d) : Range{0, 1};
    const auto each = [&](const auto& body) {
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        body(input + i * dimension.input_stride, output + i * dimension.output_stride,
             first && (i == 0 || !is_looped || !dimension.reduced));
      }
    };
    if (left > 3) return each([&](const T* from, Accumulator* to, bool starts) { level(d + 1, from, to, starts); });
    const std::size_t inner = is_looped ? d + 1 : d;
    in_vectors([&] { each([&](const T* from, Accumulator* to, bool starts) { innermost(inner, from, to, starts); }); });
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
