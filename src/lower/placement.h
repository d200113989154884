// SPDX-License-Identifier: Apache-2.0
// Where the elements of a tensor are in the tiles, one by one. Elements are numbered in the tensor's own order
// (channels innermost), which is the same whatever shape the tensor is seen in.
#pragma once

#include <cstdint>
#include <vector>

#include "tiled/tensor.h"

namespace reef::lower {

class Placement {
 public:
  // The tensor is cut already, and outlives this.
  explicit Placement(const tiled::TiledTensor& tensor);

  static constexpr std::int32_t kNotHere = -1;
  // Elements from the given one on that lie next to each other wherever it is: those of its pixel, or run.
  std::int64_t elements_together(std::int64_t element) const {
    const std::int64_t run = tensor_.spread == tiled::Spread::kVector ? tensor_.run : tensor_.channels;
    return run - element % run;
  }
  bool has(std::int64_t element) const {
    return element >= 0 && element < std::int64_t{tensor_.height} * tensor_.width * tensor_.channels;
  }
  // The functions below take elements that it has. Byte of the tensor's object at which a tile has the element: its own
  // or in a halo. kNotHere: it has not.
  std::int32_t byte_on(int tile, std::int64_t element) const;
  // A tile that has the element for its own; in work by slices several may, and one in the row of tiles of `reader`,
  // who wants it, is taken.
  int owner(std::int64_t element, int reader) const;
  std::int32_t object() const { return tensor_.object; }

  // A word of the tensor that a tile owns: `elements` (1 to 4) of them from `first` on, at byte `at` of the object.
  struct OwnWord {
    std::int32_t at = 0;
    std::int64_t first = 0;
    std::int32_t elements = 0;
  };
  std::vector<OwnWord> own_words(int tile) const;

 private:
  struct Pixel {
    std::int32_t y = 0, x = 0, channel = 0;
  };
  Pixel pixel(std::int64_t element) const;
  std::int32_t grid_byte(int tile, const Pixel& pixel) const;
  bool grid_has(int tile, const Pixel& pixel) const;

  const tiled::TiledTensor& tensor_;
  std::vector<std::int8_t> tile_row_, tile_column_;  // kGrid: who owns each row and column
};

}  // namespace reef::lower
