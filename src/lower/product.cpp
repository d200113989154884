// SPDX-License-Identifier: Apache-2.0
// MUL.
#include "lower/constants.h"
#include "lower/lowerings.h"

namespace reef::lower {

Status lower_product(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const bool with_constant, lower_with_constant(builder, op));
  if (with_constant) return ok_status();
  return unsupported("the product of two computed tensors is not generated yet");
}

}  // namespace reef::lower
