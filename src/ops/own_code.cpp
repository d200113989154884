// SPDX-License-Identifier: Apache-2.0
#include "ops/own_code.h"

namespace reef::ops {

bool is_own_code(std::string_view op_type) {
  return op_type == "BATCH_MATMUL" || op_type == "GELU" || op_type == "DIV";
}

}  // namespace reef::ops
