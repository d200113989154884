// SPDX-License-Identifier: Apache-2.0
// What lowerings of reductions (MEAN, SUM, REDUCE_MAX, REDUCE_MIN) share.
#pragma once

#include "lower/builder.h"
#include "lower/rearrange.h"

namespace reef::lower {

// The operand of a reduction as an image, and which of its axes are taken away; those of size 1 are not counted.
struct Reduction {
  std::int32_t from = -1, to = -1;  // the model's tensors
  Image image;                      // of `from`: its elements in their order
  bool rows = false, columns = false, channels = false;
  std::int64_t count = 1;  // elements that make one

  bool is_nothing() const { return !rows && !columns && !channels; }
  // What is left of the axes.
  std::int32_t left(bool is_reduced, std::int32_t size) const { return is_reduced ? 1 : size; }
  Image result() const {
    return {left(rows, image.height), left(columns, image.width), left(channels, image.channels)};
  }
};
// Reads operands and axes of the operator. Fails for tensors that are no images, even when seen with fewer dimensions.
Result<Reduction> reduction_of(const Builder& builder, std::int32_t op);

// The image of so many pixels that is as square as their number allows.
Image square_image(std::int64_t pixels, std::int32_t channels);

// A new tensor on the grid, with the elements of `from` (TiledProgram::tensors) where `map` says.
Result<std::int32_t> moved_to_grid(Builder& builder, std::int32_t op, std::int32_t source, std::int32_t from,
                                   const Image& image, ElementMap map);

}  // namespace reef::lower
