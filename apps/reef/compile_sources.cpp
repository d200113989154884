// SPDX-License-Identifier: Apache-2.0
#include "compile_sources.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "compiler/compile_names.h"
#include "compiler/front_end.h"
#include "compiler/output_check.h"
#include "console.h"
#include "formats/tflite/writer.h"
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

// Where the quantized form of a model goes; empty: the model is quantized already.
Result<std::string> quantized_path(const compiler::CompileOptions& how, const std::string& model,
                                   QuantizeArguments& arguments) {
  if (is_tflite(model) && !arguments.has_data()) return std::string();  // the compiler says what it thinks of it
  REEF_RETURN_IF_ERROR(settle(arguments));
  const auto loaded = compiler::load_any_model(model, arguments.request.front_end);
  if (!loaded.ok()) return loaded.status();
  const Source source = source_of(*loaded);
  if (source == Source::kQuantized && is_tflite(model)) return std::string();
  REEF_REQUIRE(source != Source::kFloat || arguments.has_data(),
               "{} is a float model, and the Edge TPU computes with 8-bit integers: give typical samples with --data "
               "FOLDER, .npz or .npy (see reef quantize --help)",
               model);
  const std::filesystem::path folder = how.out_dir.empty() ? "" : compiler::output_folder(how);
  return (folder / (std::filesystem::path(model).stem().string() + "_int8.tflite")).string();
}

Status quantize(const std::string& model, const std::string& output, QuantizeArguments& arguments, bool shows_progress,
                compiler::CompileOptions& how, QuantizedSources& sources) {
  arguments.request.model = model;
  arguments.request.output = how.write ? output : "";
  REEF_ASSIGN_OR_RETURN(const compiler::QuantizeOutcome outcome, quantize_with_progress(arguments, shows_progress));
  if (!how.write) {
    REEF_ASSIGN_OR_RETURN(how.in_memory[output], tflite::write_bytes(outcome.result.model));
    arguments.request.output = "not written";
  }
  if (shows_progress) print_error("{}", quantize_details(arguments.request, outcome, arguments.verbose));
  print_quantize_warnings(outcome);
  sources.are_usable = sources.are_usable && outcome.result.lost.empty();
  sources.accuracy = accuracy_text(outcome);
  return ok_status();
}

}  // namespace

Result<QuantizedSources> quantize_sources(compiler::CompileOptions& how, const std::vector<std::string>& dumps,
                                          QuantizeArguments& arguments, bool shows_progress) {
  const auto is_taken_as_it_is = [&](const std::string& model) { return is_tflite(model) && !arguments.has_data(); };
  const bool quantizes_nothing = std::all_of(how.models.begin(), how.models.end(), is_taken_as_it_is);
  // What the compiler refuses before any work, it says in Google's words, or in JSON.
  QuantizedSources sources;
  if (quantizes_nothing && !check_compile_request(how).ok()) return sources;
  compiler::CompileOptions names_only = how;
  names_only.write = false;
  REEF_RETURN_IF_ERROR(check_compile_request(names_only));
  const std::vector<std::string> given = how.models;
  if (how.write && compiler::names_a_file(how)) {
    REEF_RETURN_IF_ERROR(compiler::check_files({compiler::planned_outputs(how), given, {arguments.request.data}, {}}));
  }
  std::vector<std::string> quantized, written;
  for (std::string& model : how.models) {
    REEF_ASSIGN_OR_RETURN(quantized.emplace_back(), quantized_path(how, model, arguments));
    if (quantized.back().empty()) continue;
    model = quantized.back();
    written.push_back(model);
  }
  // All files are known now, and no work has been done but looking at the models.
  REEF_RETURN_IF_ERROR(check_compile_request(how));
  if (how.write) {
    for (const std::string& path : compiler::planned_outputs(how)) {
      written.push_back(path);
      if (!path.ends_with(".tflite")) continue;
      for (const std::string& stage : dumps) written.push_back(dump_path(path, stage));
    }
    REEF_RETURN_IF_ERROR(compiler::check_files({written, given, {arguments.request.data}, {}}));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (quantized[i].empty()) continue;
    REEF_RETURN_IF_ERROR(quantize(given[i], quantized[i], arguments, shows_progress, how, sources));
  }
  return sources;
}

std::string dump_path(const std::string& compiled, const std::string& stage) {
  return std::filesystem::path(compiled).replace_extension(stage + ".txt").string();
}

}  // namespace reef::app
