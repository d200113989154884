// SPDX-License-Identifier: Apache-2.0
// PAD: rows and columns of the zero point around an image. No work of its own: steps that read it through windows read
// that much further out, into halos that hold the zero point.
#include <algorithm>
#include <cstring>

#include "lower/lowerings.h"

namespace reef::lower {
namespace {

constexpr std::int32_t kMostPadding = 1 << 14;

Result<Padding> padding_of(const Builder& builder, const ir::Tensor& amounts) {
  const Bytes& data = ir::constant_data(builder.model(), amounts);
  if (amounts.type != ir::DataType::kInt32 || data.size() != 8 * sizeof(std::int32_t)) {
    return unsupported("only constant paddings of four dimensions are generated");
  }
  std::int32_t pads[8];
  std::memcpy(pads, data.data(), sizeof(pads));
  if (std::any_of(pads, pads + 8, [](std::int32_t p) { return p < 0 || p > kMostPadding; })) {
    return unsupported("paddings must be between 0 and {}", kMostPadding);
  }
  if (pads[0] != 0 || pads[1] != 0 || pads[6] != 0 || pads[7] != 0) {
    return unsupported("padding of channels or of the batch is not generated yet");
  }
  return Padding{pads[2], pads[3], pads[4], pads[5]};
}

}  // namespace

Status lower_pad(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::int32_t amounts, builder.operand(op, 1));
  REEF_ASSIGN_OR_RETURN(Value value, builder.value(from));
  const std::int32_t to = builder.op(op).outputs[0];
  if (builder.source(from).shape.rank() != 4 || builder.source(to).shape.rank() != 4) {
    return unsupported("only constant paddings of four dimensions are generated");
  }
  REEF_ASSIGN_OR_RETURN(const Padding padding, padding_of(builder, builder.source(amounts)));
  if (value.padding != Padding{}) return unsupported("padding of a padded tensor is not generated yet");
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(to)));
  if (!same) return unsupported("input and output are quantized differently");
  value.padding = padding;
  builder.set_value(to, value);
  return ok_status();
}

}  // namespace reef::lower
