// SPDX-License-Identifier: Apache-2.0
//
// The file is checked as a FlatBuffer, then walked once from the root with the generated accessors; only the option
// tables of operators are read by reflection (options.h).
#include "formats/tflite/reader.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <system_error>

#include "base/file.h"
#include "formats/foreign/foreign_file.h"
#include "formats/tflite/file_check.h"
#include "formats/tflite/options.h"
#include "formats/tflite/read_context.h"
#include "formats/tflite/schema_generated.h"
#include "formats/tflite/tensor_reader.h"
#include "ir/verify.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;

// An offset of 0 or 1 means that there is nothing behind the FlatBuffers part (1 is a placeholder of some writers).
bool lies_behind(std::uint64_t offset) { return offset > 1; }

Result<Bytes> read_behind(ReadContext& context, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t available = context.file().size();
  REEF_REQUIRE(offset <= available && size <= available - offset,
               "its {} bytes of data start at byte {} of the file, which has only {}: it is cut short", size, offset,
               available);
  context.charge(size);
  return context.file().slice(offset, size);
}

Status read_buffers(ReadContext& context, const fb::Model& source, ir::Model& result) {
  if (source.buffers() == nullptr) return ok_status();
  for (const fb::Buffer* buffer : *source.buffers()) {
    const std::size_t index = result.buffers.size();
    context.set_place(fmt::format("buffer {}", index));
    context.charge(sizeof(ir::Buffer));
    context.check_newer_fields(buffer, "Buffer");
    ir::Buffer row;
    bool is_present = false;
    if (const auto* data = buffer->data()) {
      is_present = true;
      row.data = context.slice(data);
      const auto begin = static_cast<std::uint64_t>(data->Data() - context.file().data());
      context.opaque_finder().add_barrier(begin, begin + data->size());
    } else if (lies_behind(buffer->offset())) {
      is_present = true;
      auto bytes = read_behind(context, buffer->offset(), buffer->size());
      if (!bytes.ok()) return bytes.status().in(context.place());
      row.data = std::move(bytes).value();
      context.opaque_finder().add_barrier(buffer->offset(), buffer->offset() + buffer->size());
      row.is_external = !row.data.empty();
    }
    row.is_empty_constant = is_present && row.data.empty() && index != 0;
    REEF_RETURN_IF_ERROR(context.status());
    result.buffers.push_back(std::move(row));
  }
  return ok_status();
}

struct OperatorCode {
  std::string type;
  std::int32_t builtin_code = 0;
  std::int32_t version = 1;
};

Result<std::vector<OperatorCode>> read_operator_codes(ReadContext& context, const fb::Model& source) {
  std::vector<OperatorCode> result;
  if (source.operator_codes() == nullptr) return result;
  for (const fb::OperatorCode* code : *source.operator_codes()) {
    context.set_place(fmt::format("operator code {}", result.size()));
    context.charge(sizeof(OperatorCode));
    context.check_newer_fields(code, "OperatorCode");
    OperatorCode row;
    row.builtin_code =
        std::max<std::int32_t>(static_cast<std::int32_t>(code->builtin_code()), code->deprecated_builtin_code());
    REEF_REQUIRE(row.builtin_code >= 0, "{} is {}, but codes are not negative", context.place(), row.builtin_code);
    row.version = code->version();
    const std::string custom_code = context.copy(code->custom_code());
    const std::string_view name = fb::EnumNameBuiltinOperator(static_cast<fb::BuiltinOperator>(row.builtin_code));
    if (row.builtin_code == ir::kCustomBuiltinCode) {
      row.type = custom_code;
    } else {
      row.type = name.empty() ? fmt::format("BUILTIN_{}", row.builtin_code) : std::string(name);
      if (!custom_code.empty()) {
        context.add_note(fmt::format("the name '{}' of a built-in operator is not kept when saving", custom_code));
      }
    }
    REEF_RETURN_IF_ERROR(context.status());
    result.push_back(std::move(row));
  }
  return result;
}

// One member of an options union: as attributes if the operator has none yet and the schema covers it, else verbatim.
Status read_union(ReadContext& context, OptionUnion which, int union_type, const void* table, ir::Operator& result) {
  if (table == nullptr || union_type == 0) {
    if (table != nullptr || union_type != 0) context.add_note("options without a type, or the reverse, are not kept");
    return ok_status();
  }
  const OptionTable* known = find_option_table(which, union_type);
  const auto* verified = static_cast<const flatbuffers::Table*>(table);  // if the type is known
  if (known != nullptr && known->describable && result.options_type.empty() &&
      count_newer_fields(*verified, known->vtable_bytes) == 0) {
    result.options_type = known->name;
    result.attributes = read_options(context, *known, *verified);
    return ok_status();
  }
  auto& opaque = which == OptionUnion::kFirst ? result.opaque_options : result.opaque_options_2;
  REEF_ASSIGN_OR_RETURN(opaque, read_opaque(context, table, union_type));
  return ok_status();
}

