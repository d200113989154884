// SPDX-License-Identifier: Apache-2.0
// What `reef quantize` says, as text.
#pragma once

#include <string>

#include "compiler/quantize_driver.h"
#include "report/summary.h"

namespace reef::app {

// Exit code: a quantized model was written, but an output of it has little in common with the float model's.
inline constexpr int kExitNotUsable = 3;

// What was done and measured, line by line; with `verbose` everything that was tried.
std::string quantize_details(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome,
                             bool verbose);
// The verdict and the aligned figures.
report::Summary quantize_summary(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome);
// All of it: verdict, details, figures.
void print_quantize_report(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome,
                           bool verbose);
// "35.7 dB, top-1 agreement 100.0 % against the float model (measured, 3 samples)"; empty: nothing was measured.
std::string accuracy_text(const compiler::QuantizeOutcome& outcome);
// Warnings go to standard error, whatever else is printed.
void print_quantize_warnings(const compiler::QuantizeOutcome& outcome);

}  // namespace reef::app
