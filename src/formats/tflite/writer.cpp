// SPDX-License-Identifier: Apache-2.0
//
// The FlatBuffers part is built in one go, opaque tables first (at the end of that part). What lies behind it (offset
// buffers, large custom options) can only be placed once its size is known: the offsets are written as placeholders and
// filled in afterwards.
#include "formats/tflite/writer.h"

#include <algorithm>
#include <map>
#include <new>
#include <tuple>

#include "base/file.h"
#include "formats/tflite/options.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/schema_generated.h"
#include "formats/tflite/tensor_writer.h"
#include "formats/tflite/write_context.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;
using flatbuffers::Offset;

constexpr std::size_t kDataAlignment = 16;
constexpr std::uint64_t kPlaceholder = 1;  // not 0, which the builder would leave out; readers take it as "none"

// ---- Size ----

std::uint64_t attribute_bytes(const ir::AttributeValue& value) {
  if (const auto* v = std::get_if<std::string>(&value)) return v->size();
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&value)) return 8 * v->size();
  if (const auto* v = std::get_if<std::vector<double>>(&value)) return 8 * v->size();
  if (const auto* v = std::get_if<std::vector<std::string>>(&value)) return 8 * v->size();
  return 0;
}

std::uint64_t opaque_bytes(const std::optional<ir::OpaqueTable>& table) { return table ? table->bytes.size() + 32 : 0; }

std::uint64_t tensor_bytes(const ir::Tensor& tensor) {
  const ir::Quantization& q = tensor.quantization;
  std::uint64_t bytes = 256 + tensor.name.size() + 4 * (tensor.shape.dims().size() + tensor.shape_signature.size()) +
                        4 * (q.scale.size() + q.min.size() + q.max.size()) + 8 * q.zero_point.size();
  if (const auto* v = std::get_if<ir::CustomQuantization>(&q.details)) bytes += v->custom.size();
  if (const auto* v = std::get_if<ir::BlockwiseQuantization>(&q.details)) bytes += 4 * v->block_shape.size();
  if (const auto* v = std::get_if<ir::MultiAxisQuantization>(&q.details)) bytes += 4 * v->dimensions.size();
  if (const auto* v = std::get_if<ir::OpaqueTable>(&q.details)) bytes += v->bytes.size() + 32;
  if (tensor.sparsity) {
    bytes += 64 + 4 * (tensor.sparsity->traversal_order.size() + tensor.sparsity->block_map.size());
    for (const ir::SparsityDimension& dimension : tensor.sparsity->dimensions) {
      bytes += 128 + 4 * (dimension.segments.values.size() + dimension.indices.values.size());
    }
  }
  for (const ir::VariantSubType& variant : tensor.variant_sub_types) bytes += 64 + 4 * variant.shape.size();
  return bytes;
}

std::uint64_t operator_bytes(const ir::Operator& op) {
  std::uint64_t bytes = 512 + op.type.size() + op.custom_options.size() + op.mutating_variable_inputs.size() +
                        4 * (op.inputs.size() + op.outputs.size() + op.intermediates.size()) +
                        opaque_bytes(op.opaque_options) + opaque_bytes(op.opaque_options_2);
  for (const ir::Attribute& attribute : op.attributes) bytes += 16 + attribute_bytes(attribute.value);
  return bytes;
}

// An upper bound on the file's size, cheap to compute: the builder must never be asked for more than it can address.
std::uint64_t bound_file_bytes(const ir::Model& model) {
  std::uint64_t bytes = 4096 + model.description.size() + 4 * model.metadata_buffers.size();
  for (const ir::Buffer& buffer : model.buffers) bytes += 96 + buffer.data.size();
  for (const ir::Subgraph& subgraph : model.subgraphs) {
    bytes += 128 + subgraph.name.size() + 4 * (subgraph.inputs.size() + subgraph.outputs.size());
    for (const ir::Tensor& tensor : subgraph.tensors) bytes += tensor_bytes(tensor);
    for (const ir::Operator& op : subgraph.operators) bytes += operator_bytes(op);
  }
  for (const ir::Metadata& row : model.metadata) bytes += 64 + row.name.size();
  for (const ir::Signature& row : model.signatures) {
    bytes += 128 + row.key.size();
    for (const ir::SignatureTensor& tensor : row.inputs) bytes += 64 + tensor.name.size();
    for (const ir::SignatureTensor& tensor : row.outputs) bytes += 64 + tensor.name.size();
  }
  for (const std::string& name : model.external_buffer_groups) bytes += 64 + name.size();
  for (const ir::ExternalBuffer& row : model.external_buffers) bytes += 128 + row.packing.size();
  return bytes;
}

