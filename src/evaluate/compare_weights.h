// SPDX-License-Identifier: Apache-2.0
// An operator's weights in the quantized model against the float model's.
#pragma once

#include <optional>

#include "evaluate/compare.h"

namespace reef::evaluate {

// nullopt: the operator has no weights, or they cannot be compared. `original`: its result in the float model.
std::optional<WeightsReport> compare_weights(const ir::Model& float_model, const ir::Model& quantized,
                                             const TensorMatch& match, std::int32_t op, std::int32_t original);

}  // namespace reef::evaluate
