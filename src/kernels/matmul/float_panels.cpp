// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/float_panels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/conv/window_rows.h"
#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"

#define REEF_BODY "kernels/matmul/float_panels_body.h"

namespace reef::kernels {
#define REEF_LANES 4
#define REEF_TILE_VECTORS 2
#define REEF_TILE_ROWS(vectors) ((vectors) == 1 ? 8 : 5)
namespace baseline {
#include "kernels/simd/float_forms_body.h"
}
#undef REEF_LANES
#undef REEF_TILE_VECTORS
#undef REEF_TILE_ROWS

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
#define REEF_LANES 8
#define REEF_TILE_VECTORS 2
#define REEF_TILE_ROWS(vectors) ((vectors) == 1 ? 8 : 6)
namespace avx2 {
#include "kernels/simd/float_forms_body.h"
}
#undef REEF_LANES
#undef REEF_TILE_VECTORS
#undef REEF_TILE_ROWS
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
// AMD: vectors of 32 bytes in 32 registers. A value broadcast into 64 bytes takes a Zen 4 core's multiplier for a
// cycle, into 32 bytes it takes nothing (45 and 56 GMAC/s, measured).
#define REEF_LANES 8
#define REEF_TILE_VECTORS 4
#define REEF_TILE_ROWS(vectors) ((vectors) <= 2 ? 12 : (vectors) == 3 ? 8 : 6)
namespace avx512 {
#include "kernels/simd/float_forms_body.h"
}
#undef REEF_LANES
#undef REEF_TILE_VECTORS
#undef REEF_TILE_ROWS

// Cores that add and multiply as many vectors of 64 bytes a cycle as of 32: Intel's, and AMD's from Zen 5 on (16
// instead of 8 products a cycle; 137 and 69 GMAC/s, measured).
#define REEF_LANES 16
#define REEF_TILE_VECTORS 2
#define REEF_TILE_ROWS(vectors) 12
namespace avx512_wide {
#include "kernels/simd/float_forms_body.h"
}
#undef REEF_LANES
#undef REEF_TILE_VECTORS
#undef REEF_TILE_ROWS
#include "kernels/simd/end_target.h"
#endif

namespace {

constexpr std::int64_t kRowsTogether = 48;   // windows whose operands stay in the cache while panels pass by
constexpr std::int64_t kFewChannels = 4;     // windows over fewer are gathered
constexpr std::int64_t kWidestPanel = 32;    // columns
constexpr std::int64_t kPanelsTogether = 4;  // for a single row

template <typename Work>
void convolve_with(const ConvShape& s, const float* input, const FloatPanels& weights, std::int64_t matrix,
                   std::int64_t group, const FloatOutput& finish, std::int64_t pixel_begin, std::int64_t pixel_end,
                   std::int64_t panel_begin, std::int64_t panel_end, float* output,
                   void (*multiply_panel)(const Work&, std::int64_t, std::int64_t),
                   void (*multiply_row)(const Work&, std::int64_t)) {
  const std::int64_t together = std::min(kRowsTogether, pixel_end - pixel_begin);
  static thread_local WindowMemory<float> memory;
  WindowRows<float> rows(s, input, 0.0f, kFewChannels, together, memory);
  for (std::int64_t pixel = pixel_begin; pixel < pixel_end; pixel += together) {
    const std::int64_t count = std::min(together, pixel_end - pixel);
    rows.load(pixel, count, group);
    std::int64_t panels = 1;  // at a time
    for (std::int64_t p = panel_begin; p < panel_end; p += panels) {
      const std::int64_t in_group = p * weights.panel_columns;
      const bool has_more =
          p + kPanelsTogether <= panel_end && in_group + kPanelsTogether * weights.panel_columns <= weights.columns;
      panels = count == 1 && has_more ? kPanelsTogether : 1;
      const std::int64_t columns = std::min(panels * weights.panel_columns, weights.columns - in_group);
      const std::int64_t channel = group * weights.columns + in_group;
      alignas(64) float bias[kPanelsTogether * kWidestPanel];
      std::fill_n(bias, panels * weights.panel_columns, 0.0f);
      if (finish.bias != nullptr)
        std::memcpy(bias, finish.bias + channel, static_cast<std::size_t>(columns) * sizeof(float));
      const Work work{rows.rows(),
                      rows.row_capacity(),
                      rows.runs(),
                      rows.length(),
                      weights.panel(matrix, p),
                      bias,
                      finish.lowest,
                      finish.highest,
                      output + pixel * s.output_channels + channel,
                      s.output_channels,
                      columns};
      if (panels > 1) {
        multiply_row(work, weights.panel_columns * weights.depth);
      } else {
        multiply_panel(work, weights.width(p) / weights.lanes, count);
      }
    }
  }
}

#if defined(__x86_64__)
// Nanoseconds that a tile of 12 rows by 32 columns takes, all of it in the nearest cache. The least of a few times:
// others only add to it.
template <typename Work>
double time_of_tile(void (*multiply_panel)(const Work&, std::int64_t, std::int64_t), std::int64_t vectors) {
  constexpr std::int64_t kRows = 12, kDepth = 128, kTimes = 5;
  alignas(64) static thread_local float operands[kDepth * kWidestPanel];  // zeros: no value is slower than another
  alignas(64) float results[kRows * kWidestPanel];
  const float* rows[kRows];
  std::fill_n(rows, kRows, operands);
  const Work work{rows, kRows, 1, kDepth, operands, operands, 0, 0, results, kWidestPanel, kWidestPanel};
  double least = std::numeric_limits<double>::max();
  for (std::int64_t i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    multiply_panel(work, vectors, kRows);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    least = std::min(least, time.count());
  }
  return least;
}

// Whether this CPU is faster with vectors of 64 bytes. Names of CPUs do not tell (there are Zen 5 cores of both kinds),
// and virtual machines hide the flag that does, so that it is measured, once in a process and in some 10 microseconds.
// Intel's older cores slow down for some time when they meet the first such vector: there the answer is known. Results
// have the same bits either way.
bool is_faster_wide() {
  static const bool answer = [] {
    if (__builtin_cpu_is("intel") != 0) return true;
    const auto narrow = [] { return time_of_tile(&avx512::rounded::multiply_panel, 4); };
    const auto wide = [] { return time_of_tile(&avx512_wide::rounded::multiply_panel, 2); };
    narrow();
    return std::min(wide(), wide()) < 0.9 * std::min(narrow(), narrow());
  }();
  return answer;
}
#endif

// The fastest of float_vector_lanes(target) for `columns` columns.
std::int64_t fastest_lanes(SimdTarget target, [[maybe_unused]] std::int64_t columns) {
  const std::vector<std::int64_t> all = float_vector_lanes(target);
#if defined(__x86_64__)
  if (all.size() > 1 && columns > all.front() && is_faster_wide()) return all.back();
#endif
  return all.front();
}

}  // namespace

std::vector<std::int64_t> float_vector_lanes([[maybe_unused]] SimdTarget target) {
#if defined(__x86_64__)
  if (target == SimdTarget::kAvx512) return {8, 16};
  if (includes(target, SimdTarget::kAvx2)) return {8};
#endif
  return {4};
}

FloatPanels::FloatPanels(std::int64_t matrix_count, std::int64_t column_count, std::int64_t row_count,
                         std::int64_t vector_lanes)
    : matrices(matrix_count), columns(column_count), depth(row_count) {
  target = active_target();
  lanes = vector_lanes != 0 ? vector_lanes : fastest_lanes(target, columns);
  panel_columns = target == SimdTarget::kAvx512 ? kWidestPanel : 2 * lanes;
  values.resize(static_cast<std::size_t>(matrices * padded_columns() * depth));
}

void FloatPanels::set_column(std::int64_t matrix, std::int64_t column, const float* from, std::int64_t stride) {
  const std::int64_t index = column / panel_columns, step = width(index);
  float* to = values.data() + (matrix * padded_columns() + index * panel_columns) * depth + column % panel_columns;
  for (std::int64_t k = 0; k < depth; ++k) {
    to[k * step] = from[k * stride];
    finite = finite && std::isfinite(from[k * stride]);
  }
}

namespace {

void convolve_matrix(const ConvShape& s, const float* input, const FloatPanels& weights, std::int64_t matrix,
                     std::int64_t group, const FloatOutput& finish, std::int64_t pixel_begin, std::int64_t pixel_end,
                     std::int64_t panel_begin, std::int64_t panel_end, float* output) {
  constexpr std::int64_t kTogether = kPanelsTogether;
  note_kernel(weights.target);
  const auto run = [&](auto* multiply_panel, auto* multiply_row) {
    convolve_with(s, input, weights, matrix, group, finish, pixel_begin, pixel_end, panel_begin, panel_end, output,
                  multiply_panel, multiply_row);
  };
#if defined(__x86_64__)
  if (weights.target == SimdTarget::kAvx512 && weights.lanes == 16) {
    if (finish.may_fuse) return run(&avx512_wide::fused::multiply_panel, &avx512_wide::fused::multiply_row<kTogether>);
    return run(&avx512_wide::rounded::multiply_panel, &avx512_wide::rounded::multiply_row<kTogether>);
  }
  if (weights.target == SimdTarget::kAvx512) {
    if (finish.may_fuse) return run(&avx512::fused::multiply_panel, &avx512::fused::multiply_row<kTogether>);
    return run(&avx512::rounded::multiply_panel, &avx512::rounded::multiply_row<kTogether>);
  }
  if (includes(weights.target, SimdTarget::kAvx2)) {
    if (finish.may_fuse) return run(&avx2::fused::multiply_panel, &avx2::fused::multiply_row<kTogether>);
    return run(&avx2::rounded::multiply_panel, &avx2::rounded::multiply_row<kTogether>);
  }
#elif defined(__aarch64__)
  if (finish.may_fuse) return run(&baseline::fused::multiply_panel, &baseline::fused::multiply_row<kTogether>);
#endif
  run(&baseline::rounded::multiply_panel, &baseline::rounded::multiply_row<kTogether>);
}

}  // namespace

void convolve_panels(const ConvShape& s, const float* input, const FloatPanels& weights, std::int64_t group,
                     const FloatOutput& finish, std::int64_t pixel_begin, std::int64_t pixel_end,
                     std::int64_t panel_begin, std::int64_t panel_end, float* output) {
  convolve_matrix(s, input, weights, group, group, finish, pixel_begin, pixel_end, panel_begin, panel_end, output);
}

void multiply_panels(const ConvShape& s, const float* x, const FloatPanels& weights, std::int64_t matrix,
                     const FloatOutput& finish, std::int64_t row_begin, std::int64_t row_end, float* output) {
  convolve_matrix(s, x, weights, matrix, 0, finish, row_begin, row_end, 0, weights.panels(), output);
}

}  // namespace reef::kernels
