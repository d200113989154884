// SPDX-License-Identifier: Apache-2.0
// reef convert: a model of another framework as a .tflite file.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/shell_word.h"
#include "commands.h"
#include "compiler/attached_files.h"
#include "compiler/convert_driver.h"
#include "compiler/graph_files.h"
#include "compiler/output_check.h"
#include "compiler/quantize_json.h"
#include "console.h"
#include "formats/tflite/writer.h"
#include "framework_converter.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "json_output.h"
#include "output_name.h"
#include "pass_report.h"
#include "quantize_arguments.h"
#include "quantize_report.h"
#include "sandbox.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct ConvertOptions {
  std::string model, output, map;
  std::string file;  // that is read: the model, or what its framework made of it
  QuantizeArguments quantize;
  PassFlags passes;
  bool keep_qdq = false, json = false;
};

// Which ONNX value every tensor of the result is, or was made for.
std::string mapping_text(const ConvertOptions& options, const std::vector<compiler::TensorOrigin>& origins,
                         const ir::Model& model) {
  Json json = {{"model", options.model}, {"output", options.output}, {"tensors", Json::array()}};
  std::map<std::string, std::string> names;
  for (const compiler::TensorOrigin& origin : origins) names[origin.tensor] = origin.name;
  const ir::Subgraph& graph = model.subgraphs[0];
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const auto found = names.find(graph.tensors[i].name);
    if (found == names.end()) continue;
    json["tensors"].push_back({{"index", i}, {"tensor", graph.tensors[i].name}, {"onnx", found->second}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// "[?, 3]" where a size depends on the data.
std::string shape_text(const ir::Tensor& tensor) {
  if (tensor.shape_signature.empty()) return tensor.shape.to_string();
  std::vector<std::string> sizes;
  for (const std::int32_t size : tensor.shape_signature) sizes.push_back(size < 0 ? "?" : fmt::format("{}", size));
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

void print_border(const char* role, const ir::Subgraph& graph, const std::vector<std::int32_t>& indices) {
  for (const std::int32_t index : indices) {
    const ir::Tensor& tensor = graph.tensors[at(index)];
    print_text("{} '{}' {}{}\n", role, printable(tensor.name), ir::type_name(tensor.type), shape_text(tensor));
  }
}

void print_summary(const ConvertOptions& options, const compiler::FrontEndResult& result, std::size_t bytes) {
  const ir::Subgraph& graph = result.model.subgraphs[0];
  std::map<std::string, int> counts;
  for (const ir::Operator& op : graph.operators) ++counts[op.type];
  std::vector<std::string> words;
  for (const auto& [type, count] : counts) words.push_back(fmt::format("{} {}", count, type));
  print_border("input", graph, graph.inputs);
  print_border("output", graph, graph.outputs);
  print_text("{} ops: {}\n", graph.operators.size(), fmt::join(words, ", "));
  for (const std::string& note : result.notes) print_text("note: {}\n", note);
  print_text("wrote {} ({})\n", options.output, ir::describe_bytes(static_cast<std::int64_t>(bytes)));
  const bool is_float = std::any_of(graph.operators.begin(), graph.operators.end(), [&](const ir::Operator& op) {
    return !op.outputs.empty() && op.outputs[0] >= 0 && op.type != Op::DEQUANTIZE &&
           graph.tensors[at(op.outputs[0])].type == ir::DataType::kFloat32;
  });
  print_text("next: reef compile {}{}\n", shell_word(options.output), is_float ? " --data PICTURES" : "");
}

Json summary_json(const ConvertOptions& options, const compiler::FrontEndResult& result, std::size_t bytes) {
  const ir::Subgraph& graph = result.model.subgraphs[0];
  const auto border = [&](const std::vector<std::int32_t>& indices) {
    Json list = Json::array();
    for (const std::int32_t index : indices) {
      const ir::Tensor& tensor = graph.tensors[at(index)];
      const auto& sizes = tensor.shape_signature.empty() ? tensor.shape.dims() : tensor.shape_signature;
      list.push_back({{"name", tensor.name}, {"type", ir::type_name(tensor.type)}, {"shape", sizes}});
    }
    return list;
  };
  Json counts = Json::object();
  std::map<std::string, int> histogram;
  for (const ir::Operator& op : graph.operators) ++histogram[op.type];
  for (const auto& [type, count] : histogram) counts[type] = count;
  return {{"model", options.model},         {"output", options.output},         {"output_bytes", bytes},
          {"inputs", border(graph.inputs)}, {"outputs", border(graph.outputs)}, {"ops", counts},
          {"notes", result.notes}};
}

std::string default_output(const std::string& model) {
  std::filesystem::path path(model);
  if (!path.has_filename()) path = path.parent_path();
  return path.replace_extension(".tflite").filename().string();
}

// Writes all files or none: the model, and what else was asked for (which ONNX value each of its tensors is, graphs
// behind passes).
Status write(const ConvertOptions& options, std::span<const std::uint8_t> file, const std::string& mapping,
             const passes::PassLog& log) {
  std::vector<FileContent> files = {{options.output, file}};
  if (!options.map.empty()) {
    files.push_back({options.map, bytes_of(mapping)});
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<compiler::FileBeside> graphs, compiler::graph_files(log, options.output));
  for (const compiler::FileBeside& graph : graphs) files.push_back({graph.path, bytes_of(graph.text)});
  return write_files(files);
}

// --data: on to integers in one step.
Ending convert_and_quantize(ConvertOptions& options) {
  QuantizeArguments& arguments = options.quantize;
  arguments.request.model = options.file;  // and no output: it is written here, with the mapping
  REEF_ASSIGN_OR_RETURN(const compiler::QuantizeOutcome outcome, quantize_with_progress(arguments, !options.json));
  REEF_RETURN_IF_ERROR(
      write(options, outcome.file.span(), mapping_text(options, outcome.origins, outcome.result.model), outcome.log));
  arguments.request.output = options.output;
  if (options.json) {
    Json json = compiler::quantize_json(arguments.request, outcome);
    if (options.passes.explain) json["passes"] = pass_json(outcome.log);
    print_json(json);
  } else {
    print_quantize_report(arguments.request, outcome, arguments.verbose);
  }
  print_quantize_warnings(outcome);
  return {ok_status(), outcome.result.lost.empty() ? 0 : kExitNotUsable};
}

Ending convert(ConvertOptions options) {
  if (options.output.empty()) options.output = default_output(options.model);
  options.output = output_file(options.output, options.model, ".tflite");
  options.file = options.model;
  const bool writes = options.passes.stop_after.empty();
  if (writes) {
    std::vector<std::string> written = {options.output, options.map};
    for (const std::string& name : options.passes.dumps) written.push_back(compiler::graph_path(options.output, name));
    REEF_RETURN_IF_ERROR(compiler::check_files({written, {options.model}, {options.quantize.request.data}, {}}));
    REEF_RETURN_IF_ERROR(compiler::check_ending(options.output, compiler::Content::kModel));
    REEF_RETURN_IF_ERROR(compiler::check_ending(options.map, compiler::Content::kJson));
  }
  std::optional<FrameworkConversion> converted;
  if (const auto framework = framework_of(options.model)) {
    REEF_ASSIGN_OR_RETURN(const compiler::FrontEndOptions given, front_end_options(options.quantize.front_end));
    REEF_ASSIGN_OR_RETURN(FrameworkConversion made,
                          convert_by_framework(*framework, options.model, given.input_shapes));
    options.file = made.path();
    converted.emplace(std::move(made));
    // They are the file's now, and perhaps under other names.
    options.quantize.front_end.shapes.clear();
  }
  // Not before: another framework's converter is a program that was started, and the command declares that it does so.
  REEF_RETURN_IF_ERROR(enter_sandbox({options.output, options.map}));
  options.quantize.log = log_request(options.passes);
  if (options.quantize.has_data() && writes) return convert_and_quantize(options);
  compiler::ConvertRequest request;
  request.model = options.file;
  REEF_ASSIGN_OR_RETURN(request.front_end, front_end_options(options.quantize.front_end));
  request.front_end.budget = budget_of(options.quantize.limits);
  request.front_end.log = log_request(options.passes);
  request.keep_qdq = options.keep_qdq;
  request.io = options.quantize.io;
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult result, compiler::convert_model(request));
  if (!writes) {
    if (options.quantize.has_data()) REEF_RETURN_IF_ERROR(compiler::simplify_once(result).status());
    return print_graph(result.log, options.passes.stop_after);
  }
  if (converted) result.notes.push_back(fmt::format("converted by {}", converted->maker()));
  REEF_ASSIGN_OR_RETURN(const Bytes model, tflite::write_bytes(result.model));
  REEF_ASSIGN_OR_RETURN(const Bytes file,
                        compiler::with_attached_files(model.span(), options.file, options.quantize.request.attached));
  REEF_RETURN_IF_ERROR(write(options, file.span(), mapping_text(options, result.origins, result.model), result.log));
  if (options.json) {
    Json json = summary_json(options, result, file.size());
    if (options.passes.explain) json["passes"] = pass_json(result.log);
    print_json(json);
  } else {
    if (options.passes.explain) print_text("{}", pass_text(result.log));
    print_summary(options, result, file.size());
  }
  return ok_status();
}

}  // namespace

void add_convert(Command& app, Action& action) {
  auto options = std::make_shared<ConvertOptions>();
  Command command = app.add_subcommand("convert", "Make a .tflite file of an ONNX, PyTorch, TensorFlow or Keras model");
  command.starts_programs();  // the sandbox is entered when another framework's converter has ended
  command
      .add_option("model", options->model,
                  "A .onnx file; TorchScript or .pt2 (needs PyTorch); a YOLO checkpoint (needs Ultralytics); a "
                  "SavedModel folder, .keras file or frozen graph (needs TensorFlow)")
      .required();
  command
      .add_option("-o,--output", options->output,
                  "File to write, or folder for it (default: the model's name with .tflite)")
      .writes(WritesByDefault::kHere);
  add_front_end_flags(command, options->quantize.front_end);
  command.add_option("--map", options->map, "Write which ONNX value each tensor is to this file (JSON)")
      .option_text("FILE")
      .writes();
  command.add_flag("--keep-qdq", options->keep_qdq,
                   "Leave QUANTIZE and DEQUANTIZE as the model has them instead of making integer operators");
  add_data_options(command, options->quantize);
  add_quantizer_options(command, options->quantize);
  add_threads_option(command, options->quantize);
  add_verbose_option(command, options->quantize);
  add_pass_flags(command, options->passes);
  constexpr double kLongest = 3600;  // of a file made to keep us busy; --data may take longer, and then says so
  options->quantize.limits.seconds = kLongest;
  add_limit_flags(command, options->quantize.limits);
  command.add_flag("--json", options->json, "Print one JSON object (documented in docs/json.md)");
  command.footer(
      "Examples:\n  reef convert model.onnx -o model.tflite --input-shape input:1,3,224,224\n"
      "  reef convert model.onnx -o model_int8.tflite --data pictures --preprocess imagenet");
  command.callback([options, &action] { action = [options] { return convert(*options); }; });
}

}  // namespace reef::app