// ---- Operator codes ----

// Distinct (code, custom name, version) triples in order of first use.
class OperatorCodes {
 public:
  std::uint32_t index_of(const ir::Operator& op) {
    const Key key(op.builtin_code, op.is_custom() ? op.type : std::string(), op.version);
    const auto [found, is_new] = indices_.emplace(key, static_cast<std::uint32_t>(order_.size()));
    if (is_new) order_.push_back(key);
    return found->second;
  }

  Offset<flatbuffers::Vector<Offset<fb::OperatorCode>>> write(WriteContext& context) const {
    std::vector<Offset<fb::OperatorCode>> rows;
    for (const auto& [code, custom_name, version] : order_) {
      const bool is_custom = code == ir::kCustomBuiltinCode;
      const auto custom_code = is_custom ? context.builder.CreateString(custom_name) : 0;
      rows.push_back(fb::CreateOperatorCode(context.builder, static_cast<std::int8_t>(std::min(code, 127)), custom_code,
                                            version, static_cast<fb::BuiltinOperator>(code)));
    }
    return context.builder.CreateVector(rows);
  }

 private:
  using Key = std::tuple<std::int32_t, std::string, std::int32_t>;
  std::map<Key, std::uint32_t> indices_;
  std::vector<Key> order_;
};

Status check_code(const ir::Operator& op) {
  REEF_REQUIRE(op.builtin_code >= 0, "its code is {}, but codes are not negative", op.builtin_code);
  if (op.is_custom()) return ok_status();
  const std::string_view name = fb::EnumNameBuiltinOperator(static_cast<fb::BuiltinOperator>(op.builtin_code));
  const std::string expected = name.empty() ? fmt::format("BUILTIN_{}", op.builtin_code) : std::string(name);
  REEF_REQUIRE(op.type == expected, "its type is '{}', but its code {} means '{}'", op.type, op.builtin_code, expected);
  return ok_status();
}

// ---- Operators ----

Status put_all_opaque(WriteContext& context, const ir::Model& model) {
  const auto put = [&](const ir::OpaqueTable& table) -> Status {
    REEF_REQUIRE(table.union_type > 0 && table.union_type < 256, "an opaque table has type {}", table.union_type);
    REEF_ASSIGN_OR_RETURN(context.opaque[&table], put_opaque(context.builder, table));
    return ok_status();
  };
  for (const ir::Subgraph& subgraph : model.subgraphs) {
    for (const ir::Tensor& tensor : subgraph.tensors) {
      const auto* table = std::get_if<ir::OpaqueTable>(&tensor.quantization.details);
      if (table) REEF_RETURN_IF_ERROR(put(*table).in(fmt::format("tensor '{}'", tensor.name)));
    }
    for (const ir::Operator& op : subgraph.operators) {
      if (op.opaque_options) REEF_RETURN_IF_ERROR(put(*op.opaque_options).in(op.type));
      if (op.opaque_options_2) REEF_RETURN_IF_ERROR(put(*op.opaque_options_2).in(op.type));
    }
  }
  return ok_status();
}

struct WrittenOptions {
  int type[2] = {0, 0};  // of the first and the second union
  Offset<void> value[2] = {0, 0};
};

