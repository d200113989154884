// SPDX-License-Identifier: Apache-2.0
// reef inspect: what is in a model file.
#include <map>
#include <memory>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "commands.h"
#include "compiler/front_end.h"
#include "console.h"
#include "formats/darwinn/reader.h"
#include "formats/foreign/foreign_file.h"
#include "formats/onnx/reader.h"
#include "formats/tflite/file_check.h"
#include "formats/tflite/reader.h"
#include "front_end_flags.h"
#include "inspect.h"
#include "ir/describe.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "json_output.h"
#include "ops/registry.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  std::string model;
  FrontEndFlags front_end;  // for --text of an ONNX file
  bool tensors = false;
  bool text = false;
  bool json = false;
  bool unknown = false;
};

std::string shape_and_type(const ir::Tensor& tensor) {
  return fmt::format("{}{}", ir::type_name(tensor.type), tensor.shape.to_string());
}

std::string tensor_reference(const ir::Subgraph& graph, std::int32_t index) {
  if (index < 0) return "none";
  const ir::Tensor& tensor = graph.tensors[at(index)];
  return fmt::format("%{} {}", index, shape_and_type(tensor));
}

std::string value_text(const ir::AttributeValue& value) {
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const ir::EnumName& v) const { return v.name; }
    std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", printable(v)); }
    std::string operator()(const std::vector<std::int64_t>& v) const { return fmt::format("{}", v); }
    std::string operator()(const std::vector<double>& v) const { return fmt::format("{}", v); }
    std::string operator()(const std::vector<std::string>& v) const { return fmt::format("{}", v); }
  };
  return std::visit(Printer{}, value);
}

Json value_json(const ir::AttributeValue& value) {
  if (const auto* name = std::get_if<ir::EnumName>(&value)) return name->name;
  return std::visit(
      [](const auto& v) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, ir::EnumName>) {
          return v.name;
        } else {
          return v;
        }
      },
      value);
}

Json tensor_json(const ir::Model& model, const ir::Tensor& tensor) {
  Json json = {{"name", tensor.name}, {"type", ir::type_name(tensor.type)}, {"shape", tensor.shape.dims()}};
  if (!tensor.shape_signature.empty()) json["shape_signature"] = tensor.shape_signature;
  if (tensor.quantization.is_quantized()) {
    json["quantization"] = {{"scale", tensor.quantization.scale}, {"zero_point", tensor.quantization.zero_point}};
    if (tensor.quantization.is_per_axis()) json["quantization"]["dimension"] = tensor.quantization.dimension;
  }
  if (tensor.is_variable) json["variable"] = true;
  if (const std::size_t bytes = constant_data(model, tensor).size()) json["constant_bytes"] = bytes;
  return json;
}

Json op_json(const ir::Operator& op) {
  Json json = {{"type", op.type},     {"custom", op.is_custom()}, {"version", op.version},
               {"inputs", op.inputs}, {"outputs", op.outputs},    {"runs_on_cpu", ops::find_op(op) != nullptr}};
  for (const ir::Attribute& attribute : op.attributes) json["attributes"][attribute.name] = value_json(attribute.value);
  if (!op.custom_options.empty()) json["custom_options_bytes"] = op.custom_options.size();
  if (op.opaque_options || op.opaque_options_2) json["options_newer_than_this_version"] = true;
  if (darwinn::is_edge_tpu_op(op)) {
    auto package = package_json(op.custom_options);
    json["edge_tpu_package"] = package.ok() ? *package : Json{{"error", package.status().message()}};
  }
  return json;
}

Json model_json(const InspectOptions& options, const ir::Model& model, std::size_t file_bytes) {
  Json json = {{"file", options.model},
               {"file_bytes", file_bytes},
               {"format", "tflite"},
               {"schema_version", model.version},
               {"description", model.description},
               {"constant_bytes", ir::constant_bytes(model)}};
  for (const ir::Subgraph& graph : model.subgraphs) {
    Json subgraph = {{"name", graph.name}, {"inputs", graph.inputs}, {"outputs", graph.outputs}};
    for (const ir::Tensor& tensor : graph.tensors) subgraph["tensors"].push_back(tensor_json(model, tensor));
    for (const ir::Operator& op : graph.operators) subgraph["operators"].push_back(op_json(op));
    json["subgraphs"].push_back(std::move(subgraph));
  }
  for (const ir::Signature& signature : model.signatures) {
    Json row = {{"key", signature.key}, {"subgraph", signature.subgraph}};
    for (const ir::SignatureTensor& t : signature.inputs) row["inputs"][t.name] = t.tensor;
    for (const ir::SignatureTensor& t : signature.outputs) row["outputs"][t.name] = t.tensor;
    json["signatures"].push_back(std::move(row));
  }
  for (const ir::Metadata& metadata : model.metadata) {
    const std::size_t bytes = model.buffers[at(metadata.buffer)].data.size();
    json["metadata"].push_back({{"name", metadata.name}, {"bytes", bytes}});
  }
  return json;
}

