// SPDX-License-Identifier: Apache-2.0
// Options of custom ops: a FlexBuffers map, as attributes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "ir/attributes.h"
#include "ops/op_context.h"

namespace reef::ops {

// The map's numbers, strings and vectors of numbers; what else it may hold (nested maps, blobs) is left out. No options
// at all give no attributes. Every offset is checked, so any bytes may be given.
Result<ir::Attributes> read_flexbuffer_map(std::span<const std::uint8_t> bytes);
inline Result<ir::Attributes> custom_options(const OpContext& ctx) {
  return read_flexbuffer_map({ctx.op().custom_options.data(), ctx.op().custom_options.size()});
}

// A number of any kind; `fallback` when absent or no number. Reals are truncated to integers, and saturate.
std::int64_t option_int(const ir::Attributes& options, std::string_view name, std::int64_t fallback = 0);
double option_real(const ir::Attributes& options, std::string_view name, double fallback = 0);
bool option_bool(const ir::Attributes& options, std::string_view name, bool fallback = false);

}  // namespace reef::ops
