// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/byte_panels.h"

#include <bit>
#include <cstring>
#include <iterator>
#include <numeric>
#include <type_traits>

#include "kernels/simd/loops.h"
#include "kernels/simd/trace.h"
#include "numeric/fixed_point.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define REEF_HAS_TILES 1
#elif defined(__aarch64__)
#include <arm_neon.h>
#define REEF_HAS_TILES 1
#else
#define REEF_HAS_TILES 0
#endif

namespace reef::kernels {
#if defined(__x86_64__)
#define REEF_BODY "kernels/matmul/byte_panels_of_pairs_body.h"
#include "kernels/simd/in_sse4_and_avx2.h"

#include "kernels/simd/begin_avxvnni.h"
namespace avxvnni {
namespace {
#define REEF_VNNI 0
#define REEF_BYTE_ROWS 1
#define REEF_DOTS 1
#include "kernels/matmul/byte_panels_body.h"
#undef REEF_DOTS

#include "kernels/matmul/byte_rows_body.h"
#undef REEF_BYTE_ROWS
#undef REEF_VNNI
}  // namespace
}  // namespace avxvnni
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#define REEF_VNNI 1
#define REEF_BYTE_ROWS 1
#include "kernels/matmul/byte_tiles_body.h"

#include "kernels/matmul/byte_rows_body.h"
#undef REEF_BYTE_ROWS
#undef REEF_VNNI
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#elif defined(__aarch64__)
#define REEF_VNNI 0
#include "kernels/simd/begin_neon.h"
namespace neon {
namespace {
#define REEF_DOTPROD 0
#include "kernels/matmul/byte_tiles_neon_body.h"

#include "kernels/matmul/byte_rows_body.h"
#undef REEF_DOTPROD
}  // namespace
}  // namespace neon
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_dotprod.h"
namespace dotprod {
namespace {
#define REEF_DOTPROD 1
#include "kernels/matmul/byte_tiles_neon_body.h"

#include "kernels/matmul/byte_rows_body.h"
#undef REEF_DOTPROD
}  // namespace
}  // namespace dotprod
#include "kernels/simd/end_target.h"
#undef REEF_VNNI
#endif

#if REEF_HAS_TILES
namespace {

constexpr std::int64_t kRowBytes = 24 << 10;    // of rows that stay in the first cache while panels pass by
constexpr std::int64_t kLineBytes = 192 << 10;  // of lines that stay in the second cache
constexpr std::int64_t kSlackElements = 64;     // that loading and reading may touch beyond the last one
constexpr std::int64_t kMostRows = 96;
constexpr std::int64_t kFewestRows = 12;
constexpr std::size_t kKeptElements = 64 << 10;  // of memory that is kept though far less is needed

// Whether windows are read from lines: they have no gaps but between lines.
bool reads_lines(const ConvShape& s) { return s.groups == 1 && s.x.dilation == 1 && !s.is_pointwise(); }

// Whether rows are the pixels as they lie in memory. What a row's last step reads beyond it belongs to the next one,
// and is multiplied by 0.
bool has_dense_rows(const ConvShape& s) { return s.groups == 1 && s.is_pointwise(); }

// One call of convolve_bytes on one target.
template <typename Work, typename RowElement, typename T>
struct Convolution {
  const ConvShape& s;
  const T* input;
  std::int32_t input_zero_point;
  const BytePanels& weights;
  std::int64_t group;
  const ByteScaling* scaling;
  std::int64_t panel_begin, panel_end;
  T* output;
  std::int32_t* sums;  // instead of `output`, of output pixel first_pixel; null: bytes are wanted
  std::int64_t first_pixel;
  void (*multiply_panel)(const Work&, std::int64_t, std::int64_t);
  void (*sum_panel)(const Work&, std::int64_t, std::int64_t);
  std::int64_t (*sum_row)(const Work&, std::int64_t);
  std::int64_t (*multiply_row)(const Work&, std::int64_t);
  void (*sum_rows)(const RowElement* const*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int32_t*);
  void (*load_rows)(const ConvShape&, const T*, std::int32_t, std::int64_t, std::int64_t, std::int64_t, RowElement*,
                    std::int64_t);
  void (*load_lines)(const ConvShape&, const T*, const T*, std::int32_t, std::int64_t, std::int64_t, RowElement*,
                     std::int64_t);

  // Kept from call to call: small layers would spend more time on memory than on products.
  static RowElement* memory(std::int64_t elements) {
    static thread_local AlignedVector<RowElement> kept;
    const auto needed = static_cast<std::size_t>(elements + kSlackElements);
    if (kept.size() < needed || kept.size() > 4 * needed + kKeptElements) kept = AlignedVector<RowElement>(needed);
    return kept.data();
  }

