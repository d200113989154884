// SPDX-License-Identifier: Apache-2.0
#include "ops/transpose_panels.h"

#include <algorithm>
#include <memory>

namespace reef::ops {
namespace {

using kernels::ConvShape;
using kernels::PhaseRows;
using kernels::TransposePhase;

// Pixels that are convolved together, before they are put where they belong: enough for all tiles, few enough for the
// cache.
constexpr std::int64_t kPixelsTogether = 192;

// Memory for `count` results that is kept from call to call.
template <typename T>
T* results_memory(std::int64_t count) {
  static thread_local std::vector<T> kept;
  if (std::ssize(kept) < count) kept.resize(static_cast<std::size_t>(count));
  return kept.data();
}

// body(phase's number, image, first row, end of rows) for all rows of all phases, on all threads.
template <typename Body>
void for_each_phase_block(const RunContext& ctx, const ConvShape& s, const std::vector<TransposePhase>& phases,
                          const Body& body) {
  struct Block {
    std::size_t phase;
    std::int64_t image, begin, end;
  };
  std::vector<Block> blocks;
  double products = 0;
  for (std::int64_t image = 0; image < s.batches; ++image) {
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const ConvShape& conv = phases[i].conv;
      const std::int64_t rows = std::max<std::int64_t>(kPixelsTogether / conv.x.output, 1);
      for (std::int64_t row = 0; row < conv.y.output; row += rows)
        blocks.push_back({i, image, row, std::min(row + rows, conv.y.output)});
      products += static_cast<double>(conv.y.output * conv.x.output) * static_cast<double>(conv.depth()) *
                  static_cast<double>(conv.output_channels);
    }
  }
  const auto count = std::ssize(blocks);
  if (count == 0) return;
  const auto each = static_cast<std::int64_t>(std::min(products / static_cast<double>(count), 1e15));
  ctx.parallel_for(count, grain_for({each}), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Block& block = blocks[reef::at(i)];
      body(block.phase, block.image, block.begin, block.end);
    }
  });
}

// The values of each channel of a pixel, for the pixels that a phase computes side by side.
template <typename T>
std::vector<T> repeated(const T* values, std::int64_t count, std::int64_t times) {
  std::vector<T> result;
  for (std::int64_t i = 0; i < times; ++i) result.insert(result.end(), values, values + count);
  return result;
}

kernels::BytePanels pack_phase(const Tensor& weights, const ConvShape& s, const TransposePhase& phase,
                               std::int32_t zero_point) {
  const ConvShape& conv = phase.conv;
  kernels::BytePanels panels(conv);
  panels.pack([&](std::int64_t channel, std::int16_t* to) {
    const std::int64_t o = channel % s.output_channels, column = channel / s.output_channels;
    for (std::int64_t y = 0; y < conv.y.window; ++y) {
      for (std::int64_t x = 0; x < conv.x.window; ++x, to += s.input_channels) {
        const std::int64_t position = phase.position(s, y, x, column);
        if (position < 0) {
          std::fill_n(to, s.input_channels, std::int16_t{0});
        } else {
          widen_elements(weights, (o * s.taps() + position) * s.input_channels, s.input_channels, zero_point, to);
        }
      }
    }
  });
  return panels;
}

using PhasePanels = std::vector<kernels::BytePanels>;

}  // namespace

