// SPDX-License-Identifier: Apache-2.0
// A MAX_POOL_2D without padding behind a PADV2 that fills with the lowest number, as exporters write a padded max pool:
// what its windows see, and which other forms give the same. Shared by simplification (float) and rewriting (8 bits).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/model.h"

namespace reef::ops {

// Along one axis.
struct PaddedAxis {
  std::int64_t input = 0, kernel = 0, stride = 0, output = 0;
  std::int64_t before = 0;
  std::int64_t after = 0;  // as far as windows reach; 0 where they end inside

  // The pool's own padding gives the same windows.
  bool is_valid() const { return before == 0 && after == 0; }
  bool is_same() const;
  // A pool of stride 1 with SAME padding gives these results, and others between.
  bool is_centred() const { return before == (kernel - 1) / 2 && output == same_output(); }

 private:
  std::int64_t same_output() const { return (input + stride - 1) / stride; }
};
using PaddedAxes = std::array<PaddedAxis, 2>;  // height, width

// `amounts`: PADV2's table. Nothing: other axes are padded too, the numbers are out of range, or a window holds nothing
// but padding, so that the lowest number would be a result.
std::optional<PaddedAxes> padded_max_pool(const ir::Attributes& pool, const ir::Shape& input, const ir::Shape& output,
                                          std::span<const std::int64_t> amounts);

// A pool's attributes with another padding; without its filter: of single pixels.
ir::Attributes pool_attributes(const ir::Attributes& pool, const PaddedAxes& axes, bool has_filter, bool has_stride,
                               std::string_view padding);

}  // namespace reef::ops
