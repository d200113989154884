// SPDX-License-Identifier: Apache-2.0
// A fully connected layer: every tile that computes has the whole input, and the weights of its own outputs.
#pragma once

#include <cstdint>

#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "tiled/tensor.h"

namespace reef::tiled {

// Tile t computes the outputs that it has of the result, 64 at a time ("a group"). Its part of the parameters is, for
// each of its groups: header lines, then a line for every word of the input.
struct FullyConnected {
  std::int32_t input = 0;   // TiledProgram::tensors: kCopies, on all tiles that own some of the output
  std::int32_t output = 0;  // TiledProgram::tensors: kVector, whole groups to a tile

  darwinn::Presence header;
  darwinn::LayerRequantization constants;
  std::int32_t input_words = 0;        // of 4 bytes; weights of the input's padding have no effect
  std::int32_t parameters = kNowhere;  // TiledProgram::parameters, in parts

  std::int32_t group_lines() const { return header.arrays() + input_words; }
};

}  // namespace reef::tiled