Result<WrittenOptions> write_all_options(WriteContext& context, const ir::Operator& op) {
  WrittenOptions result;
  const std::optional<ir::OpaqueTable>* opaque[2] = {&op.opaque_options, &op.opaque_options_2};
  for (int i = 0; i < 2; ++i) {
    if (!*opaque[i]) continue;
    result.type[i] = (*opaque[i])->union_type;
    result.value[i] = context.opaque_at(**opaque[i]);
  }
  if (op.options_type.empty()) {
    REEF_REQUIRE(has_only_notes(op.attributes), "it has attributes, but no options type that says what they are");
    return result;
  }
  const OptionTable* table = find_option_table(op.options_type);
  REEF_REQUIRE(table != nullptr, "there are no options of type '{}'", op.options_type);
  const int which = table->which == OptionUnion::kFirst ? 0 : 1;
  REEF_REQUIRE(result.type[which] == 0, "it has both attributes and opaque options for the same place");
  result.type[which] = table->union_type;
  REEF_ASSIGN_OR_RETURN(result.value[which], write_options(context.builder, *table, op.attributes));
  return result;
}

Result<Offset<fb::Operator>> write_operator(WriteContext& context, const ir::Operator& op, OperatorCodes& codes) {
  REEF_RETURN_IF_ERROR(check_code(op));
  REEF_REQUIRE(op.custom_options_format >= -128 && op.custom_options_format < 128,
               "custom options format {} is unknown", op.custom_options_format);
  REEF_ASSIGN_OR_RETURN(const WrittenOptions options, write_all_options(context, op));
  const auto inputs = context.builder.CreateVector(op.inputs);
  const auto outputs = context.builder.CreateVector(op.outputs);
  const auto intermediates = context.vector_if_any(op.intermediates);
  std::vector<std::uint8_t> mutating(op.mutating_variable_inputs.begin(), op.mutating_variable_inputs.end());
  const auto mutating_inputs = context.vector_if_any(mutating);
  const bool is_large = op.custom_options_are_large && !op.custom_options.empty();
  const auto custom_options = is_large ? 0 : context.bytes_if_any(op.custom_options, kDataAlignment);
  const std::uint64_t behind = is_large ? kPlaceholder : 0;
  return fb::CreateOperator(context.builder, codes.index_of(op), inputs, outputs,
                            static_cast<fb::BuiltinOptions>(options.type[0]), options.value[0], custom_options,
                            static_cast<fb::CustomOptionsFormat>(op.custom_options_format), mutating_inputs,
                            intermediates, behind, behind, static_cast<fb::BuiltinOptions2>(options.type[1]),
                            options.value[1], op.debug_metadata_index);
}

Result<Offset<fb::SubGraph>> write_subgraph(WriteContext& context, const ir::Subgraph& subgraph, OperatorCodes& codes) {
  std::vector<Offset<fb::Tensor>> tensors;
  for (const ir::Tensor& tensor : subgraph.tensors) {
    auto row = write_tensor(context, tensor);
    if (!row.ok()) return row.status().in(fmt::format("tensor {} '{}'", tensors.size(), tensor.name));
    tensors.push_back(*row);
  }
  std::vector<Offset<fb::Operator>> operators;
  for (const ir::Operator& op : subgraph.operators) {
    auto row = write_operator(context, op, codes);
    if (!row.ok()) return row.status().in(fmt::format("op {} {}", operators.size(), op.type));
    operators.push_back(*row);
  }
  const auto name = context.string_if_any(subgraph.name);
  const auto inputs = context.builder.CreateVector(subgraph.inputs);
  const auto outputs = context.builder.CreateVector(subgraph.outputs);
  const auto all_tensors = context.builder.CreateVector(tensors);
  const auto all_operators = context.builder.CreateVector(operators);
  return fb::CreateSubGraph(context.builder, all_tensors, inputs, outputs, all_operators, name,
                            subgraph.debug_metadata_index);
}

// ---- The rest of the model ----

bool goes_behind(const ir::Buffer& buffer) { return buffer.is_external && !buffer.data.empty(); }

