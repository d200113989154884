// SPDX-License-Identifier: Apache-2.0
// Which inputs and outputs of an ONNX graph are images: tensors that reach, or come from, operators with a channel axis
// (convolutions, pools, ...) through operators that treat all axes alike. They become channels-last.
#pragma once

#include <set>
#include <string>

#include "formats/onnx/model.h"

namespace reef::import {

struct ImageBorders {
  std::set<std::string> inputs, outputs;
};

ImageBorders find_image_borders(const onnx::Graph& graph);

}  // namespace reef::import
