// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/int_rows.h"

#include <algorithm>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"

namespace reef::kernels {

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#include "kernels/matmul/int_rows_body.h"
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#include "kernels/matmul/int_rows_wide_body.h"
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#endif

namespace {

using Row = const std::int16_t*;

struct Sums4 {
  std::int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
};

// One row with four. Separate sums rather than an array: compilers vectorize these.
Sums4 products_1x4(Row a, const Row (&b)[4], std::int64_t count) {
  const Row b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
  Sums4 s;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int32_t x = a[k];
    s.s0 += x * b0[k];
    s.s1 += x * b1[k];
    s.s2 += x * b2[k];
    s.s3 += x * b3[k];
  }
  return s;
}

// Two rows with four.
void products_2x4(Row a0, Row a1, const Row (&b)[4], std::int64_t count, Sums4& first, Sums4& second) {
  const Row b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
  std::int32_t s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int32_t x0 = a0[k], x1 = a1[k];
    s00 += x0 * b0[k];
    s01 += x0 * b1[k];
    s02 += x0 * b2[k];
    s03 += x0 * b3[k];
    s10 += x1 * b0[k];
    s11 += x1 * b1[k];
    s12 += x1 * b2[k];
    s13 += x1 * b3[k];
  }
  first = {s00, s01, s02, s03};
  second = {s10, s11, s12, s13};
}

void add(const Sums4& s, std::int64_t columns, std::int64_t* to) {
  const std::int32_t all[4] = {s.s0, s.s1, s.s2, s.s3};
  for (std::int64_t i = 0; i < columns; ++i) to[i] += all[i];
}

#if defined(__x86_64__)
// Each of 16 lanes may add up twice a run, so that sums which do not fit 32 bits are made of longer pieces.
void add_row_products_wide(const std::int16_t* a, std::int64_t a_stride, std::int64_t rows, const std::int16_t* b,
                           std::int64_t b_stride, std::int64_t columns, std::int64_t depth, std::int64_t run,
                           std::int64_t* sums, std::int64_t sums_stride) {
  const bool is_wide = depth > run;
  const std::int64_t piece = is_wide ? 16 * run : run;
  for (std::int64_t c = 0; c < columns; c += 4) {
    const std::int64_t width = std::min<std::int64_t>(4, columns - c);
    for (std::int64_t k = 0; k < depth; k += piece) {
      Row quad[4];  // beyond the last column the last one again, with the result dropped
      for (std::int64_t j = 0; j < 4; ++j) quad[j] = b + (c + std::min(j, width - 1)) * b_stride + k;
      avx512::add_products_of_rows(a + k, a_stride, rows, quad, width, std::min(piece, depth - k), is_wide, sums + c,
                                   sums_stride);
    }
  }
}
#endif

std::int64_t wide_product(Row a, Row b, std::int64_t count) {
  std::int64_t sum = 0;
  for (std::int64_t k = 0; k < count; ++k) sum += std::int64_t{a[k]} * b[k];
  return sum;
}

}  // namespace

void add_row_products(const std::int16_t* a, std::int64_t a_stride, std::int64_t rows, const std::int16_t* b,
                      std::int64_t b_stride, std::int64_t columns, std::int64_t depth, std::int64_t run,
                      std::int64_t* sums, std::int64_t sums_stride) {
  if (run == kRunOf16BitProducts) {
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const std::int64_t r = i / columns, c = i % columns;
      sums[r * sums_stride + c] += wide_product(a + r * a_stride, b + c * b_stride, depth);
    }
    return;
  }
#if defined(__x86_64__)
  if (runs_in(SimdTarget::kAvx512)) {
    return add_row_products_wide(a, a_stride, rows, b, b_stride, columns, depth, run, sums, sums_stride);
  }
#endif
  for (std::int64_t c = 0; c < columns; c += 4) {
    const std::int64_t width = std::min<std::int64_t>(4, columns - c);
    for (std::int64_t k = 0; k < depth; k += run) {
      const std::int64_t count = std::min(run, depth - k) / kRowPadding * kRowPadding;  // says that there is no tail
      Row quad[4];  // beyond the last column the last one again, with the result dropped
      for (std::int64_t j = 0; j < 4; ++j) quad[j] = b + (c + std::min(j, width - 1)) * b_stride + k;
#if defined(__x86_64__)
      if (runs_in(SimdTarget::kAvx2)) {
        for (std::int64_t r = 0; r < rows; r += 2) {
          std::int32_t products[2][4];
          avx2::products_of_rows(a + r * a_stride + k, a_stride, r + 1 < rows, quad, count, products);
          for (std::int64_t i = 0; i < std::min<std::int64_t>(2, rows - r); ++i) {
            for (std::int64_t j = 0; j < width; ++j) sums[(r + i) * sums_stride + c + j] += products[i][j];
          }
        }
        continue;
      }
#endif
      std::int64_t r = 0;
      for (; r + 2 <= rows; r += 2) {
        Sums4 first, second;
        products_2x4(a + r * a_stride + k, a + (r + 1) * a_stride + k, quad, count, first, second);
        add(first, width, sums + r * sums_stride + c);
        add(second, width, sums + (r + 1) * sums_stride + c);
      }
      if (r < rows) add(products_1x4(a + r * a_stride + k, quad, count), width, sums + r * sums_stride + c);
    }
  }
}

}  // namespace reef::kernels
