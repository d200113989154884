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

  std::int32_t kernel_positions() const { return y.kernel * x.kernel; }
};

// Lines that a header takes in wide memory: all buffers and 32 lines more. Google's compiler leaves these free; nothing
// is known to use them.
inline constexpr std::int32_t kHeaderSpareLines = 32;

}  // namespace reef::tiled
