// SPDX-License-Identifier: Apache-2.0
#include "compiler/front_end.h"

#include <cstring>

#include "base/file.h"
#include "formats/onnx/reader.h"
#include "formats/tflite/reader.h"
#include "import/onnx/importer.h"
#include "simplify/simplify.h"

namespace reef::compiler {
namespace {

bool ends_with(std::string_view path, std::string_view ending) {
  return path.size() >= ending.size() && path.substr(path.size() - ending.size()) == ending;
}

// ONNX files have no mark: the name decides, and for other names the first bytes.
Result<bool> is_onnx(const std::string& path) {
  if (ends_with(path, ".onnx")) return true;
  if (ends_with(path, ".tflite")) return false;
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, onnx::kMaxFileBytes));
  const bool is_tflite = file.size() >= 8 && std::memcmp(file.data() + 4, "TFL3", 4) == 0;
  return !is_tflite && onnx::looks_like_onnx(file.span());
}

Result<FrontEndResult> load_onnx(const std::string& path, const FrontEndOptions& options) {
  import::ImportOptions import_options;
  import_options.input_shapes = options.input_shapes;
  import_options.keep_nchw = options.keep_nchw;
  import_options.pad_selections = options.pad_selections;
  import_options.unroll = options.unroll;
  FrontEndResult result;
  result.format = ModelFormat::kOnnx;
  std::vector<std::string> names;
  {
    REEF_ASSIGN_OR_RETURN(onnx::Model model, onnx::load_model(path));
    for (const auto& [name, values] : options.input_values) {
      REEF_ASSIGN_OR_RETURN(import_options.input_values[name], import::input_value(model, name, values));
    }
    auto imported = import::import_onnx(model, import_options);
    if (!imported.ok()) return imported.status().in(path);
    result.model = std::move(imported->model);
    result.notes = std::move(imported->notes);
    names = std::move(imported->value_names);
  }
  if (options.simplify) {
    const auto report = simplify::simplify(result.model);
    if (!report.ok()) return report.status().in(path);
  }
  for (const ir::Tensor& tensor : result.model.subgraphs[0].tensors) {
    std::string origin = import::origin_of(names, tensor.name);
    if (!origin.empty()) result.origins.push_back({tensor.name, std::move(origin)});
  }
  return result;
}

}  // namespace

Result<FrontEndResult> load_any_model(const std::string& path, const FrontEndOptions& options) {
  REEF_ASSIGN_OR_RETURN(const bool onnx, is_onnx(path));
  if (onnx) return load_onnx(path, options);
  FrontEndResult result;
  REEF_ASSIGN_OR_RETURN(result.model, tflite::load_model(path, &result.notes));
  return result;
}

}  // namespace reef::compiler