void print_io(const char* role, const ir::Subgraph& graph, const std::vector<std::int32_t>& indices) {
  for (const std::int32_t index : indices) {
    const ir::Tensor& tensor = graph.tensors[at(index)];
    print_text("  {:<7} %{:<4} {:<28} '{}'  {}\n", role, index, shape_and_type(tensor), printable(tensor.name),
               ir::describe_quantization(tensor.quantization));
  }
}

void print_ops(const ir::Subgraph& graph) {
  std::map<std::string, int> histogram;
  for (const ir::Operator& op : graph.operators) ++histogram[printable(op.type)];
  std::vector<std::string> counts;
  for (const auto& [type, count] : histogram) counts.push_back(fmt::format("{} {}", count, type));
  print_text("  ops: {}\n", fmt::join(counts, ", "));
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const ir::Operator& op = graph.operators[i];
    std::vector<std::string> inputs, outputs, attributes;
    for (const std::int32_t t : op.inputs) inputs.push_back(tensor_reference(graph, t));
    for (const std::int32_t t : op.outputs) outputs.push_back(tensor_reference(graph, t));
    for (const ir::Attribute& a : op.attributes)
      attributes.push_back(fmt::format("{}={}", a.name, value_text(a.value)));
    if (!op.custom_options.empty()) {
      attributes.push_back(
          fmt::format("{} of custom options", ir::describe_bytes(static_cast<std::int64_t>(op.custom_options.size()))));
    }
    print_text("  {:>4}  {}{} ({}) -> {}{}{}{}\n", i, op.is_custom() ? "custom " : "", printable(op.type),
               fmt::join(inputs, ", "), fmt::join(outputs, ", "), attributes.empty() ? "" : "  {",
               fmt::join(attributes, ", "), attributes.empty() ? "" : "}");
  }
}

// What the chip does and what it leaves to the CPU.
void print_packages(const ir::Subgraph& graph) {
  std::vector<std::string> on_cpu;
  int packages = 0;
  for (const ir::Operator& op : graph.operators) {
    if (darwinn::is_edge_tpu_op(op))
      ++packages;
    else
      on_cpu.push_back(printable(op.type));
  }
  if (packages == 0) return;
  print_text("  compiled for the Edge TPU: {} op{}; left to the CPU: {}\n", packages, packages == 1 ? "" : "s",
             on_cpu.empty() ? "none" : fmt::format("{} ({})", on_cpu.size(), fmt::join(on_cpu, ", ")));
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    if (!darwinn::is_edge_tpu_op(graph.operators[i])) continue;
    const auto text = describe_package(graph.operators[i].custom_options);
    print_text("\nop {}\n{}", i, text.ok() ? *text : fmt::format("  cannot be read: {}\n", text.status().message()));
  }
}

void print_tensors(const ir::Model& model, const ir::Subgraph& graph) {
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const ir::Tensor& tensor = graph.tensors[i];
    const std::size_t constant = constant_data(model, tensor).size();
    print_text("  %{:<4} {:<28} {:<10} '{}'  {}\n", i, shape_and_type(tensor),
               tensor.is_variable ? "variable"
               : constant         ? ir::describe_bytes(static_cast<std::int64_t>(constant))
                                  : "computed",
               printable(tensor.name), ir::describe_quantization(tensor.quantization));
  }
}

