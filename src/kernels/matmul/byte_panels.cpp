// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/byte_panels.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "numeric/fixed_point.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace reef::kernels {
#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#define REEF_VNNI 0
#define REEF_TILE_ROWS(vectors) ((vectors) == 1 ? 8 : 5)
#include "kernels/matmul/byte_panels_body.h"
#undef REEF_VNNI
#undef REEF_TILE_ROWS
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#define REEF_VNNI 1
#define REEF_TILE_ROWS(vectors) ((vectors) <= 2 ? 12 : (vectors) == 3 ? 8 : 6)
#include "kernels/matmul/byte_panels_body.h"
#undef REEF_VNNI
#undef REEF_TILE_ROWS
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"

namespace {

constexpr std::int64_t kRowBytes = 24 << 10;  // of rows that stay in the first cache while panels pass by
constexpr std::int64_t kRowSlack = 32;        // elements that loading may write beyond the last row
constexpr std::int64_t kMostRows = 96;
constexpr std::int64_t kFewestRows = 12;
constexpr std::size_t kKeptElements = 64 << 10;  // of rows that are kept though far fewer are needed

template <typename Work, typename RowElement, typename T>
void convolve_with(const ConvShape& s, const T* input, std::int32_t input_zero_point, const BytePanels& weights,
                   std::int64_t group, const ByteScaling& scaling, std::int64_t pixel_begin, std::int64_t pixel_end,
                   std::int64_t panel_begin, std::int64_t panel_end, T* output,
                   void (*multiply_panel)(const Work&, std::int64_t, std::int64_t),
                   void (*load_rows)(const ConvShape&, const T*, std::int32_t, std::int64_t, std::int64_t, std::int64_t,
                                     RowElement*, std::int64_t, std::int32_t*)) {
  const std::int64_t stride = weights.padded_depth();
  const std::int64_t fitting = kRowBytes / (stride * static_cast<std::int64_t>(sizeof(RowElement)));
  const std::int64_t together =
      std::min(std::clamp(fitting / kFewestRows * kFewestRows, kFewestRows, kMostRows), pixel_end - pixel_begin);
  // Kept from call to call: small layers would spend more time on memory than on products.
  static thread_local AlignedVector<RowElement> rows;
  static thread_local std::vector<std::int32_t> row_terms;
  const auto needed = static_cast<std::size_t>(together * stride + kRowSlack);
  if (rows.size() < needed || rows.size() > 4 * needed + kKeptElements) rows = AlignedVector<RowElement>(needed);
  row_terms.resize(static_cast<std::size_t>(weights.zero_point == 0 ? 0 : together));
  for (std::int64_t pixel = pixel_begin; pixel < pixel_end; pixel += together) {
    const std::int64_t count = std::min(together, pixel_end - pixel);
    load_rows(s, input, input_zero_point, group, pixel, count, rows.data(), stride,
              row_terms.empty() ? nullptr : row_terms.data());
    for (std::int32_t& term : row_terms) term = numeric::wrapping_mul(term, -weights.zero_point);
    for (std::int64_t p = panel_begin; p < panel_end; ++p) {
      const std::int64_t in_group = p * weights.panel_columns, channel = group * weights.columns + in_group;
      const Work work{rows.data(),
                      stride,
                      stride / weights.group,
                      row_terms.empty() ? nullptr : row_terms.data(),
                      weights.panel(group, p),
                      &scaling,
                      channel,
                      std::min(weights.panel_columns, weights.columns - in_group),
                      reinterpret_cast<std::uint8_t*>(output + pixel * s.output_channels + channel),
                      s.output_channels,
                      std::is_signed_v<T>};
      multiply_panel(work, weights.width(p) / weights.lanes, count);
    }
  }
}

}  // namespace
#endif

bool has_byte_panels() { return active_target() != SimdTarget::kBaseline; }

BytePanels::BytePanels(std::int64_t matrix_count, std::int64_t column_count, std::int64_t row_count)
    : target(active_target()), matrices(matrix_count), columns(column_count), depth(row_count) {
  group = target == SimdTarget::kAvx512 ? 4 : 2;
  panel_columns = target == SimdTarget::kAvx512 ? 4 * lanes : 2 * lanes;
  values.resize(static_cast<std::size_t>(matrices * padded_columns() * padded_depth()));
  sums.resize(static_cast<std::size_t>(matrices * columns));
  magnitudes.resize(sums.size());
}

