// SPDX-License-Identifier: Apache-2.0
// PAD and PADV2: surround a tensor with a constant. One kernel, as in TFLite, which tells them apart by input 2 alone.
// Paddings and shapes serve MIRROR_PAD too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/op_context.h"

namespace reef::ops {

using PadElement = std::array<std::byte, 16>;  // an element of any type; as many bytes count as it has

// The element that stands for zero in the output's quantization. Integers without quantization are plain numbers.
Result<PadElement> zero_element(const Tensor& input, const Tensor& output);

// The checked values of input 1: [2 * d] elements are put before dimension d, [2 * d + 1] behind it. The input has at
// least `min_rank` dimensions. small_too: paddings may be int8 or int16.
Result<std::vector<std::int64_t>> paddings_of(const OpContext& ctx, int min_rank, bool small_too);
Result<Shape> padded_shape(const Shape& input, const std::vector<std::int64_t>& paddings);

Status infer_pad(InferContext& ctx);
Result<Kernel> prepare_pad(PrepareContext& ctx);

}  // namespace reef::ops
