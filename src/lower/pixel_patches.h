// SPDX-License-Identifier: Apache-2.0
// Several neighbouring pixels of a convolution's result at a time.
//
// In one step the tensor unit multiplies 4 bytes of the input by 64 cells. A depthwise layer has work for 4 of these
// cells, a convolution of 16 output channels for 16. The others can compute the same channels of neighbouring pixels: a
// patch of rows x columns pixels shares the steps in which its windows' inputs are read, and each input word is read
// once for all of them.
//
//   3x3, stride 1, depthwise     steps for one word of channels
//     1x1 pixel                  9 for 1 pixel
//     2x2 pixels, 16 cells       16 for 4 pixels
//     4x4 pixels, 64 cells       36 for 16 pixels
//
// The weights of a patch are those of an ordinary convolution whose output channels are (pixel, channel), whose kernel
// reaches over all windows of the patch, and which is zero where a pixel's window does not reach. So they take more
// parameter memory and more time on the ring, which is why few pixels in a tile are computed one by one.
//
// A tile whose pixels do not divide into patches computes some beyond its own. Its buffers get room for these; they are
// written before the halo is filled, which goes over them. Inputs beyond what the tile holds are multiplied by zero.
//
// How it is known: instructions and parameters are those of a convolution with fewer channels, but for the order in
// which results are written (two more dimensions of the output nest). Google's compiler does not do this; it is checked
// on the virtual device only.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/darwinn/parameters/layer_parameters.h"
#include "lower/builder.h"

namespace reef::lower {

// Chooses patches for the steps of Builder::patchable_steps() by predicted time, when all tensors are cut, and gives
// their tensors the room that they need.
void choose_patches(Builder& builder);

// Parameters of a layer in patches, as lines of `line_words` words. `layer` has the shape of the patches.
std::int32_t patch_line_words(const tiled::Convolution& layer);
Result<std::vector<std::uint8_t>> pack_patches(const darwinn::LayerParameters& parameters,
                                               const tiled::Convolution& layer);

}  // namespace reef::lower