Offset<flatbuffers::Vector<Offset<fb::Buffer>>> write_buffers(WriteContext& context, const ir::Model& model) {
  std::vector<Offset<fb::Buffer>> rows;
  for (const ir::Buffer& buffer : model.buffers) {
    if (goes_behind(buffer)) {
      rows.push_back(fb::CreateBuffer(context.builder, 0, kPlaceholder, kPlaceholder));
      continue;
    }
    const auto data = buffer.is_empty_constant ? context.bytes(buffer.data, kDataAlignment)
                                               : context.bytes_if_any(buffer.data, kDataAlignment);
    rows.push_back(fb::CreateBuffer(context.builder, data));
  }
  return context.builder.CreateVector(rows);
}

Offset<flatbuffers::Vector<Offset<fb::Metadata>>> write_metadata(WriteContext& context, const ir::Model& model) {
  if (model.metadata.empty()) return 0;
  std::vector<Offset<fb::Metadata>> rows;
  for (const ir::Metadata& row : model.metadata) {
    const auto name = context.string_if_any(row.name);
    rows.push_back(fb::CreateMetadata(context.builder, name, static_cast<std::uint32_t>(row.buffer)));
  }
  return context.builder.CreateVector(rows);
}

auto write_tensor_map(WriteContext& context, const std::vector<ir::SignatureTensor>& tensors) {
  std::vector<Offset<fb::TensorMap>> rows;
  for (const ir::SignatureTensor& row : tensors) {
    const auto name = context.builder.CreateString(row.name);
    rows.push_back(fb::CreateTensorMap(context.builder, name, static_cast<std::uint32_t>(row.tensor)));
  }
  return context.builder.CreateVector(rows);
}

Offset<flatbuffers::Vector<Offset<fb::SignatureDef>>> write_signatures(WriteContext& context, const ir::Model& model) {
  if (model.signatures.empty()) return 0;
  std::vector<Offset<fb::SignatureDef>> rows;
  for (const ir::Signature& row : model.signatures) {
    // Runtimes refuse a signature in which one of the three is missing, even if empty.
    const auto inputs = write_tensor_map(context, row.inputs);
    const auto outputs = write_tensor_map(context, row.outputs);
    const auto key = context.builder.CreateString(row.key);
    rows.push_back(
        fb::CreateSignatureDef(context.builder, inputs, outputs, key, static_cast<std::uint32_t>(row.subgraph)));
  }
  return context.builder.CreateVector(rows);
}

Offset<flatbuffers::Vector<Offset<fb::ExternalBufferGroup>>> write_groups(WriteContext& context,
                                                                          const ir::Model& model) {
  if (model.external_buffer_groups.empty()) return 0;
  std::vector<Offset<fb::ExternalBufferGroup>> rows;
  for (const std::string& group : model.external_buffer_groups) {
    rows.push_back(fb::CreateExternalBufferGroup(context.builder, context.string_if_any(group)));
  }
  return context.builder.CreateVector(rows);
}

Offset<flatbuffers::Vector<Offset<fb::ExternalBuffer>>> write_external(WriteContext& context, const ir::Model& model) {
  if (model.external_buffers.empty()) return 0;
  std::vector<Offset<fb::ExternalBuffer>> rows;
  for (const ir::ExternalBuffer& row : model.external_buffers) {
    const auto packing = context.string_if_any(row.packing);
    rows.push_back(fb::CreateExternalBuffer(context.builder, row.id, row.group, row.offset, row.length, packing));
  }
  return context.builder.CreateVector(rows);
}

Status write_flatbuffer(WriteContext& context, const ir::Model& model) {
  REEF_RETURN_IF_ERROR(put_all_opaque(context, model));
  const auto buffers = write_buffers(context, model);
  OperatorCodes codes;
  std::vector<Offset<fb::SubGraph>> subgraphs;
  for (const ir::Subgraph& subgraph : model.subgraphs) {
    auto row = write_subgraph(context, subgraph, codes);
    if (!row.ok()) return row.status().in(fmt::format("subgraph {}", subgraphs.size()));
    subgraphs.push_back(*row);
  }
  const auto all_subgraphs = context.builder.CreateVector(subgraphs);
  const auto operator_codes = codes.write(context);
  const auto description = context.string_if_any(model.description);
  const auto metadata_buffers = context.vector_if_any(model.metadata_buffers);
  const auto metadata = write_metadata(context, model);
  const auto signatures = write_signatures(context, model);
  const auto groups = write_groups(context, model);
  const auto external_buffers = write_external(context, model);
  context.builder.TrackMinAlign(kDataAlignment);
  context.builder.Finish(fb::CreateModel(context.builder, model.version, operator_codes, all_subgraphs, description,
                                         buffers, metadata_buffers, metadata, signatures, groups, external_buffers),
                         fb::ModelIdentifier());
  return ok_status();
}

