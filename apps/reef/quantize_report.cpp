// SPDX-License-Identifier: Apache-2.0
#include "quantize_report.h"

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ir/describe.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;
using quantize::Mode;

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::kInt8:
      return "int8";
    case Mode::kInt16x8:
      return "int16x8";
    case Mode::kDynamic:
      return "dynamic";
    case Mode::kFloat16:
      return "float16";
  }
  return "?";
}

Json json_of(const quantize::OutputError& error) {
  Json result;
  result["sqnr_db"] = error.mean_sqnr_db;
  result["sqnr_db_per_output"] = error.sqnr_db;
  if (error.top1_agreement >= 0) result["top1_agreement"] = error.top1_agreement;
  return result;
}

}  // namespace

std::string quantize_text(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome) {
  const quantize::QuantizeResult& result = outcome.result;
  std::string text = fmt::format("{} -> {}: {}, {} -> {}\n", request.model, request.output, mode_name(request.how.mode),
                                 ir::describe_bytes(outcome.model_bytes), ir::describe_bytes(outcome.output_bytes));
  if (!outcome.data.empty()) text += fmt::format("samples: {}\n", outcome.data);
  if (!outcome.preprocess.empty()) {
    text += fmt::format("preprocessing: {} ({})\n", outcome.preprocess, outcome.preprocess_from);
  }
  if (result.calibration_samples > 0) {
    text += fmt::format("calibrated on {} samples in {:.1f} s (measured); {} held back to measure with\n",
                        result.calibration_samples, result.calibration_seconds, result.held_back_samples);
  }
  if (!result.steps.empty()) text += "tried, on the samples held back (outputs against the float model's):\n";
  for (const quantize::Step& step : result.steps) {
    text += fmt::format("  {} {:<56} {}\n", step.kept ? "+" : "-", step.what, quantize::describe(step.error));
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
  text += fmt::format("{:.1f} s (measured)\n", outcome.seconds);
  return text;
}

std::string quantize_json(const compiler::QuantizeRequest& request, const compiler::QuantizeOutcome& outcome) {
  const quantize::QuantizeResult& result = outcome.result;
  Json json;
  json["model"] = request.model;
  json["output"] = request.output;
  json["mode"] = mode_name(request.how.mode);
  json["model_bytes"] = outcome.model_bytes;
  json["output_bytes"] = outcome.output_bytes;
  if (!outcome.data.empty()) json["data"] = outcome.data;
  if (!outcome.preprocess.empty()) json["preprocess"] = outcome.preprocess;
  json["calibration_samples"] = result.calibration_samples;
  json["held_back_samples"] = result.held_back_samples;
  json["steps"] = Json::array();
  for (const quantize::Step& step : result.steps) {
    Json entry = json_of(step.error);
    entry["what"] = step.what;
    entry["kept"] = step.kept;
    json["steps"].push_back(std::move(entry));
  }
  json["float_operators"] = Json::array();
  for (const quantize::FloatOp& op : result.float_ops)
    json["float_operators"].push_back({{"op", op.op}, {"why", op.why}});
  json["integer_operators"] = result.integer_ops;
  json["conversions"] = result.conversions;
  if (result.error) json["error"] = json_of(*result.error);
  json["warnings"] = result.warnings;
  json["notes"] = outcome.notes;
  for (const std::string& note : result.notes) json["notes"].push_back(note);
  json["calibration_seconds"] = result.calibration_seconds;
  json["seconds"] = outcome.seconds;
  return json.dump(2);
}

void print_quantize_warnings(const compiler::QuantizeOutcome& outcome) {
  std::fflush(stdout);
  if (outcome.preprocess_is_guess) {
    std::fprintf(stderr, "reef: WARNING: preprocessing is a guess (%s, %s); say it with --preprocess\n",
                 outcome.preprocess.c_str(), outcome.preprocess_from.c_str());
  }
  for (const std::string& warning : outcome.result.warnings) {
    std::fprintf(stderr, "reef: WARNING: %s\n", warning.c_str());
  }
}

}  // namespace reef::app
