// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of 8-bit rows, fast: the same bits as softmax_8bit of activation/softmax.h, which is the reference.
//
// There are but 256 differences from a row's maximum, so their exponentials are computed once, when the op is prepared.
// A difference below the reference's limit has the exponential 0, which adds nothing to the sum and gives the lowest
// result, as leaving it out does. A row is then two passes of look-ups, eight at a time where the CPU can.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/activation/softmax.h"

namespace reef::kernels {

// By how much an element is below its row's maximum.
struct SoftmaxByteTable {
  explicit SoftmaxByteTable(const DifferenceScaling& scaling);
  alignas(64) std::array<std::int32_t, 256> exponential = {};  // Q0.31
  alignas(64) std::array<std::int32_t, 256> term = {};         // the same in Q12.19, as it is summed
};

// In: int8 or uint8. Out: In, or int16. False if a row's sum overflows; that row's results are then unspecified.
template <typename In, typename Out>
bool softmax_bytes(const In* input, Rows rows, const SoftmaxByteTable& table, Out* output);

}  // namespace reef::kernels
