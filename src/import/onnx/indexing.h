// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

// Indices into an axis of `size` elements as int32 numbers from 0 on; negative ones count from the end.
Id from_start(GraphBuilder& b, Id indices, std::int64_t size);

}  // namespace reef::import