void print_summary(const InspectOptions& options, const ir::Model& model, std::size_t file_bytes) {
  print_text("{}: TFLite model, {}, schema version {}\n", options.model,
             ir::describe_bytes(static_cast<std::int64_t>(file_bytes)), model.version);
  if (!model.description.empty()) print_text("description: {}\n", model.description);
  print_text("constants: {} in {} buffers\n", ir::describe_bytes(ir::constant_bytes(model)), model.buffers.size());
  for (const ir::Metadata& metadata : model.metadata) {
    const std::size_t bytes = model.buffers[at(metadata.buffer)].data.size();
    print_text("metadata: '{}', {}\n", printable(metadata.name), ir::describe_bytes(static_cast<std::int64_t>(bytes)));
  }
  for (const ir::Signature& signature : model.signatures) {
    print_text("signature: '{}' of subgraph {}, {} inputs, {} outputs\n", printable(signature.key), signature.subgraph,
               signature.inputs.size(), signature.outputs.size());
  }
  for (std::size_t i = 0; i < model.subgraphs.size(); ++i) {
    const ir::Subgraph& graph = model.subgraphs[i];
    print_text("\nsubgraph {} '{}': {} tensors, {} ops\n", i, printable(graph.name), graph.tensors.size(),
               graph.operators.size());
    print_io("input", graph, graph.inputs);
    print_io("output", graph, graph.outputs);
    print_ops(graph);
    print_packages(graph);
    if (options.tensors) print_tensors(model, graph);
  }
}

// What could be shown was; a package that cannot be read is an error all the same.
Status check_packages(const ir::Model& model) {
  for (const ir::Subgraph& graph : model.subgraphs) {
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      if (!darwinn::is_edge_tpu_op(graph.operators[i])) continue;
      const auto read = darwinn::read_custom_options(graph.operators[i].custom_options);
      if (!read.ok()) return read.status().in(fmt::format("op {}", i));
    }
  }
  return ok_status();
}

// An ONNX file is shown as ONNX sees it; --text shows what it becomes.
Status inspect_onnx(const InspectOptions& options) {
  if (options.text) {
    REEF_ASSIGN_OR_RETURN(const compiler::FrontEndOptions front_end, front_end_options(options.front_end));
    REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult result, compiler::load_any_model(options.model, front_end));
    print_exact("{}", ir::print(result.model));
    return ok_status();
  }
  REEF_ASSIGN_OR_RETURN(const onnx::Model model, onnx::load_model(options.model));
  if (options.json) {
    print_json(onnx_json(options.model, model));
  } else {
    print_onnx(options.model, model, options.tensors);
  }
  return ok_status();
}

Status inspect(const InspectOptions& options) {
  REEF_REQUIRE(!options.front_end.are_given() || (options.text && options.model.ends_with(".onnx")),
               "--input-shape and other options of conversion need an .onnx file and --text");
  if (options.model.ends_with(".onnx")) return inspect_onnx(options);
  const formats::ForeignFile folder = formats::recognize_folder(options.model);
  REEF_REQUIRE(folder.advice.empty(), "'{}' is no model file: {}", options.model, folder.advice);
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(options.model, tflite::kMaxFileBytes));
  REEF_RETURN_IF_ERROR(tflite::check_identifier(file, options.model).in(options.model));
  auto read = tflite::read_model(file);
  if (!read.ok()) return read.status().in(options.model);
  const ir::Model& model = *read;
  REEF_RETURN_IF_ERROR(ir::verify(model).in(options.model));
  if (options.unknown) return inspect_unknown(options.model, model, options.json);
  if (options.text) {
    print_exact("{}", ir::print(model));
  } else if (options.json) {
    print_json(model_json(options, model, file.size()));
  } else {
    print_summary(options, model, file.size());
  }
  return options.text ? ok_status() : check_packages(model).in(options.model);
}

}  // namespace

void add_inspect(Command& app, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  Command command = app.add_subcommand("inspect", "Show what is in a model file");
  command.add_option("model", options->model, "A .tflite, _edgetpu.tflite or .onnx file").required();
  command.add_flag("--tensors", options->tensors, "List every tensor too");
  const Option text =
      command.add_flag("--text", options->text, "Print the whole model in Reef's text form (docs/formats/ir_text.md)");
  command.add_flag("--json", options->json, "Print one JSON object (documented in docs/json.md)").excludes(text);
  command
      .add_flag("--unknown", options->unknown,
                "List what no public compiled file has: field values, reserved bits and counts of a compiled model's "
                "instructions (docs/hardware/seen.md)")
      .excludes(text);
  add_front_end_flags(command, options->front_end);
  command.footer("Example:\n  reef inspect models/reef_creatures_int8.tflite --tensors");
  command.callback([options, &action] { action = [options] { return inspect(*options); }; });
}

}  // namespace reef::app
