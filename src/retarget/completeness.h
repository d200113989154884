// SPDX-License-Identifier: Apache-2.0
// Whether the tensor ops of a template, each with its operator, make up the whole model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "retarget/roles.h"

namespace reef::retarget {

// `choices`: one per tensor op of the template. Returns what is not there, in sentences: operators without
// instructions, outputs that are something else or in another order, layers of which only a part is computed.
std::vector<std::string> what_is_missing(const Template& compiled, const Network& network, const SearchState& state,
                                         std::span<const Choice* const> choices);

}  // namespace reef::retarget
