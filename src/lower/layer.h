// SPDX-License-Identifier: Apache-2.0
// One convolution as a layer of tiles: geometry, loop order, parameters.
#pragma once

#include "base/status.h"
#include "ir/model.h"
#include "tiled/tiled_program.h"

namespace reef::lower {

// Padding in front of an operator that is not the operator's own, in pixels.
struct Padding {
  std::int32_t top = 0, bottom = 0, left = 0, right = 0;
  friend bool operator==(const Padding&, const Padding&) = default;
};

// How the operator reads the image that `padding` surrounds. Checks everything about the operator's attributes.
struct LayerWindows {
  tiled::Window y, x;
};
Result<LayerWindows> windows_of(const ir::Subgraph& graph, const ir::Operator& op, const Padding& padding);

// Groups, loop order, constants and parameter bytes. `pixels`: of the output, on the busiest tile.
// Leaves input, output and windows to the caller.
Result<tiled::TiledLayer> layer_of(const ir::Model& model, std::int32_t op, std::int64_t pixels);

}  // namespace reef::lower
