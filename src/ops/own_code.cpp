// SPDX-License-Identifier: Apache-2.0
#include "ops/own_code.h"

namespace reef::ops {

bool is_own_code(OpName op_type) { return op_type == Op::BATCH_MATMUL || op_type == Op::GELU || op_type == Op::DIV; }

}  // namespace reef::ops
