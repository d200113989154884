// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/softmax_bytes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"
#include "numeric/fixed_point_math.h"

namespace reef::kernels {

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#include "kernels/activation/softmax_bytes_body.h"
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"
#endif

namespace {

constexpr int kAccumulatorBits = 12;  // integer bits of sums of exponentials
constexpr std::int64_t kShortRow = 8;
constexpr std::int64_t kPairsWorthATable = 2000;  // rows; the table has 511

template <typename In>
In highest_of(const In* row, std::int64_t depth, [[maybe_unused]] bool in_vectors) {
#if defined(__x86_64__)
  if (in_vectors && depth >= 16) return avx2::highest_of(row, depth);
#endif
  In highest = row[0];
  for (std::int64_t c = 1; c < depth; ++c) highest = std::max(highest, row[c]);
  return highest;
}

template <typename In>
std::int64_t sum_of_terms(const In* row, std::int64_t depth, std::int32_t maximum, const SoftmaxByteTable& table,
                          [[maybe_unused]] bool in_vectors) {
  std::int64_t done = 0, sum = 0;
#if defined(__x86_64__)
  if (in_vectors) {
    sum = avx2::sum_terms(row, depth, maximum, table);
    done = depth - depth % 8;
  }
#endif
  for (; done < depth; ++done) sum += table.term[static_cast<std::size_t>(maximum - row[done])];
  return sum;
}

template <typename In, typename Out>
void results_of(const In* row, std::int64_t depth, std::int32_t maximum, const SoftmaxByteTable& table,
                std::int32_t reciprocal, int exponent, [[maybe_unused]] bool in_vectors, Out* out) {
  std::int64_t done = 0;
#if defined(__x86_64__)
  if (in_vectors) {
    avx2::scale_terms(row, depth, maximum, table, reciprocal, exponent, out);
    done = depth - depth % 8;
  }
#endif
  // All numbers are positive: rounding adds one half.
  const std::uint32_t half = exponent > 0 ? std::uint32_t{1} << (exponent - 1) : 0;
  for (; done < depth; ++done) {
    const std::uint64_t e =
        static_cast<std::uint32_t>(table.exponential[static_cast<std::size_t>(maximum - row[done])]);
    const auto product =
        static_cast<std::uint32_t>((e * static_cast<std::uint32_t>(reciprocal) + (std::uint64_t{1} << 30)) >> 31);
    const std::int64_t result = std::int64_t{(product + half) >> exponent} + std::numeric_limits<Out>::min();
    out[done] = static_cast<Out>(std::min<std::int64_t>(result, std::numeric_limits<Out>::max()));
  }
}

template <typename In, typename Out>
bool softmax_row(const In* in, std::int64_t depth, const SoftmaxByteTable& table, bool in_vectors, Out* out) {
  const std::int32_t maximum = highest_of(in, depth, in_vectors);
  const std::int64_t sum = sum_of_terms(in, depth, maximum, table, in_vectors);
  if (sum > std::numeric_limits<std::int32_t>::max()) return false;
  const numeric::Reciprocal reciprocal = numeric::reciprocal_of(static_cast<std::int32_t>(sum), kAccumulatorBits);
  const int exponent = std::clamp(reciprocal.bits_over_unit + 31 - 8 * static_cast<int>(sizeof(Out)), 0, 31);
  results_of(in, depth, maximum, table, reciprocal.value.raw, exponent, in_vectors, out);
  return true;
}

// Rows of two elements, as classifiers of two classes have them at every pixel: what comes out depends on the
// difference of the two alone, so that the 511 possible rows are computed once and looked up.
template <typename In, typename Out>
void softmax_pairs(const In* input, Rows rows, const SoftmaxByteTable& table, Out* output) {
  constexpr int kMost = 255;
  constexpr int kLowest = std::numeric_limits<In>::min(), kHighest = std::numeric_limits<In>::max();
  note_kernel(active_target());
  std::array<std::array<Out, 2>, 2 * kMost + 1> results;
  for (int difference = -kMost; difference <= kMost; ++difference) {
    const In row[2] = {static_cast<In>(difference > 0 ? kHighest : kHighest + difference),
                       static_cast<In>(difference > 0 ? kHighest - difference : kHighest)};
    static_assert(kHighest - kLowest == kMost);
    softmax_row(row, 2, table, false, results[static_cast<std::size_t>(difference + kMost)].data());
  }
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const In* const in = input + 2 * r;
    const auto at = static_cast<std::size_t>(in[0] - in[1] + kMost);
    std::copy_n(results[at].data(), 2, output + 2 * r);
  }
}

}  // namespace

SoftmaxByteTable::SoftmaxByteTable(const DifferenceScaling& scaling) {
  using Difference = numeric::Fixed<std::int32_t, 5>;
  for (std::int32_t below = 0; below < 256 && -below >= scaling.minimum; ++below) {
    const std::int32_t scaled = numeric::saturating_rounding_doubling_high_mul(
        numeric::wrapping_shift_left(-below, scaling.left_shift), scaling.multiplier);
    const auto e = numeric::exp_on_negative_values(Difference{scaled});
    exponential[static_cast<std::size_t>(below)] = e.raw;
    term[static_cast<std::size_t>(below)] = numeric::rescale<kAccumulatorBits>(e).raw;
  }
}

template <typename In, typename Out>
bool softmax_bytes(const In* input, Rows rows, const SoftmaxByteTable& table, Out* output) {
  if (rows.depth == 2 && rows.end - rows.begin >= kPairsWorthATable) {
    softmax_pairs(input, rows, table, output);
    return true;  // two terms never overflow
  }
  const bool in_vectors = rows.depth >= kShortRow && runs_in(SimdTarget::kAvx2);
  bool fits = true;
  for (std::int64_t r = rows.begin; r < rows.end && rows.depth > 0; ++r) {
    fits &= softmax_row(input + r * rows.depth, rows.depth, table, in_vectors, output + r * rows.depth);
  }
  return fits;
}
template bool softmax_bytes(const std::int8_t*, Rows, const SoftmaxByteTable&, std::int8_t*);
template bool softmax_bytes(const std::int8_t*, Rows, const SoftmaxByteTable&, std::int16_t*);
template bool softmax_bytes(const std::uint8_t*, Rows, const SoftmaxByteTable&, std::uint8_t*);
template bool softmax_bytes(const std::uint8_t*, Rows, const SoftmaxByteTable&, std::int16_t*);

}  // namespace reef::kernels
