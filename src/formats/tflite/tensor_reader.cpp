// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/tensor_reader.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;

// True when the table says nothing that the schema does not describe.
template <typename T>
bool is_described(const T* table, std::string_view kind) {
  return count_newer_fields(*reinterpret_cast<const flatbuffers::Table*>(table), known_vtable_bytes(kind)) == 0;
}

Status read_details(ReadContext& context, const fb::QuantizationParameters& source, ir::Quantization& result) {
  if (source.details() == nullptr) return ok_status();
  const auto* custom = source.details_as_CustomQuantization();
  const auto* blockwise = source.details_as_BlockwiseQuantization();
  const auto* multi_axis = source.details_as_MultiAxisQuantization();
  if (source.details_type() == fb::QuantizationDetails::NONE) {
    context.add_note("quantization details without a type are not kept");
  } else if (custom && is_described(custom, "CustomQuantization")) {
    result.details = ir::CustomQuantization{context.slice(custom->custom())};
  } else if (blockwise && is_described(blockwise, "BlockwiseQuantization")) {
    result.details = ir::BlockwiseQuantization{blockwise->scales(), blockwise->zero_points(), blockwise->block_size(),
                                               context.copy<std::int32_t>(blockwise->block_shape())};
  } else if (multi_axis && is_described(multi_axis, "MultiAxisQuantization")) {
    result.details =
        ir::MultiAxisQuantization{multi_axis->scales(), multi_axis->zero_points(), multi_axis->block_size(),
                                  context.copy<std::int32_t>(multi_axis->quantized_dimensions())};
  } else {
    REEF_ASSIGN_OR_RETURN(result.details,
                          read_opaque(context, source.details(), static_cast<int>(source.details_type())));
  }
  return ok_status();
}

Result<ir::Quantization> read_quantization(ReadContext& context, const fb::QuantizationParameters& source) {
  context.check_newer_fields(&source, "QuantizationParameters");
  ir::Quantization result;
  result.min = context.copy<float>(source.min());
  result.max = context.copy<float>(source.max());
  result.scale = context.copy<float>(source.scale());
  result.zero_point = context.copy<std::int64_t>(source.zero_point());
  result.dimension = source.quantized_dimension();
  REEF_RETURN_IF_ERROR(read_details(context, source, result));
  return result;
}

using IndexVector = ir::SparsityDimension::IndexVector;

IndexVector read_index_vector(ReadContext& context, fb::SparseIndexVector type, const void* table) {
  IndexVector result;
  if (table == nullptr) return result;
  result.wire_type = static_cast<int>(type);
  switch (type) {
    case fb::SparseIndexVector::NONE:
      break;
    case fb::SparseIndexVector::Int32Vector:
      result.values = context.copy<std::int32_t>(static_cast<const fb::Int32Vector*>(table)->values());
      break;
    case fb::SparseIndexVector::Uint16Vector:
      result.values = context.copy<std::int32_t>(static_cast<const fb::Uint16Vector*>(table)->values());
      break;
    case fb::SparseIndexVector::Uint8Vector:
      result.values = context.copy<std::int32_t>(static_cast<const fb::Uint8Vector*>(table)->values());
      break;
    default:
      context.add_note(
          fmt::format("sparse indices are of a type newer than this version knows ({}); the model cannot be saved",
                      result.wire_type));
  }
  return result;
}

ir::Sparsity read_sparsity(ReadContext& context, const fb::SparsityParameters& source) {
  context.check_newer_fields(&source, "SparsityParameters");
  ir::Sparsity result;
  result.traversal_order = context.copy<std::int32_t>(source.traversal_order());
  result.block_map = context.copy<std::int32_t>(source.block_map());
  if (source.dim_metadata() == nullptr) return result;
  for (const fb::DimensionMetadata* dimension : *source.dim_metadata()) {
    if (!context.charge(sizeof(ir::SparsityDimension))) break;
    context.check_newer_fields(dimension, "DimensionMetadata");
    ir::SparsityDimension row;
    row.format = static_cast<std::int32_t>(dimension->format());
    row.dense_size = dimension->dense_size();
    row.segments = read_index_vector(context, dimension->array_segments_type(), dimension->array_segments());
    row.indices = read_index_vector(context, dimension->array_indices_type(), dimension->array_indices());
    result.dimensions.push_back(std::move(row));
  }
  return result;
}

ir::DataType to_data_type(fb::TensorType type) {
  return static_cast<ir::DataType>(static_cast<std::uint8_t>(type));  // also for types that have no name here
}

}  // namespace

Result<ir::OpaqueTable> read_opaque(ReadContext& context, const void* table, int union_type) {
  const auto position = static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(table) - context.file().data());
  REEF_ASSIGN_OR_RETURN(OpaquePiece piece, context.opaque_finder().cut(context.file(), position, union_type));
  context.charge(piece.table.bytes.size());
  REEF_RETURN_IF_ERROR(context.status());
  if (!piece.complete) {
    context.add_note(fmt::format(
        "a table of a type newer than this version knows ({}) may not be kept whole when saving", union_type));
  }
  return std::move(piece.table);
}

Result<ir::Tensor> read_tensor(ReadContext& context, const fb::Tensor& source) {
  context.charge(sizeof(ir::Tensor));
  context.check_newer_fields(&source, "Tensor");
  ir::Tensor result;
  result.name = context.copy(source.name());
  result.type = to_data_type(source.type());
  result.shape = ir::Shape(context.copy<std::int32_t>(source.shape()));
  result.shape_signature = context.copy<std::int32_t>(source.shape_signature());
  result.has_rank = source.has_rank();
  result.is_variable = source.is_variable();
  result.buffer = static_cast<std::int32_t>(source.buffer());
  result.external_buffer = source.external_buffer();
  if (source.quantization() != nullptr) {
    result.has_quantization = true;
    REEF_ASSIGN_OR_RETURN(result.quantization, read_quantization(context, *source.quantization()));
  }
  if (source.sparsity() != nullptr) result.sparsity = read_sparsity(context, *source.sparsity());
  if (source.variant_tensors() != nullptr) {
    for (const fb::VariantSubType* variant : *source.variant_tensors()) {
      if (!context.charge(sizeof(ir::VariantSubType))) break;
      context.check_newer_fields(variant, "VariantSubType");
      result.variant_sub_types.push_back(
          {context.copy<std::int32_t>(variant->shape()), to_data_type(variant->type()), variant->has_rank()});
    }
  }
  REEF_RETURN_IF_ERROR(context.status());
  return result;
}

}  // namespace reef::tflite
