// SPDX-License-Identifier: Apache-2.0
// What was decided for each compiled part and what it costs: --explain of reef compile.
#pragma once

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "compiler/pipeline.h"

namespace reef::app {

// The record of passes that changed the model of this file, before and after quantization.
passes::PassLog log_of(const compiler::CompiledFile& file, const compiler::PipelineResult& result);

Status print_explanation(const compiler::CompiledFile& file, const compiler::PipelineResult& result);
// Adds "passes" to every file and "explanation" to every compiled part in the object that pipeline_json made.
Status add_explanations(const compiler::PipelineResult& result, nlohmann::ordered_json& json);

}  // namespace reef::app