void BytePanels::set_column(std::int64_t matrix, std::int64_t column, const std::int8_t* from) {
  const std::int64_t index = column / panel_columns, step = width(index) * group;
  std::int8_t* to = values.data() + (matrix * padded_columns() + index * panel_columns) * padded_depth() +
                    column % panel_columns * group;
  std::uint32_t sum = 0;
  std::int64_t magnitude = 0;
  for (std::int64_t k = 0; k < depth; ++k) {
    to[k / group * step + k % group] = from[k];
    magnitude += std::abs(from[k] - zero_point);
    sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(from[k]));
  }
  sums[static_cast<std::size_t>(matrix * columns + column)] = static_cast<std::int32_t>(sum);
  magnitudes[static_cast<std::size_t>(matrix * columns + column)] = static_cast<float>(magnitude);
}

template <typename T>
ByteScaling byte_scaling(const BytePanels& weights, const std::shared_ptr<const Requantizer>& exact,
                         const std::int64_t* bias, std::int32_t input_zero_point) {
  const std::int64_t channels = weights.matrices * weights.columns;
  // What a zero counts as in the rows.
  const std::int32_t row_zero =
      weights.target == SimdTarget::kAvx512 ? input_zero_point + (std::is_signed_v<T> ? 128 : 0) : 0;
  const std::int32_t of_zeros = numeric::wrapping_mul(
      numeric::wrapping_mul(static_cast<std::int32_t>(weights.depth), row_zero), weights.zero_point);
  std::vector<ChannelSums> sums;
  for (std::int64_t i = 0; i < channels; ++i) {
    const auto c = static_cast<std::size_t>(i);
    const auto added = static_cast<std::int32_t>(bias != nullptr ? bias[i] : 0);
    const std::int32_t start =
        numeric::wrapping_add(numeric::wrapping_sub(added, numeric::wrapping_mul(row_zero, weights.sums[c])), of_zeros);
    sums.push_back(
        {start, 255.0 * static_cast<double>(weights.magnitudes[c]) + std::abs(static_cast<double>(added)), i, i});
  }
  // Vectors of the last panel may read beyond the last channel.
  return make_byte_scaling(exact, sums, channels + weights.panel_columns);
}

template <typename T>
void convolve_bytes([[maybe_unused]] const ConvShape& s, [[maybe_unused]] const T* input,
                    [[maybe_unused]] std::int32_t input_zero_point, [[maybe_unused]] const BytePanels& weights,
                    [[maybe_unused]] std::int64_t group, [[maybe_unused]] const ByteScaling& scaling,
                    [[maybe_unused]] std::int64_t pixel_begin, [[maybe_unused]] std::int64_t pixel_end,
                    [[maybe_unused]] std::int64_t panel_begin, [[maybe_unused]] std::int64_t panel_end,
                    [[maybe_unused]] T* output) {
#if defined(__x86_64__)
  if (weights.target == SimdTarget::kAvx512) {
    convolve_with<avx512::TileWork, avx512::RowElement, T>(s, input, input_zero_point, weights, group, scaling,
                                                           pixel_begin, pixel_end, panel_begin, panel_end, output,
                                                           &avx512::multiply_panel, &avx512::load_rows<T>);
  } else {
    convolve_with<avx2::TileWork, avx2::RowElement, T>(s, input, input_zero_point, weights, group, scaling, pixel_begin,
                                                       pixel_end, panel_begin, panel_end, output, &avx2::multiply_panel,
                                                       &avx2::load_rows<T>);
  }
#endif
}

#define REEF_BYTE_PANELS(T)                                                                                  \
  template ByteScaling byte_scaling<T>(const BytePanels&, const std::shared_ptr<const Requantizer>&,         \
                                       const std::int64_t*, std::int32_t);                                   \
  template void convolve_bytes<T>(const ConvShape&, const T*, std::int32_t, const BytePanels&, std::int64_t, \
                                  const ByteScaling&, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*);
REEF_BYTE_PANELS(std::int8_t)
REEF_BYTE_PANELS(std::uint8_t)
#undef REEF_BYTE_PANELS

}  // namespace reef::kernels