Result<ir::Operator> read_operator(ReadContext& context, const fb::Operator& source,
                                   const std::vector<OperatorCode>& codes) {
  context.check_newer_fields(&source, "Operator");
  REEF_REQUIRE(source.opcode_index() < codes.size(), "it refers to operator code {}, but there are only {}",
               source.opcode_index(), codes.size());
  const OperatorCode& code = codes[source.opcode_index()];
  context.charge(sizeof(ir::Operator) + code.type.size());
  REEF_RETURN_IF_ERROR(context.status());
  ir::Operator result;
  result.type = code.type;
  result.builtin_code = code.builtin_code;
  result.version = code.version;
  result.inputs = context.copy<std::int32_t>(source.inputs());
  result.outputs = context.copy<std::int32_t>(source.outputs());
  result.intermediates = context.copy<std::int32_t>(source.intermediates());
  for (const bool flag : context.copy<std::uint8_t>(source.mutating_variable_inputs())) {
    result.mutating_variable_inputs.push_back(flag);
  }
  REEF_RETURN_IF_ERROR(read_union(context, OptionUnion::kFirst, static_cast<int>(source.builtin_options_type()),
                                  source.builtin_options(), result));
  REEF_RETURN_IF_ERROR(read_union(context, OptionUnion::kSecond, static_cast<int>(source.builtin_options_2_type()),
                                  source.builtin_options_2(), result));
  result.custom_options_format = static_cast<std::int32_t>(source.custom_options_format());
  if (source.custom_options() != nullptr) {
    result.custom_options = context.slice(source.custom_options());
  } else if (lies_behind(source.large_custom_options_offset())) {
    REEF_ASSIGN_OR_RETURN(result.custom_options, read_behind(context, source.large_custom_options_offset(),
                                                             source.large_custom_options_size()));
    result.custom_options_are_large = !result.custom_options.empty();
  }
  result.debug_metadata_index = source.debug_metadata_index();
  REEF_RETURN_IF_ERROR(context.status());
  return result;
}

Result<ir::Subgraph> read_subgraph(ReadContext& context, const fb::SubGraph& source, std::size_t index,
                                   const std::vector<OperatorCode>& codes) {
  context.set_place(fmt::format("subgraph {}", index));
  context.charge(sizeof(ir::Subgraph));
  context.check_newer_fields(&source, "SubGraph");
  ir::Subgraph result;
  result.name = context.copy(source.name());
  result.inputs = context.copy<std::int32_t>(source.inputs());
  result.outputs = context.copy<std::int32_t>(source.outputs());
  result.debug_metadata_index = source.debug_metadata_index();
  if (source.tensors() != nullptr) {
    for (const fb::Tensor* tensor : *source.tensors()) {
      context.set_place(fmt::format("subgraph {}, tensor {}", index, result.tensors.size()));
      auto row = read_tensor(context, *tensor);
      if (!row.ok()) return row.status().in(context.place());
      result.tensors.push_back(std::move(row).value());
    }
  }
  if (source.operators() != nullptr) {
    for (const fb::Operator* op : *source.operators()) {
      context.set_place(fmt::format("subgraph {}, op {}", index, result.operators.size()));
      auto row = read_operator(context, *op, codes);
      if (!row.ok()) return row.status().in(context.place());
      result.operators.push_back(std::move(row).value());
    }
  }
  REEF_RETURN_IF_ERROR(context.status());
  return result;
}

std::vector<ir::SignatureTensor> read_tensor_map(
    ReadContext& context, const flatbuffers::Vector<flatbuffers::Offset<fb::TensorMap>>* source) {
  std::vector<ir::SignatureTensor> result;
  if (source == nullptr) return result;
  for (const fb::TensorMap* row : *source) {
    if (!context.charge(sizeof(ir::SignatureTensor))) break;
    context.check_newer_fields(row, "TensorMap");
    result.push_back({context.copy(row->name()), static_cast<std::int32_t>(row->tensor_index())});
  }
  return result;
}

void read_metadata(ReadContext& context, const fb::Model& source, ir::Model& result) {
  result.metadata_buffers = context.copy<std::int32_t>(source.metadata_buffer());
  if (source.metadata() == nullptr) return;
  for (const fb::Metadata* row : *source.metadata()) {
    if (!context.charge(sizeof(ir::Metadata))) break;
    context.check_newer_fields(row, "Metadata");
    result.metadata.push_back({context.copy(row->name()), static_cast<std::int32_t>(row->buffer())});
  }
}

