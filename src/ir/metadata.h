// SPDX-License-Identifier: Apache-2.0
// Named bytes that a model carries beside its graph.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "ir/model.h"

namespace reef::ir {

// Null: there is no entry of this name, or it has no data.
const Bytes* find_metadata(const Model& model, std::string_view name);
// Replaces what the entry of this name holds, or adds one.
void set_metadata(Model& model, std::string_view name, std::string_view text);

}  // namespace reef::ir
