// SPDX-License-Identifier: Apache-2.0
#include "compiler/output_check.h"

#include <algorithm>
#include <filesystem>

#include "base/output_place.h"
#include "data/dataset_files.h"
#include "formats/onnx/external_data.h"

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;

void append(const std::vector<std::string>& more, std::vector<std::string>& files) {
  files.insert(files.end(), more.begin(), more.end());
}

// The model's file and those that it refers to.
std::vector<std::string> files_of(const std::string& model) {
  std::vector<std::string> files = {model};
  std::error_code error;
  if (fs::is_directory(model, error)) {
    for (fs::recursive_directory_iterator it(model, error), end; !error && it != end; it.increment(error)) {
      files.push_back(it->path().string());
    }
  } else if (!model.ends_with(".tflite")) {
    // A file that is no ONNX model refers to none; whoever reads it says what is wrong with it.
    if (const auto external = onnx::external_files(model); external.ok()) append(*external, files);
  }
  return files;
}

}  // namespace

Status check_files(const CommandFiles& files) {
  const auto is_there = [](const std::string& path) {
    std::error_code error;
    return !path.empty() && fs::exists(path, error);
  };
  std::vector<std::string> inputs = files.others;
  // What is not there cannot be an input: folders are searched and models read only where something is replaced.
  if (std::any_of(files.outputs.begin(), files.outputs.end(), is_there)) {
    for (const std::string& model : files.models) append(files_of(model), inputs);
    for (const data::DatasetOptions& dataset : files.data) append(data::dataset_files(dataset), inputs);
  }
  return check_outputs(files.outputs, inputs);
}

}  // namespace reef::compiler
