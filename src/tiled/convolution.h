// SPDX-License-Identifier: Apache-2.0
// A convolution or depthwise convolution on the tiles of the grid.
#pragma once

#include <cstdint>

#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "tiled/tensor.h"

namespace reef::tiled {

// Every tile computes the pixels it owns of the output, `cells` channels at a time ("a group"). For each group,
// parameters arrive in blocks of `block_lines` lines:
//   sums in the cells    one block per group: all kernel positions and input channels for a pixel, then the next pixel
//   partial sums         `blocks` blocks per group: all pixels for a block, sums wait in wide memory for the next one
//
// Where cells would be idle, a patch of neighbouring pixels is computed at a time (lower/pixel_patches.h): cells are
// those of all its pixels, row by row, and a pass reads what the windows of all of them reach. A tile's last patches
// may lie partly beyond its pixels.
struct Convolution {
  bool depthwise = false;
  // Parameters of four cells, kept as lines of 64 words: they come over ring A through the loop-back buffer. Depthwise
  // layers, and in Google's programs convolutions of up to 4 channels.
  bool packed = false;
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors, kGrid
  Window y, x;

  darwinn::Presence header;  // lines before the weights of each group, one per array
  darwinn::LayerRequantization constants;
  std::int32_t cells = 64;       // channels per group
  std::int32_t last_cells = 64;  // of the last group
  std::int32_t groups = 1;
  std::int32_t block_words = 1;  // words of 4 input channels in a block
  std::int32_t block_lines = 1;  // kernel positions * block_words
  std::int32_t blocks = 1;       // per group
  bool partial_sums = false;
  std::int32_t buffers = 2;  // parameter blocks (and headers) in wide memory at a time

  std::int32_t parameters = kNowhere;  // TiledProgram::parameters
  // TiledProgram::wide. Sums: one line per pixel of the busiest tile, kNowhere unless they are partial.
  std::int32_t sums = kNowhere, header_lines = kNowhere, weights = kNowhere;

  // Pixels that are computed at a time; with several in a direction, its windows have no dilation.
  std::int32_t patch_rows = 1, patch_columns = 1;

  bool is_in_patches() const { return patch_rows * patch_columns > 1; }
  // Rows and columns of the input that a patch reads.
  std::int32_t taps_y() const { return (patch_rows - 1) * y.stride + y.kernel; }
  std::int32_t taps_x() const { return (patch_columns - 1) * x.stride + x.kernel; }
  std::int32_t kernel_positions() const { return taps_y() * taps_x(); }
};

// Lines that a header takes in wide memory: all buffers and 32 lines more. Google's compiler leaves these free; nothing
// is known to use them.
inline constexpr std::int32_t kHeaderSpareLines = 32;

}  // namespace reef::tiled
