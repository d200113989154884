// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/exported_writer.h"

#include <algorithm>
#include <map>
#include <new>
#include <tuple>
#include <variant>

#include "formats/tflite/options.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/schema_generated.h"
#include "formats/tflite/write_context.h"
#include "formats/tflite/writer.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;
using flatbuffers::Offset;

constexpr std::size_t kConstantAlignment = 16;
constexpr std::size_t kCustomOptionsAlignment = 32;  // seen in every file of compiler versions 15 and 16
// More than all tables beside the data can take; larger models go the other way, which counts exactly.
constexpr std::uint64_t kMaxDataBytes = kMaxFileBytes / 2;

bool is_plain(const ir::Tensor& tensor) {
  return tensor.shape_signature.empty() && !tensor.has_rank && tensor.external_buffer == 0 && !tensor.sparsity &&
         tensor.variant_sub_types.empty() && tensor.quantization.min.empty() && tensor.quantization.max.empty() &&
         std::holds_alternative<std::monostate>(tensor.quantization.details) &&
         static_cast<int>(tensor.type) <= static_cast<int>(fb::TensorType::MAX);
}

bool is_plain(const ir::Operator& op) {
  const bool has_options =
      op.options_type.empty() ? has_only_notes(op.attributes) : find_option_table(op.options_type) != nullptr;
  return has_options && op.builtin_code >= 0 && op.builtin_code <= static_cast<int>(fb::BuiltinOperator::MAX) &&
         op.intermediates.empty() && op.mutating_variable_inputs.empty() && !op.opaque_options &&
         !op.opaque_options_2 && !op.custom_options_are_large && op.custom_options_format == 0 &&
         op.debug_metadata_index < 0 &&
         (op.is_custom() || op.type == fb::EnumNameBuiltinOperator(static_cast<fb::BuiltinOperator>(op.builtin_code)));
}

bool is_plain(const ir::Model& model) {
  if (model.subgraphs.size() != 1 || !model.metadata.empty() || !model.metadata_buffers.empty() ||
      !model.signatures.empty() || !model.external_buffer_groups.empty() || !model.external_buffers.empty()) {
    return false;
  }
  std::uint64_t bytes = 0;
  for (const ir::Buffer& buffer : model.buffers) {
    bytes += buffer.data.size();
    if (buffer.is_external) return false;
  }
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const ir::Operator& op : graph.operators) bytes += op.custom_options.size();
  const auto plain = [](const auto& part) { return is_plain(part); };
  return bytes <= kMaxDataBytes && graph.debug_metadata_index < 0 &&
         std::all_of(graph.tensors.begin(), graph.tensors.end(), plain) &&
         std::all_of(graph.operators.begin(), graph.operators.end(), plain);
}

// The builder fills the file from its end: what is created first lies last.
class ExportedWriter {
 public:
  explicit ExportedWriter(const ir::Model& model) : model_(model), graph_(model.subgraphs[0]) {}

  Result<std::vector<std::uint8_t>> run() {
    REEF_ASSIGN_OR_RETURN(const auto subgraph, write_subgraph());
    const auto buffers = write_buffers();
    const auto description = context_.builder.CreateString(model_.description);
    const auto codes = write_codes();
    const auto subgraphs = context_.builder.CreateVector(std::vector<Offset<fb::SubGraph>>{subgraph});
    fb::FinishModelBuffer(context_.builder,
                          fb::CreateModel(context_.builder, model_.version, codes, subgraphs, description, buffers));
    const std::uint8_t* data = context_.builder.GetBufferPointer();
    return std::vector<std::uint8_t>(data, data + context_.builder.GetSize());
  }

 private:
  Offset<fb::Tensor> write_tensor(const ir::Tensor& tensor) {
    Offset<fb::QuantizationParameters> quantization = 0;
    if (tensor.has_quantization) {
      const auto scale = context_.vector_if_any(tensor.quantization.scale);
      const auto zero_point = context_.vector_if_any(tensor.quantization.zero_point);
      quantization = fb::CreateQuantizationParameters(context_.builder, 0, 0, scale, zero_point,
                                                      fb::QuantizationDetails::NONE, 0, tensor.quantization.dimension);
    }
    const auto name = context_.builder.CreateString(tensor.name);
    const auto dims = tensor.shape.dims();
    const auto shape = context_.builder.CreateVector(std::vector<std::int32_t>(dims.begin(), dims.end()));
    return fb::CreateTensor(context_.builder, shape, static_cast<fb::TensorType>(tensor.type),
                            static_cast<std::uint32_t>(tensor.buffer), name, quantization, tensor.is_variable);
  }

