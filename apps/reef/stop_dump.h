// SPDX-License-Identifier: Apache-2.0
// What `reef run --stop-at` shows: the state of the virtual chip as text, as JSON and as files.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "execute/device/stop_at.h"

namespace reef::app {

// "3", "all"; empty: none. Returns a mask.
Result<std::uint32_t> parse_tiles(const std::string& text);

// `folder`: where write_dump puts the memories; empty: nowhere.
nlohmann::ordered_json dump_json(const device::StopAt& stop, const std::string& folder);
void print_dump(const device::StopAt& stop);
// The memories of the tiles that were asked for, as .npy, and the JSON document as dump.json.
Status write_dump(const device::StopAt& stop, const std::string& folder);

}  // namespace reef::app
