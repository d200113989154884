// SPDX-License-Identifier: Apache-2.0
// From a part of a model to work for tiles (tiled/tiled_program.h), without addresses.
//
// Each convolution becomes a layer; which pixels a tile computes, which halo it needs for that and in which order it
// walks kernel and channels follow from sizes alone, by the rules that Google's newest compiler was seen to follow
// (docs/codegen.md). Padding operators and changes between int8 and uint8 need no work of their own: they become part
// of the layers that read them.
//
// What there is no code for is answered with kUnsupported and the reason; nothing is approximated.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "tiled/tiled_program.h"

namespace reef::lower {

// `model` must be verified; `ops` ascending operators of subgraph 0; `inputs` and `outputs` the tensors at the border.
Result<tiled::TiledProgram> lower(const ir::Model& model, const std::vector<std::int32_t>& ops,
                                  const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs);

}  // namespace reef::lower