  // How many pixels' windows, of which each adds `bytes`, are multiplied by all panels before the next.
  static std::int64_t together(std::int64_t bytes) {
    return std::clamp(kRowBytes / std::max<std::int64_t>(bytes, 1) / kFewestRows * kFewestRows, kFewestRows, kMostRows);
  }

  // The same, where sums are wanted.
  void sum(const RowElement* const* starts, std::int64_t line_stride, std::int64_t pixel, std::int64_t count) const {
    const std::int64_t stride = weights.padded_columns();
    const std::int64_t whole = weights.columns / weights.panel_columns;
    for (std::int64_t p = 0; p < weights.panels();) {
      const Work work{starts,
                      weights.lines,
                      line_stride,
                      weights.line_steps(),
                      nullptr,
                      weights.panel(0, p),
                      nullptr,
                      p * weights.panel_columns,
                      weights.width(p),
                      weights.panel_slot(0, p),
                      nullptr,
                      0,
                      std::is_signed_v<T>,
                      {},
                      weights.has_lowest[static_cast<std::size_t>(p)] != 0,
                      sums + (pixel - first_pixel) * stride + p * weights.panel_columns,
                      stride,
                      nullptr,
                      0};
      const std::int64_t done = count == 1 ? sum_row(work, whole - p) : 0;
      if (done == 0) sum_panel(work, weights.width(p) / weights.lanes, count);
      p += std::max<std::int64_t>(done, 1);
    }
  }

  // All panels for `count` output pixels from `pixel` on, at most kMostRows.
  void multiply(const RowElement* const* starts, std::int64_t line_stride, std::int64_t pixel,
                std::int64_t count) const {
    if (sums != nullptr) return sum(starts, line_stride, pixel, count);
    std::int32_t row_sums[kMostRows], row_terms[kMostRows];
    bool has_sums = false;
    for (std::int64_t p = panel_begin; p < panel_end;) {
      const std::int64_t in_group = p * weights.panel_columns, channel = group * weights.columns + in_group;
      const std::int32_t zero_point = weights.zero_point(group, p);
      if (zero_point != 0) {
        if (!has_sums) sum_rows(starts, count, weights.lines, line_stride, weights.line_depth, row_sums);
        has_sums = true;
        for (std::int64_t i = 0; i < count; ++i) row_terms[i] = numeric::wrapping_mul(row_sums[i], -zero_point);
      }
      const Work work{starts,
                      weights.lines,
                      line_stride,
                      weights.line_steps(),
                      zero_point != 0 ? row_terms : nullptr,
                      weights.panel(group, p),
                      scaling,
                      channel,
                      std::min(weights.panel_columns, weights.columns - in_group),
                      weights.panel_slot(group, p),
                      reinterpret_cast<std::uint8_t*>(output + pixel * s.output_channels + channel),
                      s.output_channels,
                      std::is_signed_v<T>,
                      weights.split(group, p),
                      weights.has_lowest[static_cast<std::size_t>(group * weights.panels() + p)] != 0,
                      nullptr,
                      0,
                      weights.few_columns(group),
                      weights.few_line()};
      const std::int64_t whole = std::min(panel_end, weights.columns / weights.panel_columns) - p;
      std::int64_t alike = 1;  // panels with the same zero point
      while (count == 1 && alike < whole && weights.zero_point(group, p + alike) == zero_point) ++alike;
      const std::int64_t done = alike > 1 ? multiply_row(work, alike) : 0;
      if (done == 0) multiply_panel(work, weights.width(p) / weights.lanes, count);
      p += std::max<std::int64_t>(done, 1);
    }
  }

  void from_rows(std::int64_t pixel_begin, std::int64_t pixel_end) const {
    const std::int64_t stride = has_dense_rows(s) ? s.input_channels : weights.padded_depth();
    const std::int64_t most =
        std::min(together(stride * static_cast<std::int64_t>(sizeof(RowElement))), pixel_end - pixel_begin);
    RowElement* const rows = memory(most * stride);
    const RowElement* starts[kMostRows];
    for (std::int64_t i = 0; i < most; ++i) starts[i] = rows + i * stride;
    for (std::int64_t pixel = pixel_begin; pixel < pixel_end; pixel += most) {
      const std::int64_t count = std::min(most, pixel_end - pixel);
      load_rows(s, input, input_zero_point, group, pixel, count, rows, stride);
      multiply(starts, 0, pixel, count);
    }
  }

