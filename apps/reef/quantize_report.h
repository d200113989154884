// SPDX-License-Identifier: Apache-2.0
// What `reef quantize` says, as text and as JSON.
#pragma once

#include <string>

#include "compiler/quantize_driver.h"

namespace reef::app {

std::string quantize_text(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome);
std::string quantize_json(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome);
// Warnings go to standard error, whatever else is printed.
void print_quantize_warnings(const compiler::QuantizeOutcome& outcome);

}  // namespace reef::app
