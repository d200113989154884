// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

// numpy.matmul of float values.
Id matrix_product(GraphBuilder& b, Id x, Id y);

}  // namespace reef::import
