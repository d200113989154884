// SPDX-License-Identifier: Apache-2.0
#include "compiler/quantize_json.h"

#include <nlohmann/json.hpp>

namespace reef::compiler {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const quantize::OutputError& error) {
  Json result;
  result["sqnr_db"] = error.mean_sqnr_db;
  result["sqnr_db_per_output"] = error.sqnr_db;
  if (error.top1_agreement >= 0) result["top1_agreement"] = error.top1_agreement;
  if (error.kept_scores >= 0) result["kept_scores"] = error.kept_scores;
  return result;
}

}  // namespace

const char* mode_name(quantize::Mode mode) {
  using quantize::Mode;
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

Json quantize_json(const QuantizeRequest& request, const QuantizeOutcome& outcome) {
  const quantize::QuantizeResult& result = outcome.result;
  Json json;
  json["model"] = request.model;
  json["output"] = request.output;
  json["mode"] = mode_name(request.how.mode);
  json["model_bytes"] = outcome.model_bytes;
  json["output_bytes"] = outcome.output_bytes;
  if (!outcome.data.empty()) json["data"] = outcome.data;
  if (!outcome.preprocess.empty()) json["preprocess"] = outcome.preprocess;
  if (!outcome.better_preprocess.empty()) {
    json["likely_preprocess"] = {{"preset", outcome.better_preprocess},
                                 {"why", outcome.better_preprocess_why},
                                 {"taken", outcome.preprocess_is_guess}};
  }
  if (outcome.accuracy) {
    json[outcome.accuracy->metric] = {{"float", outcome.accuracy->of_float},
                                      {"quantized", outcome.accuracy->of_quantized},
                                      {"samples", outcome.accuracy->samples}};
  }
  if (outcome.boxes) {
    json["boxes"] = {{"samples", outcome.boxes->samples},
                     {"float", outcome.boxes->boxes},
                     {"kept", outcome.boxes->kept},
                     {"added", outcome.boxes->added},
                     {"mean_overlap", outcome.boxes->overlap},
                     {"mean_score_difference", outcome.boxes->score_difference},
                     {"least_score", outcome.boxes->least_score}};
  }
  json["calibration_samples"] = result.calibration_samples;
  json["held_back_samples"] = result.held_back_samples;
  json["measured_samples"] = result.measured_samples;
  json["steps"] = Json::array();
  for (const quantize::Step& step : result.steps) {
    Json entry = json_of(step.error);
    entry["what"] = step.what;
    entry["kept"] = step.kept;
    if (!step.why_not.empty()) entry["why_not"] = step.why_not;
    entry["gain_db"] = step.gain.db;
    entry["gain_standard_error_db"] = step.gain.standard_error;
    json["steps"].push_back(std::move(entry));
  }
  json["float_operators"] = Json::array();
  for (const quantize::FloatOp& op : result.float_ops)
    json["float_operators"].push_back({{"op", op.op}, {"why", op.why}});
  json["integer_operators"] = result.integer_ops;
  json["conversions"] = result.conversions;
  if (result.error) {
    json["error"] = json_of(*result.error);
    json["usable"] = result.lost.empty();
    json["lost_outputs"] = result.lost;
  }
  json["outputs"] = Json::array();
  for (const quantize::PartError& error : result.parts) {
    json["outputs"].push_back({{"name", error.part.name},
                               {"output", error.part.output},
                               {"axis", error.part.axis},
                               {"begin", error.part.begin},
                               {"size", error.part.size},
                               {"sqnr_db", error.sqnr_db},
                               {"min", error.min},
                               {"max", error.max},
                               {"is_dead", error.is_dead}});
  }
  json["warnings"] = result.warnings;
  json["notes"] = outcome.notes;
  for (const std::string& note : result.notes) json["notes"].push_back(note);
  if (!request.report.empty()) json["report"] = request.report;
  if (!outcome.worst_layers.empty()) json["worst_layers"] = outcome.worst_layers;
  json["calibration_seconds"] = result.calibration_seconds;
  json["seconds"] = outcome.seconds;
  return json;
}

}  // namespace reef::compiler
