// SPDX-License-Identifier: Apache-2.0
// What equalization did to the channels of a model's tensors, and where the quantized model keeps it: who compares it
// with the float model (reef compare) must undo it.
//
// Metadata 'reef.equalization' is a JSON object: "factors" is a list of lists of numbers, one for each channel (the
// last dimension), "tensors" has for each name of a tensor the number of its list. A value times its channel's factor
// is what the float model has in the tensor of that name without kEqualizedSuffix. Numbers have four digits, which is
// far finer than 8 bits are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace reef::quantize {

inline constexpr std::string_view kEqualizationMetadata = "reef.equalization";

using ChannelFactors = std::map<std::int32_t, std::vector<float>>;            // by number of the tensor
using NamedFactors = std::map<std::string, std::vector<float>, std::less<>>;  // by its name

// Replaces what is stored; nothing to store: leaves the model as it is.
void store_equalization(const NamedFactors& factors, ir::Model& model);
// Empty where nothing is stored, or nothing that can be used: it is foreign when it is read, and only helps to compare.
NamedFactors stored_equalization(const ir::Model& model);

}  // namespace reef::quantize