  // Pixels that are rows already.
  void from_pixels(std::int64_t pixel_begin, std::int64_t pixel_end) const {
    if constexpr (std::is_same_v<T, RowElement>) {
      const std::int64_t most = together(s.input_channels);
      const RowElement* starts[kMostRows];
      for (std::int64_t pixel = pixel_begin; pixel < pixel_end; pixel += most) {
        const std::int64_t count = std::min(most, pixel_end - pixel);
        for (std::int64_t i = 0; i < count; ++i) starts[i] = input + (pixel + i) * s.input_channels;
        multiply(starts, 0, pixel, count);
      }
    }
  }

  // Output pixels of one image that are within output rows whose lines fit.
  void from_lines(std::int64_t pixel_begin, std::int64_t pixel_end) const {
    const std::int64_t width = s.x.output, first_row = pixel_begin / width;
    const std::int64_t span = ((width - 1) * s.x.stride + s.x.window) * s.input_channels;
    const std::int64_t stride = (span + 15) / 16 * 16;
    const std::int64_t rows = (pixel_end - 1) / width - first_row + 1;
    const std::int64_t lines = (rows - 1) * s.y.stride + (s.y.window - 1) * s.y.dilation + 1;
    RowElement* const strip = memory(lines * stride);
    const T* const image = input + first_row / s.y.output * s.input_batch_size();
    load_lines(s, image, input + s.batches * s.input_batch_size(), input_zero_point, s.y.origin(first_row % s.y.output),
               lines, strip, stride);
    const std::int64_t pixel_step = s.x.stride * s.input_channels;
    const std::int64_t most = together(s.y.window * pixel_step * static_cast<std::int64_t>(sizeof(RowElement)));
    const RowElement* starts[kMostRows];
    std::int64_t row = 0, x = pixel_begin % width;
    for (std::int64_t pixel = pixel_begin; pixel < pixel_end; pixel += most) {
      const std::int64_t count = std::min(most, pixel_end - pixel);
      for (std::int64_t i = 0; i < count; ++i) {
        starts[i] = strip + row * s.y.stride * stride + x * pixel_step;
        if (++x == width) x = 0, ++row;
      }
      multiply(starts, s.y.dilation * stride, pixel, count);
    }
  }

  // How many output rows' lines are kept at a time.
  std::int64_t rows_of_lines() const {
    const std::int64_t line =
        ((s.x.output - 1) * s.x.stride + s.x.window) * s.input_channels * static_cast<std::int64_t>(sizeof(RowElement));
    const std::int64_t lines = kLineBytes / std::max<std::int64_t>(line, 1);
    return std::max<std::int64_t>((lines - (s.y.window - 1) * s.y.dilation - 1) / s.y.stride + 1, 1);
  }

