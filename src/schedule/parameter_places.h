// SPDX-License-Identifier: Apache-2.0
// On which tiles and lines the parameters of each layer are kept.
//
// Parameters lie below all scratch. A convolution's chunk may be cut into pieces on several tiles, which then send one
// after the other; a depthwise chunk stays whole.
#pragma once

#include <vector>

#include "base/status.h"
#include "tiled/program.h"

namespace reef::schedule {

// Each chunk on the tile with most room, those that cannot be cut first; in order of execution otherwise.
Status place_parameters(tiled::TiledProgram& program);

// Places given from outside, by layer: checked for what the program relies on.
Status use_parameter_places(tiled::TiledProgram& program,
                            const std::vector<std::vector<tiled::ParameterPiece>>& places);

}  // namespace reef::schedule
