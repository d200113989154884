// SPDX-License-Identifier: Apache-2.0
#include "ops/hybrid_panels.h"

#include <algorithm>
#include <vector>

#include "numeric/wrapping.h"

namespace reef::ops {
namespace {

using kernels::ConvShape;

constexpr std::int64_t kSumsTogether = 1 << 14;  // kept in the first caches, of one block of pixels
constexpr std::int64_t kFewestPixels = 12;       // of a block

kernels::BytePanels hybrid_panels_pack(const Tensor& tensor, const ConvShape& s) {
  Tensor weights = tensor;
  if (weights.type == DataType::kUInt8) weights.type = DataType::kInt8;  // so TFLite reads them
  kernels::BytePanels panels(s);
  panels.pack(
      [&](std::int64_t channel, std::int16_t* to) { widen_elements(weights, channel * s.depth(), s.depth(), 0, to); },
      /*has_sums=*/true);
  return panels;
}

bool has_padding(const kernels::ConvAxis& axis) {
  return axis.pad_before != 0 || axis.origin(axis.output - 1) + (axis.window - 1) * axis.dilation >= axis.input;
}

// Sums of one pixel to floats. `zero_point`: what the activations' still has to be taken off.
struct HybridRow {
  const kernels::BytePanels& panels;
  const HybridOutput& hybrid;
  const kernels::FloatOutput& finish;

  void operator()(const std::int32_t* sums, std::int32_t zero_point, float batch_scale, float* to) const {
    const float* scales = hybrid.channel_scales.data();
    const std::int32_t* column_sums = panels.sums.data();
    const bool scales_first = hybrid.scales_first;
    REEF_INDEPENDENT
    for (std::int64_t c = 0; c < panels.columns; ++c) {
      const std::int32_t zeros = numeric::wrapping_product(zero_point, column_sums[c]);
      const auto sum = static_cast<float>(numeric::wrapping_difference(sums[c], zeros));
      const float value = scales_first ? sum * (scales[c] * batch_scale) : sum * scales[c] * batch_scale;
      to[c] = finish(value, c);
    }
  }
};

}  // namespace

Kernel hybrid_panels_kernel(const PrepareContext& ctx, const ConvShape& s, const ConvOperands& at,
                            const HybridOutput& hybrid, kernels::FloatQuantizer quantizer) {
  const FromTensor<kernels::BytePanels> packed(ctx.input(at.weights),
                                               [s](const Tensor& weights) { return hybrid_panels_pack(weights, s); });
  // Positions outside of the image count as the zero point, which each image has its own of.
  const bool is_by_image = has_padding(s.y) || has_padding(s.x);
  return [=](RunContext& run) {
    if (run.output(0).elements() == 0) return ok_status();
    const auto panels = packed.get(run.input(at.weights));
    const QuantizedRows quantized =
        quantize_rows(run.input(at.input).values<float>().data(), s.batches, s.input_batch_size(), quantizer);
    float* output = run.output(0).mutable_values<float>().data();
    const kernels::FloatOutput finish = float_output(run, at.bias, hybrid.range);
    const HybridRow finish_row{*panels, hybrid, finish};
    const std::int64_t of_image = s.y.output * s.x.output, whole = is_by_image ? of_image : s.output_pixels();
    const std::int64_t width = panels->padded_columns();
    const std::int64_t together =
        std::min(std::max(kSumsTogether / width / kFewestPixels, std::int64_t{1}) * kFewestPixels, whole);
    const std::int64_t blocks = (whole + together - 1) / together;
    const auto block = [&](std::int64_t image, std::int64_t index) {
      static thread_local std::vector<std::int32_t> sums;
      const std::int64_t begin = image * whole + index * together,
                         end = std::min(begin + together, (image + 1) * whole);
      sums.resize(static_cast<std::size_t>((end - begin) * width));
      const std::int32_t zero_point = is_by_image ? quantized.zero_points[reef::at(image)] : 0;
      kernels::convolve_sums<std::int8_t>(s, quantized.values.data(), zero_point, *panels, begin, end, sums.data());
      kernels::in_vectors([&] {
        for (std::int64_t pixel = begin; pixel < end; ++pixel) {
          const auto batch = static_cast<std::size_t>(pixel / of_image);
          finish_row(sums.data() + (pixel - begin) * width, is_by_image ? 0 : quantized.zero_points[batch],
                     quantized.scales[batch], output + pixel * s.output_channels);
        }
      });
    };
    const std::int64_t images = is_by_image ? s.batches : 1;
    run.parallel_for(images * blocks, grain_for({together, s.output_channels, s.depth()}),
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t i = begin; i < end; ++i) block(i / blocks, i % blocks);
                     });
    return ok_status();
  };
}

}  // namespace reef::ops
