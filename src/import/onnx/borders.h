// SPDX-License-Identifier: Apache-2.0
// Which inputs and outputs of an ONNX graph are images: tensors that reach, or come from, operators with a channel axis
// (convolutions, pools, ...) through operators that treat all axes alike. They become channels-last.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "formats/onnx/model.h"

namespace reef::import {

struct ImageBorders {
  std::set<std::string> inputs, outputs;
};

// `functions`: those of the model, which nodes may call; `depth`: of calls in calls, from 0 on.
ImageBorders find_image_borders(const onnx::Graph& graph, const std::vector<onnx::Function>& functions, int depth = 0);

}  // namespace reef::import
