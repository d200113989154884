// SPDX-License-Identifier: Apache-2.0
// Nodes whose sizes, axes or positions are computed while the model runs: TFLite's operators take them as tensors too,
// and the result has a size that varies. Each function stands in for a converter whose input is not known (see
// NodeContext::is_open); what follows on it may be elementwise, or the model's end.
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

Status open_constant_of_shape(NodeContext& ctx);
Status open_expand(NodeContext& ctx);
Status open_pad(NodeContext& ctx, const std::string& mode);
Status open_range(NodeContext& ctx);
Status open_reshape(NodeContext& ctx);
Status open_slice(NodeContext& ctx);
Status open_split(NodeContext& ctx);
Status open_squeeze(NodeContext& ctx);
Status open_tile(NodeContext& ctx);
Status open_unsqueeze(NodeContext& ctx);
// sum of coefficients[k] * cos(2 pi k n / size)
Status open_window(NodeContext& ctx, const std::vector<double>& coefficients);

}  // namespace reef::import
