// SPDX-License-Identifier: Apache-2.0
// Commands print one object under --json, whether they succeed or fail. Its first member is the version of the schema
// (docs/json.md).
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"

namespace reef::app {

// Members are only added; a change of meaning makes it 2.
inline constexpr int kJsonSchema = 1;

void print_json(const nlohmann::ordered_json& object);
// An object that is text already, as dump(2) writes it.
void print_json_text(std::string object);

// {"error": {"kind", "message", "exit_code"}}, unless the command has printed its object already.
void print_json_error(const Status& status, int exit_code);
void print_json_usage_error(const std::string& message, int exit_code);

}  // namespace reef::app
