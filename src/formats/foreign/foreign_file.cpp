// SPDX-License-Identifier: Apache-2.0
// Sources of the marks: the formats' own writers (torch/csrc/serialize, Keras' saving_lib, TensorFlow's
// saved_model.proto and graph.proto, MediaPipe's model bundles), and files made by them.
#include "formats/foreign/foreign_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/zip/archive.h"

namespace reef::formats {
namespace {

using namespace std::string_view_literals;
namespace fs = std::filesystem;

constexpr std::uint64_t kPickleStart = 1 << 16;  // bytes of a pickle in which the classes it needs are looked for

std::string_view text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::string stem_of(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return stem.empty() ? "model" : stem;
}

std::string then_compile(const std::string& stem) {
  return fmt::format("then `reef compile {}.onnx --data PICTURES`", stem);
}

ForeignFile pytorch(const std::string& path) {
  const std::string stem = stem_of(path);
  return {ForeignKind::kPytorch,
          fmt::format("it is a PyTorch file. Weights alone are no network: load it in Python, where the network is "
                      "defined, and export that: torch.onnx.export(model.eval(), example_input, '{}.onnx'); {}",
                      stem, then_compile(stem))};
}

ForeignFile ultralytics(const std::string& path) {
  return {ForeignKind::kUltralytics, fmt::format("it is a YOLO checkpoint of Ultralytics: `reef convert {} -o "
                                                 "{}.tflite` makes a TFLite model of it (with Ultralytics)",
                                                 path, stem_of(path))};
}

ForeignFile torch_script(const std::string& path) {
  const std::string stem = stem_of(path);
  return {ForeignKind::kTorchScript,
          fmt::format("it is a TorchScript module: `reef convert {} -o {}.tflite --input-shape 1,3,224,224` makes a "
                      "TFLite model of it (with PyTorch; the shape is that of its input)",
                      path, stem)};
}

ForeignFile torch_export(const std::string& path) {
  const std::string stem = stem_of(path);
  return {
      ForeignKind::kTorchExport,
      fmt::format("it is a program of torch.export: `reef convert {} -o {}.tflite` makes a TFLite model of it (with "
                  "PyTorch)",
                  path, stem)};
}

ForeignFile tensorflow(ForeignKind kind, std::string_view what, const std::string& path) {
  return {kind, fmt::format("it is {}: `reef convert {} -o {}.tflite` makes a TFLite model of it (with TensorFlow)",
                            what, path, stem_of(path))};
}

ForeignFile other(std::string_view advice) { return {ForeignKind::kOther, std::string(advice)}; }

// The pickle of a checkpoint names the classes that it needs.
ForeignFile pytorch_by_pickle(std::string_view pickle, const std::string& path) {
  return pickle.find("ultralytics.") != pickle.npos ? ultralytics(path) : pytorch(path);
}

ForeignFile bundle(const zip::Archive& archive, std::string_view ending, const std::string& path) {
  std::vector<std::string> names;
  for (const zip::Member& member : archive.members()) {
    if (member.name.ends_with(ending)) names.push_back(member.name);
  }
  constexpr std::size_t kShown = 6;
  const std::size_t more = names.size() > kShown ? names.size() - kShown : 0;
  const std::string first = names[0];
  names.resize(std::min(names.size(), kShown));
  return {ForeignKind::kBundle,
          fmt::format("it is a zip archive that holds {}{}: `unzip {} {}`, then give that file", fmt::join(names, ", "),
                      more > 0 ? fmt::format(" and {} more", more) : "", path, first)};
}

ForeignFile recognize_archive(const zip::Archive& archive, const std::string& path) {
  using Test = std::function<bool(const std::string&)>;
  const auto find = [&](const Test& test) {
    const auto& members = archive.members();
    const auto found = std::find_if(members.begin(), members.end(), [&](const auto& m) { return test(m.name); });
    return found == members.end() ? nullptr : &*found;
  };
  const auto ends = [&](std::string_view ending) {
    return find([&](const std::string& name) { return name.ends_with(ending); });
  };
  if (find([](const auto& name) { return name == "model.weights.h5"; }) != nullptr) {
    return tensorflow(ForeignKind::kKeras, "a Keras model", path);
  }
  if (ends("/archive_format") != nullptr || ends("serialized_exported_program.json") != nullptr) {
    return torch_export(path);
  }
  if (const zip::Member* pickle = find([](const auto& n) { return n == "data.pkl" || n.ends_with("/data.pkl"); })) {
    const bool has_code = find([](const auto& name) { return name.find("/code/") != name.npos; }) != nullptr;
    if (has_code && ends("constants.pkl") != nullptr) return torch_script(path);
    const auto start = archive.read_start(*pickle, kPickleStart);
    return pytorch_by_pickle(start.ok() ? text_of(*start) : std::string_view(), path);
  }
  for (const std::string_view ending : {".tflite"sv, ".onnx"sv}) {
    if (ends(ending) != nullptr) return bundle(archive, ending, path);
  }
  if (ends("saved_model.pb") != nullptr) {
    return {ForeignKind::kSavedModel, fmt::format("it is a zip archive with a SavedModel: `unzip {} -d {}`, then `reef "
                                                  "convert` the folder with saved_model.pb",
                                                  path, stem_of(path))};
  }
  if (ends(".npy") != nullptr) return other("it is an .npz file of arrays: data for --data, no model");
  return other("it is a zip archive without a model that is known: unpack it and give the model in it");
}

// GraphDef starts with a node, whose first field is its name.
bool looks_like_frozen_graph(std::string_view text) {
  if (text.size() < 8 || text[0] != 0x0a) return false;
  std::size_t at = 1;
  while (at < 6 && (static_cast<unsigned char>(text[at]) & 0x80) != 0) ++at;
  ++at;  // behind the node's length
  if (at + 1 >= text.size() || text[at] != 0x0a) return false;
  const auto length = static_cast<unsigned char>(text[at + 1]);
  if (length == 0 || length >= 0x80 || at + 3 + length >= text.size()) return false;
  return text[at + 2 + length] == 0x12;  // the node's operator
}

ForeignFile frozen_graph(const std::string& path) {
  const std::string stem = stem_of(path);
  return {ForeignKind::kFrozenGraph,
          fmt::format("it is a frozen graph of TensorFlow: `reef convert {} -o {}.tflite` makes a TFLite model of it "
                      "(with TensorFlow)",
                      path, stem)};
}

// Formats without a mark at the beginning, by the ending of the name.
ForeignFile recognize_name(const std::string& path) {
  struct Row {
    std::string_view ending, meaning;
  };
  static constexpr Row kRows[] = {
      {".hef",
       "it is named as a model for a Hailo chip. Compiled models cannot be turned back: give the ONNX file it was "
       "made from"},
      {".rknn",
       "it is named as a model for a Rockchip NPU. Compiled models cannot be turned back: give the ONNX file it "
       "was made from"},
      {".engine",
       "it is named as a TensorRT engine. Engines cannot be turned back: give the ONNX file it was made from"},
      {".trt", "it is named as a TensorRT engine. Engines cannot be turned back: give the ONNX file it was made from"},
      {".plan", "it is named as a TensorRT engine. Engines cannot be turned back: give the ONNX file it was made from"},
      {".blob",
       "it is named as a model for a Myriad chip (OpenVINO, OAK cameras). Compiled models cannot be turned back: "
       "give the ONNX file it was made from"},
      {".mlmodel", "it is named as a Core ML model: give the ONNX, PyTorch or Keras model that it was made from"},
      {".mnn", "it is named as an MNN model: give the ONNX file it was made from"},
      {".kmodel", "it is named as a model for a Kendryte chip: give the TFLite or ONNX file it was made from"},
      {".weights",
       "it is named as weights of Darknet: convert them to PyTorch or ONNX first, with the tool of your YOLO"},
      {".cfg", "it is named as a network of Darknet: convert it to PyTorch or ONNX first, with the tool of your YOLO"},
      {".caffemodel", "it is named as a Caffe model: convert it to ONNX first"},
      {".safetensors",
       "it is named as a safetensors file. Weights alone are no network: load them in PyTorch and export "
       "to ONNX"},
      {".npz", "it is named as an .npz file of arrays: data for --data, no model"},
      {".py", "it is named as a program: run it, and let it export its model to ONNX or TFLite"},
      {".ipynb", "it is named as a notebook: run it, and let it export its model to ONNX or TFLite"},
  };
  std::string lower = path;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Row& row : kRows) {
    if (lower.ends_with(row.ending)) return other(row.meaning);
  }
  return {};
}

ForeignFile recognize_start(std::string_view text, const std::string& path) {
  struct Row {
    std::string_view start, meaning;
  };
  static constexpr Row kRows[] = {
      {"PK\x03\x04", "it is a zip archive, and its directory cannot be read: it is cut short or damaged"},
      {"\x1f\x8b", "it is compressed with gzip: unpack it (gunzip or tar xzf) and give the model in it"},
      {"version https://git-lfs", "it is a Git LFS pointer, not the file itself: run `git lfs pull`"},
      {"\xff\xd8\xff", "it is a picture: the model comes first, and the picture is given with --image"},
      {"\x89PNG", "it is a picture: the model comes first, and the picture is given with --image"},
      {"\x01HEF",
       "it is compiled for a Hailo chip. Compiled models cannot be turned back: give the ONNX file it was "
       "made from"},
      {"RKNN",
       "it is compiled for a Rockchip NPU. Compiled models cannot be turned back: give the ONNX file it was made "
       "from"},
      {"ftrt", "it is a TensorRT engine. Engines cannot be turned back: give the ONNX file it was made from"},
      {"7767517", "it is an ncnn model: give the ONNX or PyTorch model it was made from"},
      {"GGUF", "it is a language model for llama.cpp: the Edge TPU has no use for it"},
      {"\x93NUMPY", "it is an array of NumPy: data for --data, no model"},
      {"7z\xbc\xaf", "it is a 7z archive: unpack it and give the model in it"},
      {"\x7f"
       "ELF",
       "it is a program or library, no model"},
      {"{", "it is JSON, no model"},
  };
  for (const Row& row : kRows) {
    if (text.starts_with(row.start)) return other(row.meaning);
  }
  if (text.starts_with("\x89HDF")) return tensorflow(ForeignKind::kHdf5, "an HDF5 file, as Keras writes", path);
  if (text.starts_with("\x80\x02"sv))
    return pytorch_by_pickle(text.substr(0, kPickleStart), path);  // before PyTorch 1.6
  if (text.starts_with("\x08\x01\x12"sv)) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return {ForeignKind::kSavedModel,
            fmt::format("it is part of a TensorFlow SavedModel: give the folder, `reef convert {} -o model.tflite`",
                        folder.empty() ? "." : folder)};
  }
  if (looks_like_frozen_graph(text)) return frozen_graph(path);
  const std::size_t first = text.substr(0, 256).find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '<') {
    const bool is_openvino = text.substr(0, 1024).find("<net ") != text.npos;
    return other(is_openvino ? "it is an OpenVINO model: give the ONNX file that it was made from"
                             : "it is a web page or XML: download the raw file instead");
  }
  if (text.size() >= 8 && text.substr(4, 4) == "DWN1") {
    return other("it is an Edge TPU executable taken out of a model: give the model");
  }
  if (text.size() >= 8 && text.substr(4, 4) == "ORTM") {
    return other("it is ONNX Runtime's own format: give the .onnx file that it was made from");
  }
  if (text.size() >= 8 && text.substr(4, 4) == "TFL3") return other("it is a TFLite model: name it so, with .tflite");
  // ONNX is a protobuf message that starts with field 1, its version, followed by field 2 or 7 (producer, graph).
  if (text.size() > 3 && text[0] == 0x08 && text[1] >= 2 && text[1] < 64 && (text[2] == 0x12 || text[2] == 0x3a)) {
    return other("it looks like an ONNX model: name it so, with .onnx");
  }
  if (text.size() >= 12 && text.substr(8, 4) == "TFL3") {
    return other("4 bytes too many stand in front of a TFLite model: cut them off");
  }
  if (text.size() >= 10 && text.substr(8, 2) == "{\"" && text[7] == '\0') {
    return other("it is a safetensors file. Weights alone are no network: load them in PyTorch and export to ONNX");
  }
  return {};
}

}  // namespace

ForeignFile recognize_foreign(const Bytes& file, const std::string& path) {
  const std::string_view text = text_of(file);
  if (text.starts_with("PK\x03\x04")) {
    if (const auto archive = zip::Archive::open(file); archive.ok()) return recognize_archive(*archive, path);
  }
  ForeignFile found = recognize_start(text, path);
  return found.kind == ForeignKind::kUnknown ? recognize_name(path) : found;
}

ForeignFile recognize_folder(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {};
  const std::filesystem::path folder(path);
  if (std::filesystem::exists(folder / "saved_model.pb", ignored)) {
    const std::string name =
        folder.has_filename() ? folder.filename().string() : folder.parent_path().filename().string();
    return {
        ForeignKind::kSavedModel,
        fmt::format("it is a TensorFlow SavedModel: `reef convert {} -o {}.tflite` makes a TFLite model of it (with "
                    "TensorFlow)",
                    path, name.empty() || name == "." ? "model" : name)};
  }
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    const std::string ending = it->path().extension().string();
    if (ending == ".jpg" || ending == ".png" || ending == ".jpeg") {
      return other("it is a folder of pictures: give the model first, and the pictures with --data");
    }
  }
  return other("it is a folder: give a model file in it");
}

}  // namespace reef::formats
