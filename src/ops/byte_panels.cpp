// SPDX-License-Identifier: Apache-2.0
#include "ops/byte_panels.h"

#include <utility>

#include "ops/panel_blocks.h"

namespace reef::ops {
namespace {

// Products of the smallest block: some 3 microseconds.
double fewest_products() {
  const kernels::SimdTarget target = kernels::active_target();
  const bool is_vnni = target == kernels::SimdTarget::kAvxVnni || target == kernels::SimdTarget::kAvx512;
  return is_vnni ? 500'000 : 160'000;
}
constexpr std::int64_t kBytePanelsPixelStep = 24;  // a multiple of all tiles' rows

kernels::BytePanels byte_panels_pack(const Tensor& weights, const kernels::ConvShape& s, std::int32_t zero_point,
                                     bool has_channels_last) {
  kernels::BytePanels panels(s);
  if (has_channels_last) {
    std::vector<std::int16_t> all(static_cast<std::size_t>(weights.elements()));
    widen_elements(weights, 0, weights.elements(), zero_point, all.data());
    panels.pack([&](std::int64_t channel, std::int16_t* to) {
      for (std::int64_t i = 0; i < s.depth(); ++i) to[i] = all[reef::at(i * s.output_channels + channel)];
    });
    return panels;
  }
  panels.pack([&](std::int64_t channel, std::int16_t* to) {
    widen_elements(weights, channel * s.depth(), s.depth(), zero_point, to);
  });
  return panels;
}

}  // namespace

ByteScalingSource::ByteScalingSource(const PrepareContext& ctx, int weights, int bias, Make make)
    : weights_(weights), bias_(bias), make_(std::move(make)) {
  const auto is_known = [&](int i) { return !ctx.has_input(i) || (ctx.input(i).is_constant && ctx.input(i).data); };
  if (is_known(weights) && is_known(bias)) constant_ = std::make_shared<const kernels::ByteScaling>(made_for(ctx));
}

kernels::ByteScaling ByteScalingSource::made_for(const OpContext& ctx) const {
  const std::vector<std::int64_t> values = bias_values(ctx, bias_);
  return make_(ctx.input(weights_), data_or_null(values));
}

LentOrMade<kernels::ByteScaling> ByteScalingSource::operator()(const RunContext& run) const {
  if (constant_ != nullptr) return LentOrMade<kernels::ByteScaling>(constant_.get());
  return LentOrMade<kernels::ByteScaling>(std::make_unique<const kernels::ByteScaling>(made_for(run)));
}

template <typename T>
Kernel byte_panels_kernel(const PrepareContext& ctx, const kernels::ConvShape& s, const ByteOperands& at,
                          const kernels::Requantizer& requantizer) {
  const auto exact = std::make_shared<const kernels::Requantizer>(requantizer);
  const FromTensor<kernels::BytePanels> packed(ctx.input(at.weights), [s, at](const Tensor& weights) {
    return byte_panels_pack(weights, s, at.weights_zero_point, at.has_channels_last);
  });
  const ByteScalingSource scaling(ctx, at.weights, at.bias, [=](const Tensor& weights, const std::int64_t* bias) {
    return kernels::byte_scaling<T>(*packed.get(weights), exact, bias, at.input_zero_point);
  });
  const kernels::BytePanels like(s);  // sizes alone
  const PanelBlocks blocks = panel_blocks(ctx, s, like.panels(), fewest_products(), kBytePanelsPixelStep);
  return [=](RunContext& run) {
    if (s.output_pixels() == 0) return ok_status();
    const auto panels = packed.get(run.input(at.weights));
    const auto current = scaling(run);
    const T* input = run.input(at.input).values<T>().data();
    T* output = run.output(0).mutable_values<T>().data();
    for_each_panel_block(run, s, panels->panels(), blocks,
                         [&](std::int64_t group, std::int64_t pixel_begin, std::int64_t pixel_end,
                             std::int64_t panel_begin, std::int64_t panel_end) {
                           kernels::convolve_bytes<T>(s, input, at.input_zero_point, *panels, group, *current,
                                                      pixel_begin, pixel_end, panel_begin, panel_end, output);
                         });
    return ok_status();
  };
}

template Kernel byte_panels_kernel<std::int8_t>(const PrepareContext&, const kernels::ConvShape&, const ByteOperands&,
                                                const kernels::Requantizer&);
template Kernel byte_panels_kernel<std::uint8_t>(const PrepareContext&, const kernels::ConvShape&, const ByteOperands&,
                                                 const kernels::Requantizer&);

}  // namespace reef::ops
