// SPDX-License-Identifier: Apache-2.0
#include "ops/padded_max_pool.h"

#include <algorithm>
#include <string>

namespace reef::ops {

bool PaddedAxis::is_same() const {
  const std::int64_t total = std::max<std::int64_t>((same_output() - 1) * stride + kernel - input, 0);
  return output == same_output() && before == total / 2;
}

std::optional<PaddedAxes> padded_max_pool(const ir::Attributes& pool, const ir::Shape& input, const ir::Shape& output,
                                          std::span<const std::int64_t> amounts) {
  if (amounts.size() != 8 || input.rank() != 4 || output.rank() != 4) return std::nullopt;
  if (amounts[0] != 0 || amounts[1] != 0 || amounts[6] != 0 || amounts[7] != 0) return std::nullopt;
  PaddedAxes axes;
  for (std::size_t i = 0; i < 2; ++i) {
    constexpr std::int64_t kMost = 1 << 20;
    const auto is_small = [](std::int64_t value, std::int64_t least) { return value >= least && value <= kMost; };
    PaddedAxis& axis = axes[i];
    axis.input = input[static_cast<int>(i) + 1];
    axis.output = output[static_cast<int>(i) + 1];
    axis.kernel = pool.get_int(i == 0 ? "filter_height" : "filter_width");
    axis.stride = pool.get_int(i == 0 ? "stride_h" : "stride_w");
    axis.before = amounts[2 * i + 2];
    const std::int64_t after = amounts[2 * i + 3];
    if (!is_small(axis.kernel, 1) || !is_small(axis.stride, 1) || !is_small(axis.before, 0) || !is_small(after, 0)) {
      return std::nullopt;
    }
    axis.after = std::max<std::int64_t>(0, (axis.output - 1) * axis.stride + axis.kernel - axis.input - axis.before);
    const bool all_reach_input =
        axis.before < axis.kernel && (axis.output - 1) * axis.stride - axis.before < axis.input;
    if (axis.after > after || !all_reach_input) return std::nullopt;
  }
  return axes;
}

ir::Attributes pool_attributes(const ir::Attributes& pool, const PaddedAxes& axes, bool has_filter, bool has_stride,
                               std::string_view padding) {
  ir::Attributes attributes = pool;
  attributes.set("padding", ir::EnumName{std::string(padding)});
  attributes.set("stride_w", has_stride ? axes[1].stride : 1);
  attributes.set("stride_h", has_stride ? axes[0].stride : 1);
  attributes.set("filter_width", has_filter ? axes[1].kernel : 1);
  attributes.set("filter_height", has_filter ? axes[0].kernel : 1);
  return attributes;
}

}  // namespace reef::ops
