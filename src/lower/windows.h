// SPDX-License-Identifier: Apache-2.0
// Windows of operators, from attributes that may say anything.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "lower/builder.h"
#include "tiled/tensor.h"

namespace reef::lower {

// An axis of `size` elements, of which a PAD before the operator has added `before` in front. Refuses what is out of
// any reasonable range.
Result<tiled::Window> axis_window(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                  std::string_view padding, std::int32_t before);

// Whether tiles behind the last one with data compute something from the tensor.
bool reads_beyond_owners(const tiled::AxisPartition& axis);
// Tiles behind the last one with data are not reached by the exchange of halos: fails where they compute something from
// the tensor.
Status require_reachable_halos(const tiled::TiledTensor& input, const tiled::TiledTensor& output);

}  // namespace reef::lower
