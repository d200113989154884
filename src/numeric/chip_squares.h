// SPDX-License-Identifier: Apache-2.0
// Constants of L2_NORMALIZATION, whose pattern is our own: no compiled program with it is known.
#pragma once

#include <cstdint>

namespace reef::numeric {

// L2_NORMALIZATION: a sum of squares of less than kRootSplit has the root kCoarseRoot / sqrt, another kFineRoot / sqrt,
// rounded to 16 bits. A single unit for all sums would be too coarse for large ones, or overflow for small ones.
inline constexpr std::int32_t kRootSplit = 4096;
inline constexpr float kCoarseRoot = 65535.0f, kFineRoot = 64.0f * 65535.0f;
// The multiplier of a value times such a root.
inline float chip_root_multiplier(float one, float output_scale) { return (1.0f / output_scale) * (1.0f / one); }

}  // namespace reef::numeric