  std::uint32_t code_of(const ir::Operator& op) {
    const Code code(op.builtin_code, op.is_custom() ? op.type : std::string(), op.version);
    const auto [found, is_new] = code_numbers_.emplace(code, static_cast<std::uint32_t>(codes_.size()));
    if (is_new) codes_.push_back(code);
    return found->second;
  }

  Result<Offset<fb::Operator>> write_operator(const ir::Operator& op) {
    int types[2] = {0, 0};
    Offset<void> options[2] = {0, 0};
    if (const OptionTable* table = op.options_type.empty() ? nullptr : find_option_table(op.options_type)) {
      const int which = table->which == OptionUnion::kFirst ? 0 : 1;
      types[which] = table->union_type;
      REEF_ASSIGN_OR_RETURN(options[which], write_options(context_.builder, *table, op.attributes));
    }
    const auto custom = context_.bytes_if_any(op.custom_options, kCustomOptionsAlignment);
    const auto inputs = context_.builder.CreateVector(op.inputs);
    const auto outputs = context_.builder.CreateVector(op.outputs);
    return fb::CreateOperator(context_.builder, code_of(op), inputs, outputs, static_cast<fb::BuiltinOptions>(types[0]),
                              options[0], custom, fb::CustomOptionsFormat::FLEXBUFFERS, 0, 0, 0, 0,
                              static_cast<fb::BuiltinOptions2>(types[1]), options[1]);
  }

  Result<Offset<fb::SubGraph>> write_subgraph() {
    std::vector<Offset<fb::Tensor>> tensors;
    for (const ir::Tensor& tensor : graph_.tensors) tensors.push_back(write_tensor(tensor));
    const auto all_tensors = context_.builder.CreateVector(tensors);
    const auto inputs = context_.builder.CreateVector(graph_.inputs);
    const auto outputs = context_.builder.CreateVector(graph_.outputs);
    std::vector<Offset<fb::Operator>> operators;
    for (const ir::Operator& op : graph_.operators) {
      auto row = write_operator(op);
      if (!row.ok()) return row.status().in(fmt::format("op {} {}", operators.size(), op.type));
      operators.push_back(*row);
    }
    const auto all_operators = context_.builder.CreateVector(operators);
    const auto name = context_.string_if_any(graph_.name);
    return fb::CreateSubGraph(context_.builder, all_tensors, inputs, outputs, all_operators, name);
  }

  Offset<flatbuffers::Vector<Offset<fb::Buffer>>> write_buffers() {
    std::vector<Offset<fb::Buffer>> rows;
    for (const ir::Buffer& buffer : model_.buffers) {
      const bool is_written = rows.empty() || buffer.is_empty_constant || !buffer.data.empty();
      const std::size_t alignment = buffer.data.empty() ? 1 : kConstantAlignment;
      const auto data = is_written ? context_.bytes(buffer.data, alignment) : 0;
      rows.push_back(fb::CreateBuffer(context_.builder, data));
    }
    return context_.builder.CreateVector(rows);
  }

  Offset<flatbuffers::Vector<Offset<fb::OperatorCode>>> write_codes() {
    std::vector<Offset<fb::OperatorCode>> rows;
    for (const auto& [code, custom_name, version] : codes_) {
      const bool is_custom = code == ir::kCustomBuiltinCode;
      const auto custom_code = is_custom ? context_.builder.CreateString(custom_name) : 0;
      rows.push_back(fb::CreateOperatorCode(context_.builder, static_cast<std::int8_t>(std::min(code, 127)),
                                            custom_code, version, static_cast<fb::BuiltinOperator>(code)));
    }
    return context_.builder.CreateVector(rows);
  }

  using Code = std::tuple<std::int32_t, std::string, std::int32_t>;
  const ir::Model& model_;
  const ir::Subgraph& graph_;
  WriteContext context_{1 << 16};
  std::map<Code, std::uint32_t> code_numbers_;
  std::vector<Code> codes_;  // in the order of their first use
};

}  // namespace

Result<std::vector<std::uint8_t>> write_exported_model(const ir::Model& model) {
  if (!is_plain(model)) return write_model(model);
  try {
    return ExportedWriter(model).run();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "not enough memory to write the model");
  }
}

}  // namespace reef::tflite
