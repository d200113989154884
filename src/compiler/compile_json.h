// SPDX-License-Identifier: Apache-2.0
// What `reef compile --json` prints and the library returns (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "compiler/pipeline.h"

namespace reef::compiler {

nlohmann::ordered_json pipeline_json(const PipelineResult& result);

}  // namespace reef::compiler
