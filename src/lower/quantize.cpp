// SPDX-License-Identifier: Apache-2.0
// QUANTIZE between int8 and uint8 of the same scale and meaning: the chip's bytes stay as they are.
#include "lower/lowerings.h"

namespace reef::lower {

Status lower_quantize(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const Value value, builder.value(from));
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(to)));
  if (!same) return unsupported("changing a scale or zero point is not generated yet, only int8 to uint8 and back");
  builder.set_value(to, value);
  return ok_status();
}

}  // namespace reef::lower
