// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/float_panels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

// Intel: its cores add and multiply as many vectors of 64 bytes a cycle as of 32.
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

// Floats of a vector of the target's code.
std::int64_t lanes_of([[maybe_unused]] SimdTarget target) {
#if defined(__x86_64__)
  static const bool is_intel = __builtin_cpu_is("intel") != 0;
  if (target == SimdTarget::kAvx512 && is_intel) return 16;
  if (includes(target, SimdTarget::kAvx2)) return 8;
#endif
  return 4;
}

}  // namespace

FloatPanels::FloatPanels(std::int64_t matrix_count, std::int64_t column_count, std::int64_t row_count)
    : matrices(matrix_count), columns(column_count), depth(row_count) {
  target = active_target();
  lanes = lanes_of(target);
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
