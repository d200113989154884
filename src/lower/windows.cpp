// SPDX-License-Identifier: Apache-2.0
#include "lower/windows.h"

#include "ops/window.h"

namespace reef::lower {
namespace {

constexpr std::int32_t kMaxExtent = 1 << 16;  // of images, kernels, strides: more than any tile could hold

}  // namespace

bool reads_beyond_owners(const tiled::AxisPartition& axis) {
  for (int t = axis.last_owner() + 1; t < tiled::kTilesPerAxis; ++t) {
    if (axis.tile(t).is_read) return true;
  }
  return false;
}

Result<tiled::Window> axis_window(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                  std::string_view padding, std::int32_t before) {
  const auto is_small = [](std::int64_t value) { return value >= 1 && value <= kMaxExtent; };
  if (!is_small(size) || !is_small(kernel) || !is_small(stride) || !is_small(dilation) ||
      (kernel - 1) * dilation >= kMaxExtent) {
    return unsupported("size {}, kernel {}, stride {} or dilation {} is out of range", size, kernel, stride, dilation);
  }
  REEF_ASSIGN_OR_RETURN(const ops::WindowAxis axis, ops::window_axis(size, kernel, stride, dilation, padding));
  tiled::Window window;
  window.outputs = axis.output_size;
  window.kernel = static_cast<std::int32_t>(kernel);
  window.stride = static_cast<std::int32_t>(stride);
  window.dilation = static_cast<std::int32_t>(dilation);
  window.pad_before = axis.pad_before + before;
  return window;
}

Status require_reachable_halos(const tiled::TiledTensor& input, const tiled::TiledTensor& output) {
  if (!reads_beyond_owners(input.rows) && !reads_beyond_owners(input.columns)) return ok_status();
  return unsupported("an image of {}x{} is spread over fewer tiles than what is made of it, {}x{}", input.height,
                     input.width, output.height, output.width);
}

}  // namespace reef::lower