template <typename T>
Result<Kernel> transpose_bytes_kernel(const PrepareContext& ctx, const ConvShape& s, const ConvOperands& at,
                                      const IntScaling& scaling, std::int32_t input_zero_point) {
  const std::vector<TransposePhase> phases = kernels::transpose_phases(s, /*joins_all=*/true);
  const FromTensor<PhasePanels> packed(ctx.input(at.weights),
                                       [s, phases, zero_point = scaling.weights_zero_point](const Tensor& weights) {
                                         PhasePanels panels;
                                         for (const TransposePhase& phase : phases)
                                           panels.push_back(pack_phase(weights, s, phase, zero_point));
                                         return panels;
                                       });
  std::vector<ByteScalingSource> scalings;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const auto count = static_cast<std::int64_t>(scaling.factors.size());
    const std::vector<double> factors =
        count == 1 ? scaling.factors : repeated(scaling.factors.data(), count, phases[i].columns);
    REEF_ASSIGN_OR_RETURN(const kernels::Requantizer requantizer, make_requantizer(ctx, scaling.rounding, factors));
    const auto exact = std::make_shared<const kernels::Requantizer>(requantizer);
    scalings.emplace_back(
        ctx, at.weights, at.bias, [=, columns = phases[i].columns](const Tensor& weights, const std::int64_t* bias) {
          std::vector<std::int64_t> all;
          if (bias != nullptr) all = repeated(bias, s.output_channels, columns);
          return kernels::byte_scaling<T>((*packed.get(weights))[i], exact, data_or_null(all), input_zero_point);
        });
  }
  return Kernel([=](RunContext& run) {
    const auto panels = packed.get(run.input(at.weights));
    std::vector<LentOrMade<kernels::ByteScaling>> current;
    for (const ByteScalingSource& source : scalings) current.push_back(source(run));
    const T* input = run.input(at.input).template values<T>().data();
    T* output = run.output(0).template mutable_values<T>().data();
    const std::int64_t image_size = s.y.output * s.x.output * s.output_channels;
    for_each_phase_block(run, s, phases, [&](std::size_t i, std::int64_t image, std::int64_t begin, std::int64_t end) {
      const TransposePhase& phase = phases[i];
      const PhaseRows<T> rows(phase, input + image * s.input_batch_size(), begin, end);
      T* const results = results_memory<T>(rows.conv.output_pixels() * rows.conv.output_channels);
      kernels::convolve_bytes<T>(rows.conv, rows.input, input_zero_point, (*panels)[i], 0, *current[i], 0,
                                 rows.conv.output_pixels(), 0, (*panels)[i].panels(), results);
      for (std::int64_t row = begin; row < end; ++row) {
        place_phase_row(s, phase, row, results + (row - begin) * rows.conv.x.output * rows.conv.output_channels,
                        output + image * image_size);
      }
    });
    return ok_status();
  });
}

template Result<Kernel> transpose_bytes_kernel<std::int8_t>(const PrepareContext&, const ConvShape&,
                                                            const ConvOperands&, const IntScaling&, std::int32_t);
template Result<Kernel> transpose_bytes_kernel<std::uint8_t>(const PrepareContext&, const ConvShape&,
                                                             const ConvOperands&, const IntScaling&, std::int32_t);

FloatPhaseWeights pack_float_phases(const float* weights, const ConvShape& s) {
  FloatPhaseWeights result{kernels::transpose_phases(s, /*joins_all=*/false), {}, true};
  std::vector<float> column;
  for (const TransposePhase& phase : result.phases) {
    const ConvShape& conv = phase.conv;
    if (!phase.has_positions) {
      result.panels.emplace_back();
      continue;
    }
    kernels::FloatPanels panels(1, conv.output_channels, conv.depth());
    for (std::int64_t channel = 0; channel < conv.output_channels; ++channel) {
      const float* of_output = weights + channel % s.output_channels * s.taps() * s.input_channels;
      column.clear();
      for (std::int64_t y = 0; y < conv.y.window; ++y) {
        for (std::int64_t x = 0; x < conv.x.window; ++x) {
          const float* from = of_output + phase.position(s, y, x, channel / s.output_channels) * s.input_channels;
          column.insert(column.end(), from, from + s.input_channels);
        }
      }
      panels.set_column(0, channel, column.data(), 1);
    }
    result.finite = result.finite && panels.finite;
    result.panels.push_back(std::move(panels));
  }
  return result;
}

void run_float_phases(const RunContext& ctx, const ConvShape& s, const float* input, const FloatPhaseWeights& weights,
                      const kernels::FloatOutput& finish, float* output) {
  std::vector<float> bias;
  kernels::FloatOutput finish_all = finish;
  if (finish.bias != nullptr) {
    bias = repeated(finish.bias, s.output_channels, s.x.stride);
    finish_all.bias = bias.data();
  }
  const std::int64_t image_size = s.y.output * s.x.output * s.output_channels;
  for_each_phase_block(ctx, s, weights.phases,
                       [&](std::size_t i, std::int64_t image, std::int64_t begin, std::int64_t end) {
                         const TransposePhase& phase = weights.phases[i];
                         const PhaseRows<float> rows(phase, input + image * s.input_batch_size(), begin, end);
                         const std::int64_t pixels = rows.conv.output_pixels(), channels = rows.conv.output_channels;
                         float* const results = results_memory<float>(pixels * channels);
                         if (phase.has_positions) {
                           kernels::convolve_panels(rows.conv, rows.input, weights.panels[i], 0, finish_all, 0, pixels,
                                                    0, weights.panels[i].panels(), results);
                         } else {
                           for (std::int64_t k = 0; k < pixels * channels; ++k)
                             results[k] = finish_all(0.0f, k % channels);
                         }
                         for (std::int64_t row = begin; row < end; ++row) {
                           place_phase_row(s, phase, row, results + (row - begin) * rows.conv.x.output * channels,
                                           output + image * image_size);
                         }
                       });
}

}  // namespace reef::ops
