// SPDX-License-Identifier: Apache-2.0
// The cores of the means of recovery, apart from deciding whether they are kept; for the tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "quantize/calibrate.h"
#include "quantize/equalization.h"

namespace reef::quantize {

// Divides channels between pairs of layers (equalize.cpp) or of residual streams (equalize_streams.cpp); what the model
// computes stays the same. How many; `factors` gets what channels were divided by.
int equalize_layers(ir::Model& model, const Calibration& calibration, ChannelFactors& factors);
int equalize_streams(ir::Model& model, const Calibration& calibration, ChannelFactors& factors);

// How large the channels of a tensor get: the largest seen of each, and some room beyond it, but not more than the
// largest of all. Every channel that is stretched to the whole range may be cut off by the next sample, while without
// equalization only the largest one may; so the fewer samples were seen, the more room. Empty: channels were not
// observed.
std::vector<float> channel_limits(const Calibration& calibration, std::int32_t tensor);

// The following change how a model computes, not what (each file says how); they return in how many places. Tensors
// keep their numbers, new ones come behind them.
int fold_centring(ir::Model& model);
int affine_layers(ir::Model& model);
Result<int> centre_attention(ir::Model& model, const Calibration& calibration);
int convolve_uneven_layers(ir::Model& model);
int normalize_twice(ir::Model& model, const Calibration& calibration);
// For users.
std::string note_of_uneven_layers(int count);
std::string note_of_normalizing_twice(int count);

// Moves integers `q` (nearest to weights / scale at the start) by single steps, each towards the other neighbour of the
// true value, as long as that lowers e^T H e with e = q * scale - weights. `moments`: H, n x n for n weights.
void round_for_outputs(std::span<const double> moments, std::span<const float> weights, double scale,
                       std::span<std::int8_t> q);

}  // namespace reef::quantize
