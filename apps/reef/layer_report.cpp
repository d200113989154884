// SPDX-License-Identifier: Apache-2.0
#include "layer_report.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "compiler/front_end.h"
#include "console.h"
#include "formats/numpy/npy.h"
#include "ir/describe.h"

namespace reef::app {
namespace {

using runtime::LayerTensor;
using Json = nlohmann::ordered_json;

std::string_view state_name(LayerTensor::State state) {
  switch (state) {
    case LayerTensor::State::kComputed:
      return "computed";
    case LayerTensor::State::kMoved:
      return "moved";
    case LayerTensor::State::kReturned:
      return "returned";
    case LayerTensor::State::kNotOnChip:
      return "not on the chip";
    case LayerTensor::State::kNotLocated:
      return "not located";
  }
  return "";
}

std::string file_name(std::int32_t tensor, std::string_view name) {
  constexpr std::size_t kLongest = 80;
  std::string safe;
  for (const char c : name.substr(0, kLongest)) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    safe += is_plain ? c : '_';
  }
  return fmt::format("layer{:04}_{}.npy", tensor, safe);
}

bool has_tensor(const ir::Subgraph& graph, std::string_view name) {
  return std::any_of(graph.tensors.begin(), graph.tensors.end(), [&](const ir::Tensor& t) { return t.name == name; });
}

// A name may itself contain commas: as a whole it comes first.
Result<std::vector<std::string>> wanted_names(const std::string& text, const ir::Subgraph& graph) {
  std::vector<std::string> names;
  if (text == "all") return names;
  if (has_tensor(graph, text)) return std::vector<std::string>{text};
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    names.push_back(text.substr(at, end - at));
    REEF_REQUIRE(
        has_tensor(graph, names.back()),
        "--layers: the source has no tensor '{}'; `reef inspect` lists its tensors, and --layers all takes all "
        "of them",
        names.back());
    at = end + 1;
  }
  return names;
}

}  // namespace

Result<std::unique_ptr<LayerReport>> LayerReport::create(const LayerOptions& options, const ir::Model& compiled,
                                                         std::int64_t max_steps, const Budget& budget) {
  std::unique_ptr<LayerReport> report;
  if (!options.are_wanted()) return report;
  REEF_REQUIRE(!options.source.empty(),
               "--layers needs --source: a compiled model does not say what its layers are, the model that it was "
               "compiled from does");
  report = std::make_unique<LayerReport>();
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult loaded, compiler::load_tflite_model(options.source));
  report->source_ = std::move(loaded.model);
  REEF_REQUIRE(!report->source_.subgraphs.empty(), "{} has no graph", options.source);
  REEF_ASSIGN_OR_RETURN(report->names_, wanted_names(options.layers, report->source_.subgraphs[0]));
  auto tensors = runtime::LayerTensors::create(compiled, report->source_, max_steps, budget);
  if (!tensors.ok()) return tensors.status().in("--source " + options.source);
  report->tensors_ = std::move(tensors).value();
  return report;
}

Status LayerReport::take(const std::string& folder, ResultFiles& results) {
  for (LayerTensor& layer : tensors_->tensors()) {
    Entry entry{std::move(layer), ""};
    const std::string& name = tensor_of(entry).name;
    if (!names_.empty() && std::find(names_.begin(), names_.end(), name) == names_.end()) continue;
    entries_.push_back(std::move(entry));
  }
  for (const std::string& name : names_) {
    const bool is_there =
        std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return tensor_of(e).name == name; });
    REEF_REQUIRE(is_there, "--layers: '{}' is not computed by the compiled part of the model", name);
  }
  if (folder.empty()) return ok_status();
  for (Entry& entry : entries_) {
    if (!entry.layer.has_bytes()) continue;
    const ir::Tensor& tensor = tensor_of(entry);
    entry.file = folder + "/" + file_name(entry.layer.tensor, tensor.name);
    const std::vector<std::int64_t> shape(tensor.shape.dims().begin(), tensor.shape.dims().end());
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> file, numpy::write_npy(tensor.type, shape, entry.layer.bytes));
    results.add(entry.file, std::move(file));
  }
  results.add(folder + "/layers.json", json().dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return ok_status();
}

Json LayerReport::json() const {
  Json list = Json::array();
  for (const Entry& entry : entries_) {
    const ir::Tensor& tensor = tensor_of(entry);
    Json& json = list.emplace_back(Json{{"name", tensor.name},
                                        {"tensor", entry.layer.tensor},
                                        {"op", entry.layer.op},
                                        {"op_type", op_of(entry).type},
                                        {"type", ir::type_name(tensor.type)},
                                        {"shape", tensor.shape.dims()},
                                        {"state", state_name(entry.layer.state)}});
    if (tensor.quantization.scale.size() == 1) {
      json["scale"] = tensor.quantization.scale[0];
      json["zero_point"] = tensor.quantization.zero_point.empty() ? 0 : tensor.quantization.zero_point[0];
    }
    if (!entry.layer.has_bytes()) json["reason"] = entry.layer.reason;
    if (!entry.file.empty()) json["file"] = entry.file;
  }
  return list;
}

void LayerReport::print() const {
  std::size_t given = 0;
  for (const Entry& entry : entries_) {
    const ir::Tensor& tensor = tensor_of(entry);
    given += entry.layer.has_bytes() ? 1 : 0;
    print_text("  {:>4}  {:<18} {:<22} {:<10} {}\n", entry.layer.op, op_of(entry).type,
               fmt::format("{}{}", ir::type_name(tensor.type), tensor.shape.to_string()), state_name(entry.layer.state),
               ir::describe_name(tensor.name));
    if (!entry.layer.has_bytes()) print_text("          {}\n", entry.layer.reason);
  }
  print_text("layers as the chip computed them: {} of {} tensors\n", given, entries_.size());
}

}  // namespace reef::app
