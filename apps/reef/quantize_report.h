// SPDX-License-Identifier: Apache-2.0
// What `reef quantize` says, as text.
#pragma once

#include <string>

#include "compiler/quantize_driver.h"

namespace reef::app {

// Exit code: a quantized model was written, but an output of it has little in common with the float model's.
inline constexpr int kExitNotUsable = 3;

std::string quantize_text(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome);
// Warnings go to standard error, whatever else is printed.
void print_quantize_warnings(const compiler::QuantizeOutcome& outcome);

}  // namespace reef::app
