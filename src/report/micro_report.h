// SPDX-License-Identifier: Apache-2.0
// The report of `reef check --target micro` and `--target tflm` on the part that TFLite Micro runs, as text and as JSON
// (docs/json.md).
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "ir/model.h"
#include "micro/assess.h"

namespace reef::report {

// `model` is what was assessed.
std::string micro_text(std::string_view file, const ir::Model& model, const micro::Assessment& assessment);
nlohmann::ordered_json micro_json(std::string_view file, const ir::Model& model, const micro::Assessment& assessment);

// The first reason why not, with the operator and what to do, for a refusal; further ones are counted.
std::string micro_refusal(const ir::Model& model, const micro::Assessment& assessment);

}  // namespace reef::report
