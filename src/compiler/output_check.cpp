// SPDX-License-Identifier: Apache-2.0
#include "compiler/output_check.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/output_place.h"
#include "base/shell_word.h"
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

struct Kind {
  std::string_view what, endings;  // each ending between spaces
};
constexpr Kind kKinds[] = {
    {"a TFLite model", " .tflite "},
    {"a page", " .html .htm "},
    {"a JSON file", " .json "},
    {"an ONNX model", " .onnx "},
    {"a model of ONNX Runtime", " .ort "},
    {"a PyTorch file", " .pt .pth .pt2 .torchscript "},
    {"a file of weights", " .safetensors .ckpt .weights "},
    {"a Keras model", " .keras .h5 .hdf5 "},
    {"a TensorFlow graph", " .pb "},
    {"a Core ML model", " .mlmodel .mlpackage "},
    {"a TensorRT engine", " .engine "},
    {"a file of arrays", " .npz .npy "},
    {"a picture", " .png .jpg .jpeg .webp .bmp .svg "},
    {"a text", " .txt .md .log .csv .yaml .pdf "},
    {"an archive", " .zip .tar "},
    {"a program", " .py "},
};

std::string_view ending_of(Content content) {
  switch (content) {
    case Content::kModel:
      return ".tflite";
    case Content::kPage:
      return ".html";
    case Content::kJson:
      return ".json";
  }
  return "";
}

const Kind* kind_named(std::string_view ending) {
  const std::string word = fmt::format(" {} ", ending);
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const Kind& kind) { return kind.endings.find(word) != std::string_view::npos; });
  return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace

Status check_ending(const std::string& path, Content content) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return ok_status();
  std::string ending = fs::path(path).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const Kind* own = kind_named(ending_of(content));
  const Kind* named = kind_named(ending);
  if (named == nullptr || named == own) return ok_status();
  return invalid_input("'{}' is the name of {}, but what is written there is {}: name it {}", path, named->what,
                       own->what, shell_word(fs::path(path).replace_extension(ending_of(content)).string()));
}

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