  void run(std::int64_t pixel_begin, std::int64_t pixel_end) const {
    if (reads_lines(s)) {
      const std::int64_t together = rows_of_lines(), width = s.x.output;
      while (pixel_begin < pixel_end) {
        const std::int64_t row = pixel_begin / width;
        const std::int64_t rows_end = std::min(row + together, (row / s.y.output + 1) * s.y.output);
        const std::int64_t end = std::min(rows_end * width, pixel_end);
        from_lines(pixel_begin, end);
        pixel_begin = end;
      }
    } else if (std::is_same_v<T, RowElement> && s.is_pointwise() && s.groups == 1 &&
               s.input_channels == weights.padded_depth()) {
      from_pixels(pixel_begin, pixel_end);
    } else {
      from_rows(pixel_begin, pixel_end);
    }
  }
};

}  // namespace
#endif

bool has_byte_panels() { return active_target() != SimdTarget::kBaseline; }

BytePanels::BytePanels(const ConvShape& s) : target(active_target()), matrices(s.groups), columns(s.group_outputs()) {
#if REEF_HAS_TILES
  lines = reads_lines(s) ? s.y.window : 1;
#endif
  line_depth = s.depth() / lines;
  const bool is_vnni = target == SimdTarget::kAvxVnni || target == SimdTarget::kAvx512;
  group = is_vnni || target == SimdTarget::kDotprod ? 4 : 2;
  lanes = target == SimdTarget::kSse4 ? 4 : 8;
  panel_columns = target == SimdTarget::kAvx512 ? 4 * lanes : 2 * lanes;
  in_turn = target == SimdTarget::kSse4 || target == SimdTarget::kAvx2 || target == SimdTarget::kAvxVnni;
}

namespace {

// Bytes into `output` or, where that is null, sums.
template <typename T>
void run_panels([[maybe_unused]] const ConvShape& s, [[maybe_unused]] const T* input,
                [[maybe_unused]] std::int32_t input_zero_point, [[maybe_unused]] const BytePanels& weights,
                [[maybe_unused]] std::int64_t group, [[maybe_unused]] const ByteScaling* scaling,
                [[maybe_unused]] std::int64_t pixel_begin, [[maybe_unused]] std::int64_t pixel_end,
                [[maybe_unused]] std::int64_t panel_begin, [[maybe_unused]] std::int64_t panel_end,
                [[maybe_unused]] T* output, [[maybe_unused]] std::int32_t* sums) {
#if REEF_HAS_TILES
  if (pixel_begin >= pixel_end) return;
  note_kernel(weights.target);
  const auto run_with = [&]<typename Work, typename RowElement>(
                            void (*multiply_panel)(const Work&, std::int64_t, std::int64_t), auto sum_panel,
                            auto sum_row, auto multiply_row, auto sum_rows,
                            void (*load_rows)(const ConvShape&, const T*, std::int32_t, std::int64_t, std::int64_t,
                                              std::int64_t, RowElement*, std::int64_t),
                            auto load_lines) {
    const Convolution<Work, RowElement, T> work{
        s,    input,       input_zero_point, weights,   group,   scaling,      panel_begin, panel_end, output,
        sums, pixel_begin, multiply_panel,   sum_panel, sum_row, multiply_row, sum_rows,    load_rows, load_lines};
    work.run(pixel_begin, pixel_end);
  };
#define REEF_RUN_WITH(target)                                                                                       \
  run_with(&target::multiply_panel, &target::sum_panel, &target::sum_row, &target::multiply_row, &target::sum_rows, \
           &target::load_rows<T>, &target::load_lines<T>)
#if defined(__x86_64__)
  if (weights.target == SimdTarget::kAvx512) {
    REEF_RUN_WITH(avx512);
  } else if (weights.target == SimdTarget::kAvxVnni) {
    REEF_RUN_WITH(avxvnni);
  } else if (weights.target == SimdTarget::kAvx2) {
    weights.block_steps != 0 ? REEF_RUN_WITH(avx2::split) : REEF_RUN_WITH(avx2);
  } else {
    weights.block_steps != 0 ? REEF_RUN_WITH(sse4::split) : REEF_RUN_WITH(sse4);
  }
#else
  weights.target == SimdTarget::kDotprod ? REEF_RUN_WITH(dotprod) : REEF_RUN_WITH(neon);
#endif
#undef REEF_RUN_WITH
#endif
}

}  // namespace

template <typename T>
void convolve_bytes(const ConvShape& s, const T* input, std::int32_t input_zero_point, const BytePanels& weights,
                    std::int64_t group, const ByteScaling& scaling, std::int64_t pixel_begin, std::int64_t pixel_end,
                    std::int64_t panel_begin, std::int64_t panel_end, T* output) {
  run_panels<T>(s, input, input_zero_point, weights, group, &scaling, pixel_begin, pixel_end, panel_begin, panel_end,
                output, nullptr);
}

template <typename T>
void convolve_sums(const ConvShape& s, const T* input, std::int32_t input_zero_point, const BytePanels& weights,
                   std::int64_t pixel_begin, std::int64_t pixel_end, std::int32_t* sums) {
  run_panels<T>(s, input, input_zero_point, weights, 0, nullptr, pixel_begin, pixel_end, 0, weights.panels(), nullptr,
                sums);
  const std::int32_t zero = zero_in_rows<T>(weights, input_zero_point);
  if (zero == 0) return;
  in_vectors([&] {
    for (std::int64_t i = 0; i < pixel_end - pixel_begin; ++i) {
      std::int32_t* const row = sums + i * weights.padded_columns();
      for (std::int64_t c = 0; c < weights.columns; ++c)
        row[c] = numeric::wrapping_sub(row[c], numeric::wrapping_mul(zero, weights.sums[static_cast<std::size_t>(c)]));
    }
  });
}

#define REEF_CONVOLVE_BYTES(T)                                                                               \
  template void convolve_bytes<T>(const ConvShape&, const T*, std::int32_t, const BytePanels&, std::int64_t, \
                                  const ByteScaling&, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*);
REEF_CONVOLVE_BYTES(std::int8_t)
REEF_CONVOLVE_BYTES(std::uint8_t)
#undef REEF_CONVOLVE_BYTES
template void convolve_sums<std::int8_t>(const ConvShape&, const std::int8_t*, std::int32_t, const BytePanels&,
                                         std::int64_t, std::int64_t, std::int32_t*);

}  // namespace reef::kernels
