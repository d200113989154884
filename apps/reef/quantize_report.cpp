// SPDX-License-Identifier: Apache-2.0
#include "quantize_report.h"

#include <cstdio>

#include <fmt/format.h>

#include "compiler/quantize_json.h"
#include "console.h"
#include "ir/describe.h"

namespace reef::app {
std::string quantize_text(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome) {
  const quantize::QuantizeResult& result = outcome.result;
  std::string text;
  for (const std::string& lost : result.lost) text += fmt::format("NOT USABLE: {}\n", lost);
  text += fmt::format("{} -> {}: {}, {} -> {}\n", request.model, request.output, compiler::mode_name(request.how.mode),
                      ir::describe_bytes(outcome.model_bytes), ir::describe_bytes(outcome.output_bytes));
  if (!outcome.data.empty()) text += fmt::format("samples: {}\n", outcome.data);
  if (!outcome.preprocess.empty()) {
    text += fmt::format("preprocessing: {} ({})\n", outcome.preprocess, outcome.preprocess_from);
  }
  if (result.calibration_samples > 0) {
    text += fmt::format("calibrated on {} samples in {:.1f} s (measured); {} held back to measure with\n",
                        result.calibration_samples, result.calibration_seconds, result.held_back_samples);
  }
  if (!result.steps.empty()) {
    const bool more = result.measured_samples > result.held_back_samples;
    text += fmt::format("tried, on {} (outputs against the float model's):\n",
                        more ? fmt::format("{} samples, those held back and others", result.measured_samples)
                             : "the samples held back");
  }
  for (const quantize::Step& step : result.steps) {
    text += fmt::format("  {} {:<56} {}", step.kept ? "+" : "-", step.what, quantize::describe(step.error));
    if (step.gain.standard_error > 0) {
      text += fmt::format(" ({:+.1f} dB, standard error {:.1f})", step.gain.db, step.gain.standard_error);
    }
    if (!step.why_not.empty()) text += fmt::format(" not kept: {}", step.why_not);
    text += '\n';
  }
  for (const quantize::FloatOp& op : result.float_ops) text += fmt::format("stays float: {}: {}\n", op.op, op.why);
  for (const std::string& note : outcome.notes) text += fmt::format("note: {}\n", note);
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  text += fmt::format("{} operators in integers, {} in float, {} conversions between\n", result.integer_ops,
                      result.float_ops.size(), result.conversions);
  if (result.error) {
    text += fmt::format("outputs: {} against the float model (measured, {} samples)\n",
                        quantize::describe(*result.error), result.held_back_samples);
  }
  if (result.parts.size() > 1) {
    for (const quantize::PartError& error : result.parts) {
      text += fmt::format("  output '{}': {:.1f} dB, values from {:.3g} to {:.3g}{}\n",
                          ir::describe_name(error.part.name), error.sqnr_db, error.min, error.max,
                          error.is_dead ? fmt::format(" all become {:.3g}", error.dead_value) : "");
    }
  }
  for (const std::string& layer : outcome.worst_layers) {
    text += fmt::format("{}: {}\n", result.lost.empty() ? "worst layer" : "layer at fault", layer);
  }
  if (!request.report.empty()) text += fmt::format("every layer's error: {}\n", request.report);
  text += fmt::format("{:.1f} s (measured)\n", outcome.seconds);
  return text;
}

void print_quantize_warnings(const compiler::QuantizeOutcome& outcome) {
  std::fflush(stdout);
  if (outcome.preprocess_is_guess) {
    print_error("reef: WARNING: preprocessing is a guess ({}, {}); say it with --preprocess\n", outcome.preprocess,
                outcome.preprocess_from);
  }
  for (const std::string& warning : outcome.result.warnings) {
    print_error("reef: WARNING: {}\n", warning);
  }
}

}  // namespace reef::app