void read_signatures(ReadContext& context, const fb::Model& source, ir::Model& result) {
  if (source.signature_defs() == nullptr) return;
  for (const fb::SignatureDef* row : *source.signature_defs()) {
    if (!context.charge(sizeof(ir::Signature))) break;
    context.check_newer_fields(row, "SignatureDef");
    ir::Signature signature;
    signature.key = context.copy(row->signature_key());
    signature.subgraph = static_cast<std::int32_t>(row->subgraph_index());
    signature.inputs = read_tensor_map(context, row->inputs());
    signature.outputs = read_tensor_map(context, row->outputs());
    result.signatures.push_back(std::move(signature));
  }
}

void read_external_buffers(ReadContext& context, const fb::Model& source, ir::Model& result) {
  if (source.external_buffer_groups() != nullptr) {
    for (const fb::ExternalBufferGroup* row : *source.external_buffer_groups()) {
      if (!context.charge(sizeof(std::string))) break;
      context.check_newer_fields(row, "ExternalBufferGroup");
      result.external_buffer_groups.push_back(context.copy(row->name()));
    }
  }
  if (source.external_buffers() == nullptr) return;
  for (const fb::ExternalBuffer* row : *source.external_buffers()) {
    if (!context.charge(sizeof(ir::ExternalBuffer))) break;
    context.check_newer_fields(row, "ExternalBuffer");
    result.external_buffers.push_back(
        {row->id(), row->group(), row->offset(), row->length(), context.copy(row->packing())});
  }
}

// Large custom options lie behind the FlatBuffers part; the opaque finder must know before the first operator is read.
void add_custom_option_barriers(ReadContext& context, const fb::Model& source) {
  if (source.subgraphs() == nullptr) return;
  const std::uint64_t available = context.file().size();
  for (const fb::SubGraph* subgraph : *source.subgraphs()) {
    if (subgraph->operators() == nullptr) continue;
    for (const fb::Operator* op : *subgraph->operators()) {
      const std::uint64_t begin = std::min(op->large_custom_options_offset(), available);
      const std::uint64_t size = std::min(op->large_custom_options_size(), available - begin);
      if (lies_behind(begin) && context.charge(16)) context.opaque_finder().add_barrier(begin, begin + size);
    }
  }
}

Result<ir::Model> read_checked(ReadContext& context, const fb::Model& source) {
  context.check_newer_fields(&source, "Model");
  ir::Model result;
  result.version = source.version();
  result.description = context.copy(source.description());
  REEF_RETURN_IF_ERROR(read_buffers(context, source, result));
  add_custom_option_barriers(context, source);
  REEF_ASSIGN_OR_RETURN(const std::vector<OperatorCode> codes, read_operator_codes(context, source));
  if (source.subgraphs() != nullptr) {
    for (const fb::SubGraph* subgraph : *source.subgraphs()) {
      REEF_ASSIGN_OR_RETURN(ir::Subgraph row, read_subgraph(context, *subgraph, result.subgraphs.size(), codes));
      result.subgraphs.push_back(std::move(row));
    }
  }
  context.set_place("model");
  read_metadata(context, source, result);
  read_signatures(context, source, result);
  read_external_buffers(context, source, result);
  REEF_RETURN_IF_ERROR(context.status());
  return result;
}

}  // namespace

Result<ir::Model> read_model(const Bytes& file, std::vector<std::string>* notes) {
  try {
    // Accessors need an aligned start; a slice of something larger may lack it.
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(file.data()) % 16 == 0;
    const Bytes aligned = is_aligned ? file : Bytes::copy_of(file.span());
    REEF_RETURN_IF_ERROR(check_file(aligned));
    ReadContext context(aligned);
    Result<ir::Model> result = read_checked(context, *fb::GetModel(aligned.data()));
    if (notes != nullptr) *notes = context.take_notes();
    return result;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "not enough memory to read the model");
  }
}

Result<ir::Model> load_model(const std::string& path, std::vector<std::string>* notes) {
  try {
    std::error_code ignored;  // read_file reports whatever is wrong
    const std::uintmax_t size = std::filesystem::file_size(path, ignored);
    REEF_REQUIRE(ignored || size <= kMaxFileBytes,
                 "'{}' has {} bytes; models of 2 GiB and more cannot be read: quantize the model or split it", path,
                 size);
    const formats::ForeignFile folder = formats::recognize_folder(path);
    REEF_REQUIRE(folder.advice.empty(), "'{}' is no TFLite model: {}", path, folder.advice);
    auto file = read_file(path, kMaxFileBytes);
    if (!file.ok()) return file.status();
    REEF_RETURN_IF_ERROR(check_identifier(*file, path).in(fmt::format("'{}'", path)));
    auto model = read_model(*file, notes);
    if (!model.ok()) return model.status().in(fmt::format("'{}'", path));
    const Status verdict = ir::verify(*model);
    if (!verdict.ok()) return verdict.in(fmt::format("'{}'", path));
    return model;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, fmt::format("not enough memory to read '{}'", path));
  }
}

}  // namespace reef::tflite
