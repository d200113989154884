// SPDX-License-Identifier: Apache-2.0
#include "ops/conv_family.h"

namespace reef::ops {

Result<kernels::ConvAxis> conv_axis(std::int64_t input, std::int64_t window, std::int64_t stride, std::int64_t dilation,
                                    std::string_view padding) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  REEF_REQUIRE(window >= 1 && stride >= 1 && dilation >= 1 && window < kLimit && stride < kLimit && dilation < kLimit,
               "window {}, stride {} and dilation {} must all be at least 1", window, stride, dilation);
  const std::int64_t reach = (window - 1) * dilation + 1;
  // TFLite's (input + stride - reach) / stride, which truncates towards zero.
  const bool empty = padding == "VALID" ? input < reach && input + stride - reach > -stride : input == 0;
  if (empty && (padding == "VALID" || padding == "SAME"))
    return kernels::ConvAxis{input, 0, window, stride, dilation, 0};
  REEF_ASSIGN_OR_RETURN(const WindowAxis axis, window_axis(input, window, stride, dilation, padding));
  return kernels::ConvAxis{input, axis.output_size, window, stride, dilation, axis.pad_before};
}

Result<kernels::ConvShape> conv_geometry(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& weights = ctx.input(1);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  REEF_RETURN_IF_ERROR(require_rank(weights, "weights", 4, 4));
  REEF_RETURN_IF_ERROR(check_shape(input.shape));
  REEF_RETURN_IF_ERROR(check_shape(weights.shape));
  const ir::Attributes& a = ctx.attributes();
  const std::string_view padding = a.get_enum("padding", "SAME");
  kernels::ConvShape shape;
  shape.batches = input.shape[0];
  shape.input_channels = input.shape[3];
  REEF_ASSIGN_OR_RETURN(shape.y, conv_axis(input.shape[1], weights.shape[1], a.get_int("stride_h"),
                                           a.get_int("dilation_h_factor", 1), padding));
  REEF_ASSIGN_OR_RETURN(shape.x, conv_axis(input.shape[2], weights.shape[2], a.get_int("stride_w"),
                                           a.get_int("dilation_w_factor", 1), padding));
  return shape;
}

BlockSize output_block_size(const kernels::ConvShape& s, double products, std::int64_t channel_step) {
  constexpr double kProductsPerBlock = 5e7;  // tens of milliseconds
  constexpr std::int64_t kFewColumns = 4;    // that still share what is read of the weights
  const double per_pixel = std::max(products, 1.0) * static_cast<double>(s.output_channels);
  if (per_pixel * static_cast<double>(s.x.output) <= kProductsPerBlock) return {s.x.output, s.output_channels};
  if (per_pixel * kFewColumns <= kProductsPerBlock) {
    return {static_cast<std::int64_t>(kProductsPerBlock / per_pixel) / kFewColumns * kFewColumns, s.output_channels};
  }
  const double steps = kProductsPerBlock / (kFewColumns * std::max(products, 1.0) * static_cast<double>(channel_step));
  return {kFewColumns, std::max<std::int64_t>(static_cast<std::int64_t>(steps), 1) * channel_step};
}

}  // namespace reef::ops
