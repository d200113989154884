// SPDX-License-Identifier: Apache-2.0
#include "compiler/front_end.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/ranges.h>

#include "base/file.h"
#include "data/model_card.h"
#include "formats/foreign/foreign_file.h"
#include "formats/onnx/reader.h"
#include "formats/tflite/reader.h"
#include "formats/zip/archive.h"
#include "import/onnx/importer.h"
#include "ir/densify.h"
#include "ir/verify.h"
#include "ops/settled_shapes.h"
#include "ops/standard_forms.h"

namespace reef::compiler {
namespace {

bool ends_with(std::string_view path, std::string_view ending) {
  return path.size() >= ending.size() && path.substr(path.size() - ending.size()) == ending;
}

// ONNX files have no mark: the name decides, and for other names the first bytes.
Result<bool> is_onnx(const std::string& path) {
  if (ends_with(path, ".onnx")) return true;
  if (ends_with(path, ".tflite")) return false;
  const formats::ForeignFile folder = formats::recognize_folder(path);
  REEF_REQUIRE(folder.advice.empty(), "'{}' is no model file: {}", path, folder.advice);
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, onnx::kMaxFileBytes));
  const bool is_tflite = file.size() >= 8 && std::memcmp(file.data() + 4, "TFL3", 4) == 0;
  if (is_tflite || !onnx::looks_like_onnx(file.span())) return false;
  // A SavedModel's saved_model.pb starts as ONNX of a version that nobody writes.
  return formats::recognize_foreign(file, path).kind != formats::ForeignKind::kSavedModel;
}

// A model in a bundle (a zip archive, as MediaPipe's .task): its only one, or the one that is named behind a colon.
struct Bundled {
  std::string name;
  Bytes file;
};

// Nothing: the path is no bundle.
Result<std::optional<Bundled>> from_bundle(const std::string& path) {
  std::error_code ignored;
  std::string file = path, wanted;
  const std::size_t colon = path.rfind(':');
  if (colon != std::string::npos && !std::filesystem::exists(path, ignored)) {
    file = path.substr(0, colon);
    wanted = path.substr(colon + 1);
  }
  if (!std::filesystem::is_regular_file(file, ignored) || ends_with(file, ".tflite") || ends_with(file, ".onnx")) {
    return std::optional<Bundled>();
  }
  REEF_ASSIGN_OR_RETURN(const Bytes bytes, read_file(file, onnx::kMaxFileBytes));
  if (formats::recognize_foreign(bytes, file).kind != formats::ForeignKind::kBundle) return std::optional<Bundled>();
  REEF_ASSIGN_OR_RETURN(const zip::Archive archive, zip::Archive::open(bytes));
  std::vector<std::string> names;
  const zip::Member* found = nullptr;
  for (const zip::Member& member : archive.members()) {
    if (!ends_with(member.name, ".tflite")) continue;
    names.push_back(member.name);
    if (wanted.empty() || member.name == wanted) found = &member;
  }
  REEF_REQUIRE(!names.empty(), "'{}': {}", file, formats::recognize_foreign(bytes, file).advice);
  REEF_REQUIRE(found != nullptr, "'{}' holds no '{}'; it holds {}", file, wanted, fmt::join(names, ", "));
  REEF_REQUIRE(!wanted.empty() || names.size() == 1, "'{}' holds {} models, {}; name one, as '{}:{}'", file,
               names.size(), fmt::join(names, ", "), file, names[0]);
  REEF_ASSIGN_OR_RETURN(Bytes model, archive.read(*found));
  return std::optional<Bundled>(Bundled{found->name, std::move(model)});
}

// What only an ONNX file has a use for is a mistake beside another one.
Status check_tflite_options(const std::string& path, const FrontEndOptions& options) {
  const bool are_used = !options.input_values.empty() || !options.keep_nchw.empty() || options.pad_selections ||
                        options.unroll || !options.simplify;
  REEF_REQUIRE(!are_used,
               "'{}' is a TFLite model; --input-value, --keep-nchw, --pad-nms, --unroll and --no-simplify are for ONNX",
               path);
  return ok_status();
}

// "" is the name of the only input that is none of the weights.
Status name_only_input(const onnx::Model& model, InputShapes& shapes) {
  const auto nameless = shapes.find("");
  if (nameless == shapes.end()) return ok_status();
  std::vector<std::string> names;
  for (const onnx::ValueInfo& info : model.graph.inputs) {
    const auto is_it = [&](const onnx::Tensor& tensor) { return tensor.name == info.name; };
    const auto& weights = model.graph.initializers;
    if (std::none_of(weights.begin(), weights.end(), is_it)) names.push_back(info.name);
  }
  REEF_REQUIRE(names.size() == 1, "--input-shape: say which of the {} inputs, as name:1,2,3: {}", names.size(),
               fmt::join(names, ", "));
  shapes[names[0]] = nameless->second;
  shapes.erase("");
  return ok_status();
}

