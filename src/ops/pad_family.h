// SPDX-License-Identifier: Apache-2.0
// PAD and PADV2: surround a tensor with a constant. One kernel, as in TFLite, which tells them apart by input 2 alone.
#pragma once

#include <array>
#include <cstddef>

#include "ops/op_context.h"

namespace reef::ops {

using PadElement = std::array<std::byte, 16>;  // an element of any type; as many bytes count as it has

// What stands for zero in the output's quantization. Integers without quantization are plain numbers.
Result<PadElement> zero_element(const Tensor& input, const Tensor& output);

Status infer_pad(InferContext& ctx);
Result<Kernel> prepare_pad(PrepareContext& ctx);

}  // namespace reef::ops
