// SPDX-License-Identifier: Apache-2.0
// `reef learn` for programs: its options from JSON, its report as JSON (docs/json.md).
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "compiler/learn_driver.h"

namespace reef::compiler {

struct LearnRequest {
  LearnOptions options;
  std::string output;        // file
  std::string plot;          // file; empty: none
  std::string model_labels;  // the file that options.model_labels come from; empty: none
};
// "auto", "on" or "off".
// The device that pictures are embedded on where `word` names it or, being empty, does not.
Result<std::string> device_for_learning(const std::string& word, bool compiles);

Result<Mirroring> mirroring_from(std::string_view word);

// Names are those of the command's options with _ for -: {"method": "imprint", "model": ..., "data": ..., "output":
// ...}. An unknown name, or a value of another type, is an error.
Result<LearnRequest> learn_request_from_json(std::string_view text);

// Trains and writes all files or none.
struct LearnedReport {
  LearnResult result;
  LearnedFiles files;
};
Result<LearnedReport> learn_and_write(const LearnRequest& request);

nlohmann::ordered_json learned_json(const LearnOptions& options, const LearnResult& result, const std::string& output,
                                    const std::string& labels);

}  // namespace reef::compiler
