// SPDX-License-Identifier: Apache-2.0
// Constant positions in a row of elements that follow a pattern: what exporters write as GatherElements and ScatterND
// with index tensors, and what slices, pads and reshapes do without any.
//
//   x[:, 1:, ::2] = y                      positions of a box, written by ScatterND (MViT, YOLO's grids)
//   scores.gather(-1, i - j + n)           one diagonal after the other, read by GatherElements (DeBERTa)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "import/onnx/vocabulary.h"

namespace reef::import {

// Position number [i, j, ..., k] is first + i * stride + j * stride + ... + k * stride, each with the stride of its
// level; the last index runs fastest.
struct Progressions {
  struct Level {
    std::int64_t stride = 0, count = 1;
  };
  std::int64_t first = 0;
  std::vector<Level> levels;  // outermost first
};
std::optional<Progressions> progressions_of(std::span<const std::int64_t> positions);

// Elements of `row` [n] at these positions, [m], by moving alone. Nothing where they do not lie in diagonals or boxes.
std::optional<Id> read_progressions(GraphBuilder& b, Id row, const Progressions& positions);

// `rows` [n, width] with rows at these positions replaced by `updates` [m, width]. With `combine` (ADD, MUL ...) a row
// becomes that of itself and its update. Nothing where the positions are no box.
std::optional<Id> write_progressions(GraphBuilder& b, Id rows, const Progressions& positions, Id updates,
                                     std::string_view combine = {});

}  // namespace reef::import
