// SPDX-License-Identifier: Apache-2.0
// The work of layers with weights (chip_work.h). Operators as there; what cannot be such a layer is charged as a copy.
#pragma once

#include "chip/machine.h"
#include "ops/chip_work.h"

namespace reef::ops {

// Lines of weights that a tile keeps of a dense layer: more would leave no room for scratch. And words of inputs that a
// loop of a tensor operation counts. Layers with more are computed by one tile, which all weights pass by.
inline constexpr std::int64_t kMostDenseLines = chip::kWideLines - 64, kMostDenseWords = 1 << 14;

ChipWork conv_work(const OpContext& ctx);
ChipWork transpose_conv_work(const OpContext& ctx);
ChipWork depthwise_work(const OpContext& ctx);
ChipWork fully_connected_work(const OpContext& ctx);
ChipWork matrix_product_work(const OpContext& ctx);
ChipWork lstm_work(const OpContext& ctx);

}  // namespace reef::ops
