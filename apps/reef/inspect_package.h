// SPDX-License-Identifier: Apache-2.0
// What is in an Edge TPU package, as text and as JSON (part of `reef inspect`).
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::app {

// `custom_options`: of an edgetpu-custom-op. Fails where the package cannot be read.
Result<std::string> describe_package(const Bytes& custom_options);
Result<nlohmann::ordered_json> package_json(const Bytes& custom_options);

}  // namespace reef::app