// ---- Data behind the FlatBuffers part ----

void append_behind(std::vector<std::uint8_t>& file, const Bytes& data, std::size_t table_position,
                   flatbuffers::voffset_t offset_slot, flatbuffers::voffset_t size_slot) {
  file.resize((file.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment);
  auto* table = reinterpret_cast<flatbuffers::Table*>(file.data() + table_position);
  table->SetField<std::uint64_t>(offset_slot, file.size());
  table->SetField<std::uint64_t>(size_slot, data.size());
  file.insert(file.end(), data.span().begin(), data.span().end());
}

// Whether something is stored behind the FlatBuffers part of the file.
bool has_parts_behind(const ir::Model& model) {
  for (const ir::Buffer& buffer : model.buffers) {
    if (goes_behind(buffer)) return true;
  }
  for (const ir::Subgraph& graph : model.subgraphs) {
    for (const ir::Operator& op : graph.operators) {
      if (op.custom_options_are_large && !op.custom_options.empty()) return true;
    }
  }
  return false;
}

void append_all_behind(std::vector<std::uint8_t>& file, const ir::Model& model) {
  const auto root = [&] { return fb::GetModel(file.data()); };  // `file` moves when it grows
  const auto position = [&](const void* table) {
    return static_cast<std::size_t>(static_cast<const std::uint8_t*>(table) - file.data());
  };
  for (std::uint32_t i = 0; i < model.buffers.size(); ++i) {
    if (!goes_behind(model.buffers[i])) continue;
    append_behind(file, model.buffers[i].data, position(root()->buffers()->Get(i)), fb::Buffer::VT_OFFSET,
                  fb::Buffer::VT_SIZE);
  }
  for (std::uint32_t s = 0; s < model.subgraphs.size(); ++s) {
    const std::vector<ir::Operator>& operators = model.subgraphs[s].operators;
    for (std::uint32_t i = 0; i < operators.size(); ++i) {
      if (!operators[i].custom_options_are_large || operators[i].custom_options.empty()) continue;
      append_behind(file, operators[i].custom_options, position(root()->subgraphs()->Get(s)->operators()->Get(i)),
                    fb::Operator::VT_LARGE_CUSTOM_OPTIONS_OFFSET, fb::Operator::VT_LARGE_CUSTOM_OPTIONS_SIZE);
    }
  }
}

}  // namespace

Result<Bytes> write_bytes(const ir::Model& model) {
  try {
    const std::uint64_t bound = bound_file_bytes(model);
    if (bound >= kMaxFileBytes) {
      return unsupported("the model would take about {} bytes; TFLite files must stay below 2 GiB", bound);
    }
    WriteContext context(bound);
    REEF_RETURN_IF_ERROR(write_flatbuffer(context, model));
    if (!has_parts_behind(model)) {
      const auto owner = std::make_shared<const flatbuffers::DetachedBuffer>(context.builder.Release());
      return Bytes(owner, {owner->data(), owner->size()});
    }
    std::vector<std::uint8_t> file;
    file.reserve(bound);
    const auto span = context.builder.GetBufferSpan();
    file.assign(span.begin(), span.end());
    append_all_behind(file, model);
    return Bytes(std::move(file));
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "not enough memory to write the model");
  }
}

Result<std::vector<std::uint8_t>> write_model(const ir::Model& model) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, write_bytes(model));
  return std::vector<std::uint8_t>(file.span().begin(), file.span().end());
}

Status save_model(const ir::Model& model, const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, write_bytes(model));
  return write_file(path, file.span());
}

}  // namespace reef::tflite
