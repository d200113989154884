// SPDX-License-Identifier: Apache-2.0
#include "compiler/prune_files.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/numpy/npz.h"
#include "formats/onnx/reader.h"
#include "ir/constants.h"
#include "prune/linear_layer.h"
#include "report/scatter_plot.h"

namespace reef::compiler {
namespace {

using Json = nlohmann::ordered_json;

// The module of a node: exporters name nodes after the modules they are in, "/b/b.1/a/a.0/Conv" for module "b.1.a.0".
// The name of a module in a list or sequence begins with that of the list.
std::string module_of(const std::string& node) {
  std::string path, before;
  std::size_t at = 0;
  for (std::size_t end = node.find('/'); end != std::string::npos; at = end + 1, end = node.find('/', at)) {
    const std::string part = node.substr(at, end - at);
    if (part.empty()) continue;
    if (!before.empty() && part.starts_with(before + ".")) path.resize(path.size() - before.size());
    if (!path.empty() && !path.ends_with('.')) path += '.';
    path += part;
    before = part;
  }
  return path;
}

// Finds, for values of an ONNX graph, the node with weights that they come from.
class OnnxNames {
 public:
  explicit OnnxNames(const std::string& path) {
    auto model = onnx::load_model(path);
    if (!model.ok()) return;
    model_ = std::move(*model);
    for (const onnx::Tensor& tensor : model_.graph.initializers) initializers_.insert(tensor.name);
    for (const onnx::Node& node : model_.graph.nodes) {
      for (const std::string& output : node.outputs) nodes_[output] = &node;
    }
  }

  // Goes back from `value` through operators without weights of rank 2 and more, which were fused into the layer.
  void fill(const std::string& value, PrunedLayer& layer) const {
    std::string at = value;
    constexpr int kFurthest = 8;
    for (int i = 0; i < kFurthest; ++i) {
      const auto found = nodes_.find(at);
      if (found == nodes_.end()) return;
      const onnx::Node& node = *found->second;
      const bool is_layer = node.op_type == "Conv" || node.op_type == "ConvTranspose" || node.op_type == "Gemm" ||
                            node.op_type == "MatMul";
      for (std::size_t k = 1; is_layer && k < std::min<std::size_t>(node.inputs.size(), 2); ++k) {
        if (!initializers_.contains(node.inputs[k])) continue;
        layer.onnx_output = node.outputs[0];
        layer.onnx_weights = node.inputs[k];
        const bool has_own_name = layer.onnx_weights.ends_with(".weight");
        layer.module =
            has_own_name ? layer.onnx_weights.substr(0, layer.onnx_weights.size() - 7) : module_of(node.name);
        return;
      }
      if (is_layer || node.inputs.empty()) return;
      // The operand that is computed.
      std::string next;
      for (const std::string& input : node.inputs) {
        if (next.empty() && nodes_.contains(input) && nodes_.at(input)->op_type != "Constant") next = input;
      }
      at = next;
    }
  }

 private:
  onnx::Model model_;
  std::set<std::string> initializers_;
  std::map<std::string, const onnx::Node*> nodes_;
};

std::vector<std::int64_t> indices_of(const std::vector<bool>& kept) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

std::string name_of(const PrunedLayer& layer) { return layer.onnx_weights.empty() ? layer.tensor : layer.onnx_weights; }

numpy::NamedArray boolean_array(std::string name, const std::vector<std::int64_t>& shape,
                                std::vector<std::uint8_t> data) {
  numpy::Array array;
  array.type = ir::DataType::kBool;
  array.shape = shape;
  array.data = Bytes(std::move(data));
  return {std::move(name), std::move(array)};
}

std::vector<std::uint8_t> as_mask(const std::vector<std::int64_t>& kept, std::int64_t count) {
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(count), 0);
  for (const std::int64_t i : kept) mask[reef::at(i)] = 1;
  return mask;
}

std::string size_text(const PrunePoint& point) {
  return point.parameters >= 1000000 ? fmt::format("{:.2f} M", static_cast<double>(point.parameters) / 1e6)
                                     : fmt::format("{:.1f} k", static_cast<double>(point.parameters) / 1e3);
}

}  // namespace

