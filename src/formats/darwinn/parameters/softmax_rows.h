// SPDX-License-Identifier: Apache-2.0
// The constants of SOFTMAX when the number of classes is not a multiple of 4 (compilers of runtime version 12 and
// later; older ones compute softmax on the scalar core, without parameters).
//
// The tiles work on 4 classes at a time; the lanes beyond the last class must neither win the maximum nor count in the
// sum. Rows of 64 bytes, each with 4 words and zeros, rows = ceil(classes / 4):
//   rows   int32    0 for a class, INT32_MIN for a lane beyond: added before the maximum is taken
//   rows   int32    the same again: added before the exponential
//   rows   float32  input scale for a class, input scale * FLT_MAX for a lane beyond: factor before the exponential
//   [1     float32  {1, 0, ...}: masks the last word when it stands alone]
// The last row is there for 1001 classes and not for 10; the compiler's rule is not known (an odd number of words
// spread over several tiles, by its use in the program). With a multiple of 4 classes (4, 256, 4096, 16384 seen)
// nothing is stored.
//
// How it is known: equal bytes in four packages of 1001 and one of 10 classes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::darwinn {

struct SoftmaxRows {
  std::int32_t classes = 0;  // 1 .. 2^24; a multiple of 4 has no lanes beyond and is not stored by the compiler
  float input_scale = 0;
  bool has_mask_row = false;
  friend bool operator==(const SoftmaxRows&, const SoftmaxRows&) = default;
};

Result<std::vector<std::uint8_t>> pack_softmax_rows(const SoftmaxRows& softmax);

// Fails unless packing the result gives `chunk` again.
Result<SoftmaxRows> unpack_softmax_rows(std::span<const std::uint8_t> chunk);

// The rows of a SOFTMAX operator, without the mask row. Refused: no 8-bit input, a multiple of 4 classes.
Result<SoftmaxRows> softmax_rows_of(const ir::Subgraph& graph, const ir::Operator& op);

}  // namespace reef::darwinn
