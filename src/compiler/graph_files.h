// SPDX-License-Identifier: Apache-2.0
// Graphs as passes left them, as text files beside a command's output: --dump.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "passes/pass_log.h"

namespace reef::compiler {

// A file to be written beside another one.
struct FileBeside {
  std::string path;
  std::string text;
};

// "net_edgetpu.tflite", "chip/gelu" -> "net_edgetpu.chip-gelu.txt". The name is that of a pass or of a stage.
std::string graph_path(const std::string& output, std::string name);

// A model as text, with the first bytes of its constants.
std::string model_text(const ir::Model& model);

// The graph of that name as text. Fails where the pass has not run.
Result<std::string> graph_text(const passes::PassLog& log, std::string_view name);

// Everything that the log's request names; nothing without an output.
Result<std::vector<FileBeside>> graph_files(const passes::PassLog& log, const std::string& output);

}  // namespace reef::compiler