std::vector<PrunedLayer> pruned_layers(const ir::Model& prepared, const prune::KeptIndices& kept,
                                       const FrontEndResult& loaded, const std::string& path) {
  std::map<std::string, std::string> origins;
  for (const TensorOrigin& origin : loaded.origins) origins[origin.tensor] = origin.name;
  std::unique_ptr<OnnxNames> names;
  if (loaded.format == ModelFormat::kOnnx) names = std::make_unique<OnnxNames>(path);
  const auto& tensors = prepared.subgraphs[0].tensors;
  std::vector<PrunedLayer> all, changed;
  for (const prune::LinearLayer& linear : prune::linear_layers(prepared)) {
    const auto weights = static_cast<std::size_t>(linear.weights);
    PrunedLayer layer;
    layer.tensor = tensors[weights].name;
    layer.output = tensors[reef::at(linear.output)].name;
    if (layer.output.ends_with("/linear")) layer.output.resize(layer.output.size() - 7);
    const std::vector<bool>& outputs = kept[weights][reef::at(linear.output_axis)];
    const std::vector<bool>& inputs = kept[weights][reef::at(linear.input_axis)];
    layer.kept_outputs = indices_of(outputs);
    layer.kept_inputs = indices_of(inputs);
    layer.outputs_before = std::ssize(outputs);
    layer.inputs_before = std::ssize(inputs);
    if (names != nullptr) {
      const auto origin = origins.find(layer.output);
      names->fill(origin == origins.end() ? layer.output : origin->second, layer);
    }
    const bool is_whole =
        std::ssize(layer.kept_outputs) == layer.outputs_before && std::ssize(layer.kept_inputs) == layer.inputs_before;
    if (!is_whole) changed.push_back(layer);
    all.push_back(std::move(layer));
  }
  return changed.empty() ? all : changed;
}

Result<std::vector<std::uint8_t>> masks_file(const PruneOutcome& outcome, bool zeros) {
  std::vector<numpy::NamedArray> arrays;
  std::set<std::string> used;
  for (const PrunedLayer& layer : outcome.layers) {
    const std::string name = name_of(layer);
    if (!used.insert(name).second) continue;
    if (!zeros) {
      arrays.push_back(
          boolean_array(name + ".keep_out", {layer.outputs_before}, as_mask(layer.kept_outputs, layer.outputs_before)));
      arrays.push_back(
          boolean_array(name + ".keep_in", {layer.inputs_before}, as_mask(layer.kept_inputs, layer.inputs_before)));
      continue;
    }
    for (const ir::Tensor& tensor : outcome.model.subgraphs[0].tensors) {
      if (tensor.name != layer.tensor || !ir::is_float_constant(outcome.model, tensor)) continue;
      std::vector<std::uint8_t> mask;
      for (const float value : ir::float_values(outcome.model, tensor)) mask.push_back(value != 0 ? 1 : 0);
      arrays.push_back(boolean_array(name + ".mask", {tensor.shape.begin(), tensor.shape.end()}, std::move(mask)));
    }
  }
  return numpy::write_npz(arrays, /*deflate=*/true);
}

std::string map_text(const std::string& model, const std::string& output, const PruneOutcome& outcome) {
  std::string rows;
  for (const PrunedLayer& layer : outcome.layers) {
    Json row = {{"tensor", layer.tensor}, {"output", layer.output}};
    if (!layer.onnx_weights.empty()) row["onnx_initializer"] = layer.onnx_weights;
    if (!layer.onnx_output.empty()) row["onnx_output"] = layer.onnx_output;
    if (!layer.module.empty()) row["pytorch_module"] = layer.module;
    row["outputs"] = layer.outputs_before;
    row["kept_outputs"] = layer.kept_outputs;
    row["inputs"] = layer.inputs_before;
    row["kept_inputs"] = layer.kept_inputs;
    rows += (rows.empty() ? "  " : ",\n  ") + row.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  const auto quoted = [](const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  return fmt::format("{{\n \"model\": {},\n \"output\": {},\n \"layers\": [\n{}\n ]\n}}\n", quoted(model),
                     quoted(output), rows);
}

std::string plot_page(const std::string& model, const PruneOutcome& outcome) {
  const bool is_share = outcome.metric_unit.empty() && !outcome.metric.empty();
  const std::string quality = outcome.metric.empty() ? "outputs against the original's, dB"
                              : is_share             ? outcome.metric + ", %"
                                                     : outcome.metric + ", " + outcome.metric_unit;
  report::ScatterPlot by_time{quality, "time of an inference, ms", {}}, by_size{quality, "parameters, thousands", {}};
  for (const PrunePoint& point : outcome.points) {
    const double value = point.accuracy ? *point.accuracy * (is_share ? 100 : 1) : std::min(point.agreement_db, 60.0);
    const std::string name = fmt::format("{}: {}", point.what, size_text(point));
    if (const auto time = point.simulated_ms ? point.simulated_ms : point.estimated_ms) {
      by_time.points.push_back(
          {*time, value,
           fmt::format("{}, {:.2f} ms {}", name, *time, point.simulated_ms ? "(simulated)" : "(estimated)")});
    }
    by_size.points.push_back({static_cast<double>(point.parameters) / 1000, value, name});
  }
  const std::string subtitle = fmt::format(
      "Float models fitted to {} samples, measured on {} others; times are simulated on the virtual Edge TPU "
      "or estimated, as each point says. Nothing has run on a real one.",
      outcome.fitted_samples, outcome.judged_samples);
  return report::scatter_page("Pruning " + model, subtitle, {by_time, by_size});
}

}  // namespace reef::compiler