Result<FrontEndResult> load_onnx(const std::string& path, const FrontEndOptions& options) {
  import::ImportOptions import_options;
  import_options.input_shapes = options.input_shapes;
  import_options.keep_nchw = options.keep_nchw;
  import_options.pad_selections = options.pad_selections;
  import_options.unroll = options.unroll;
  import_options.budget = options.budget;
  FrontEndResult result;
  result.format = ModelFormat::kOnnx;
  std::vector<std::string> names;
  data::ModelCard card;
  {
    REEF_ASSIGN_OR_RETURN(onnx::Model model, onnx::load_model(path));
    card = data::card_of_properties(model.metadata);
    REEF_RETURN_IF_ERROR(name_only_input(model, import_options.input_shapes).in(path));
    for (const auto& [name, values] : options.input_values) {
      REEF_ASSIGN_OR_RETURN(import_options.input_values[name], import::input_value(model, name, values));
    }
    auto imported = import::import_onnx(model, import_options);
    if (!imported.ok()) return imported.status().in(path);
    result.model = std::move(imported->model);
    result.notes = std::move(imported->notes);
    names = std::move(imported->value_names);
  }
  result.log = passes::PassLog(options.log);
  if (options.simplify) REEF_RETURN_IF_ERROR(simplify_once(result).status().in(path));
  data::store_card(card, result.model);
  for (const ir::Tensor& tensor : result.model.subgraphs[0].tensors) {
    std::string origin = import::origin_of(names, tensor.name);
    if (!origin.empty()) result.origins.push_back({tensor.name, std::move(origin)});
  }
  return result;
}

// Shapes that the file did not know (rank 0) contradict nothing and are not worth a word.
std::string correction_note(const ir::Model& model, const std::vector<ops::ShapeCorrection>& corrections) {
  const auto is_claim = [](const ops::ShapeCorrection& c) { return c.declared.rank() > 0 && c.subgraph == 0; };
  const auto first = std::find_if(corrections.begin(), corrections.end(), is_claim);
  if (first == corrections.end()) return "";
  const auto others = std::count_if(first + 1, corrections.end(), is_claim);
  return fmt::format(
      "declared shapes are not what the operators give: {}{}; the operators' shapes are used, as TFLite "
      "does",
      ops::describe(model, *first), others == 0 ? "" : fmt::format(" (and {} more)", others));
}

Result<FrontEndResult> admitted(FrontEndResult result, const FrontEndOptions& options) {
  REEF_ASSIGN_OR_RETURN(result.shape_note, admit_model(result.model, options));
  if (!result.shape_note.empty()) result.notes.push_back(result.shape_note);
  return result;
}

Result<FrontEndResult> in(const std::string& path, Result<FrontEndResult> result) {
  if (!result.ok()) return result.status().in(fmt::format("'{}'", path));
  return result;
}

}  // namespace

Result<passes::SimplifyReport> simplify_once(FrontEndResult& loaded) {
  if (loaded.is_simplified) return passes::SimplifyReport{};
  loaded.is_simplified = true;
  return passes::simplify(loaded.model, {}, loaded.log);
}

Result<std::string> admit_model(ir::Model& model, const FrontEndOptions& options) {
  REEF_RETURN_IF_ERROR(ir::verify(model));
  REEF_RETURN_IF_ERROR(ir::densify(model, options.budget));
  ops::SettledShapes settled = ops::settle_shapes(model);
  if (ops::use_standard_forms(model)) settled = ops::settle_shapes(model);
  if (!options.may_resize) REEF_RETURN_IF_ERROR(settled.refusal);
  return correction_note(model, settled.corrections);
}

Result<FrontEndResult> load_any_model(const std::string& path, const FrontEndOptions& options) {
  REEF_ASSIGN_OR_RETURN(const std::optional<Bundled> bundled, from_bundle(path));
  if (bundled) {
    REEF_RETURN_IF_ERROR(check_tflite_options(path, options));
    Result<FrontEndResult> result = read_tflite_model(bundled->file, options);
    if (result.ok()) result->notes.push_back(fmt::format("taken from the bundle: {}", bundled->name));
    return in(path, std::move(result));
  }
  REEF_ASSIGN_OR_RETURN(const bool onnx, is_onnx(path));
  if (!onnx) return load_tflite_model(path, options);
  REEF_ASSIGN_OR_RETURN(FrontEndResult result, load_onnx(path, options));
  return in(path, admitted(std::move(result), options));
}

Result<FrontEndResult> load_tflite_model(const std::string& path, const FrontEndOptions& options) {
  REEF_RETURN_IF_ERROR(check_tflite_options(path, options));
  FrontEndResult result;
  result.log = passes::PassLog(options.log);
  REEF_ASSIGN_OR_RETURN(result.model, tflite::load_model(path, &result.notes));
  if (options.resizes_tflite && !options.input_shapes.empty()) {
    REEF_RETURN_IF_ERROR(ir::verify(result.model).in(path));
    REEF_RETURN_IF_ERROR(resize_inputs(result.model, options.input_shapes).in(path));
  }
  return in(path, admitted(std::move(result), options));
}

Result<FrontEndResult> read_tflite_model(const Bytes& file, const FrontEndOptions& options) {
  FrontEndResult result;
  result.log = passes::PassLog(options.log);
  REEF_ASSIGN_OR_RETURN(result.model, tflite::read_model(file, &result.notes));
  return admitted(std::move(result), options);
}

}  // namespace reef::compiler
