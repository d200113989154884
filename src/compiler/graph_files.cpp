// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph_files.h"

#include <algorithm>
#include <filesystem>

#include "ir/text.h"

namespace reef::compiler {

constexpr std::size_t kShownConstantBytes = 16;

std::string graph_path(const std::string& output, std::string name) {
  std::replace(name.begin(), name.end(), '/', '-');
  return std::filesystem::path(output).replace_extension(name + ".txt").string();
}

std::string model_text(const ir::Model& model) { return ir::print(model, {.max_constant_bytes = kShownConstantBytes}); }

Result<std::string> graph_text(const passes::PassLog& log, std::string_view name) {
  const passes::KeptGraph* kept = log.find(name);
  REEF_REQUIRE(kept != nullptr,
               "'{}' did not run on this model, so there is no graph behind it: float passes run on ONNX and float "
               "models, chip passes on quantized ones, and some only when asked for (docs/passes.md)",
               name);
  return model_text(kept->model);
}

Result<std::vector<FileBeside>> graph_files(const passes::PassLog& log, const std::string& output) {
  std::vector<FileBeside> files;
  if (output.empty()) return files;
  for (const std::string& name : log.request().graphs) {
    REEF_ASSIGN_OR_RETURN(std::string text, graph_text(log, name));
    files.push_back({graph_path(output, name), std::move(text)});
  }
  return files;
}

}  // namespace reef::compiler
