// SPDX-License-Identifier: Apache-2.0
#include "compile_sources.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "compiler/front_end.h"
#include "quantize_report.h"

namespace reef::app {
namespace {

// How a file must be treated, told from what is in it.
enum class Source { kQuantized, kCarriesScales, kFloat };

Source source_of(const compiler::FrontEndResult& loaded) {
  const ir::Subgraph& graph = loaded.model.subgraphs[0];
  bool has_scales = false, computes_floats = false;
  for (const ir::Operator& op : graph.operators) {
    const bool converts = op.type == "QUANTIZE" || op.type == "DEQUANTIZE";
    has_scales = has_scales || converts || op.type == "FAKE_QUANT";
    computes_floats = computes_floats || (!converts && std::any_of(op.outputs.begin(), op.outputs.end(), [&](auto t) {
                        return graph.tensors[static_cast<std::size_t>(t)].type == ir::DataType::kFloat32;
                      }));
  }
  if (!computes_floats) return Source::kQuantized;
  return has_scales ? Source::kCarriesScales : Source::kFloat;
}

bool is_tflite(const std::string& path) { return std::filesystem::path(path).extension() == ".tflite"; }

}  // namespace

Result<std::vector<std::string>> quantized_sources(const std::vector<std::string>& models, const std::string& out_dir,
                                                   QuantizeArguments& arguments, bool shows_progress) {
  std::vector<std::string> result = models;
  for (std::string& model : result) {
    if (is_tflite(model) && !arguments.has_data()) continue;  // the compiler says what it thinks of it
    REEF_RETURN_IF_ERROR(settle(arguments));
    const auto loaded = compiler::load_any_model(model, arguments.request.front_end);
    if (!loaded.ok()) return loaded.status();
    const Source source = source_of(*loaded);
    if (source == Source::kQuantized && is_tflite(model)) continue;
    REEF_REQUIRE(source != Source::kFloat || arguments.has_data(),
                 "{} is a float model, and the Edge TPU computes with 8-bit integers: give typical samples with --data "
                 "FOLDER, .npz or .npy (see reef quantize --help)",
                 model);
    arguments.request.model = model;
    arguments.request.output =
        (std::filesystem::path(out_dir) / (std::filesystem::path(model).stem().string() + "_int8.tflite")).string();
    REEF_ASSIGN_OR_RETURN(const compiler::QuantizeOutcome outcome, quantize_with_progress(arguments, shows_progress));
    if (shows_progress) fmt::print(stderr, "{}", quantize_text(arguments.request, outcome));
    print_quantize_warnings(outcome);
    model = arguments.request.output;
  }
  return result;
}

}  // namespace reef::app
