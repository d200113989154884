// SPDX-License-Identifier: Apache-2.0
// The work of layers with weights (chip_work.h). Operators as there; what cannot be such a layer is charged as a copy.
#pragma once

#include "ops/chip_work.h"

namespace reef::ops {

ChipWork conv_work(const OpContext& ctx);
ChipWork transpose_conv_work(const OpContext& ctx);
ChipWork depthwise_work(const OpContext& ctx);
ChipWork fully_connected_work(const OpContext& ctx);
ChipWork matrix_product_work(const OpContext& ctx);
ChipWork lstm_work(const OpContext& ctx);

}  // namespace reef::ops
