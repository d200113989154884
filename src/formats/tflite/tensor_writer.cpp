// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/tensor_writer.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;
using flatbuffers::Offset;

struct UnionValue {
  int type = 0;
  Offset<void> value = 0;
};

UnionValue write_details(WriteContext& context, const ir::Quantization& quantization) {
  if (const auto* custom = std::get_if<ir::CustomQuantization>(&quantization.details)) {
    const auto bytes = context.bytes_if_any(custom->custom, 16);
    return {static_cast<int>(fb::QuantizationDetails::CustomQuantization),
            fb::CreateCustomQuantization(context.builder, bytes).Union()};
  }
  if (const auto* blockwise = std::get_if<ir::BlockwiseQuantization>(&quantization.details)) {
    const auto block_shape = context.vector_if_any(blockwise->block_shape);
    return {static_cast<int>(fb::QuantizationDetails::BlockwiseQuantization),
            fb::CreateBlockwiseQuantization(context.builder, blockwise->scales, blockwise->zero_points,
                                            blockwise->block_size, block_shape)
                .Union()};
  }
  if (const auto* multi_axis = std::get_if<ir::MultiAxisQuantization>(&quantization.details)) {
    const auto dimensions = context.vector_if_any(multi_axis->dimensions);
    return {static_cast<int>(fb::QuantizationDetails::MultiAxisQuantization),
            fb::CreateMultiAxisQuantization(context.builder, multi_axis->scales, multi_axis->zero_points,
                                            multi_axis->block_size, dimensions)
                .Union()};
  }
  if (const auto* opaque = std::get_if<ir::OpaqueTable>(&quantization.details)) {
    return {opaque->union_type, context.opaque_at(*opaque)};
  }
  return {};
}

Offset<fb::QuantizationParameters> write_quantization(WriteContext& context, const ir::Quantization& quantization) {
  const UnionValue details = write_details(context, quantization);
  const auto min = context.vector_if_any(quantization.min);
  const auto max = context.vector_if_any(quantization.max);
  const auto scale = context.vector_if_any(quantization.scale);
  const auto zero_point = context.vector_if_any(quantization.zero_point);
  return fb::CreateQuantizationParameters(context.builder, min, max, scale, zero_point,
                                          static_cast<fb::QuantizationDetails>(details.type), details.value,
                                          quantization.dimension);
}

template <typename T>
Result<std::vector<T>> narrowed(const std::vector<std::int32_t>& values) {
  std::vector<T> result;
  result.reserve(values.size());
  for (const std::int32_t value : values) {
    REEF_REQUIRE(static_cast<T>(value) == value, "sparse index {} does not fit into {} bits", value, 8 * sizeof(T));
    result.push_back(static_cast<T>(value));
  }
  return result;
}

Result<UnionValue> write_index_vector(WriteContext& context, const ir::SparsityDimension::IndexVector& source) {
  UnionValue result{source.wire_type, 0};
  switch (static_cast<fb::SparseIndexVector>(source.wire_type)) {
    case fb::SparseIndexVector::NONE:
      return UnionValue{};
    case fb::SparseIndexVector::Int32Vector:
      result.value = fb::CreateInt32Vector(context.builder, context.vector_if_any(source.values)).Union();
      return result;
    case fb::SparseIndexVector::Uint16Vector: {
      REEF_ASSIGN_OR_RETURN(const auto values, narrowed<std::uint16_t>(source.values));
      context.builder.ForceVectorAlignment(values.size(), sizeof(std::uint16_t), 4);
      result.value = fb::CreateUint16Vector(context.builder, context.vector_if_any(values)).Union();
      return result;
    }
    case fb::SparseIndexVector::Uint8Vector: {
      REEF_ASSIGN_OR_RETURN(const auto values, narrowed<std::uint8_t>(source.values));
      context.builder.ForceVectorAlignment(values.size(), 1, 4);
      result.value = fb::CreateUint8Vector(context.builder, context.vector_if_any(values)).Union();
      return result;
    }
    default:
      break;
  }
  return unsupported("sparse indices are of a type newer than this version knows ({}) and cannot be saved",
                     source.wire_type);
}

Result<Offset<fb::SparsityParameters>> write_sparsity(WriteContext& context, const ir::Sparsity& sparsity) {
  std::vector<Offset<fb::DimensionMetadata>> dimensions;
  for (const ir::SparsityDimension& dimension : sparsity.dimensions) {
    REEF_ASSIGN_OR_RETURN(const UnionValue segments, write_index_vector(context, dimension.segments));
    REEF_ASSIGN_OR_RETURN(const UnionValue indices, write_index_vector(context, dimension.indices));
    dimensions.push_back(fb::CreateDimensionMetadata(context.builder, static_cast<fb::DimensionType>(dimension.format),
                                                     dimension.dense_size,
                                                     static_cast<fb::SparseIndexVector>(segments.type), segments.value,
                                                     static_cast<fb::SparseIndexVector>(indices.type), indices.value));
  }
  // Runtimes insist on these two being there.
  const auto traversal_order = context.builder.CreateVector(sparsity.traversal_order);
  const auto dim_metadata = context.builder.CreateVector(dimensions);
  const auto block_map = context.vector_if_any(sparsity.block_map);
  return fb::CreateSparsityParameters(context.builder, traversal_order, block_map, dim_metadata);
}

fb::TensorType to_wire(ir::DataType type) {
  return static_cast<fb::TensorType>(static_cast<std::int8_t>(static_cast<std::uint8_t>(type)));
}

Offset<flatbuffers::Vector<Offset<fb::VariantSubType>>> write_variants(WriteContext& context,
                                                                       const ir::Tensor& tensor) {
  if (tensor.variant_sub_types.empty()) return 0;
  std::vector<Offset<fb::VariantSubType>> rows;
  for (const ir::VariantSubType& variant : tensor.variant_sub_types) {
    const auto shape = context.vector_if_any(variant.shape);
    rows.push_back(fb::CreateVariantSubType(context.builder, shape, to_wire(variant.type), variant.has_rank));
  }
  return context.builder.CreateVector(rows);
}

}  // namespace

Result<Offset<fb::Tensor>> write_tensor(WriteContext& context, const ir::Tensor& tensor) {
  const auto name = context.string_if_any(tensor.name);
  const auto shape = context.builder.CreateVector(tensor.shape.dims());
  const auto shape_signature = context.vector_if_any(tensor.shape_signature);
  Offset<fb::QuantizationParameters> quantization = 0;
  if (tensor.has_quantization || tensor.quantization != ir::Quantization{}) {
    quantization = write_quantization(context, tensor.quantization);
  }
  Offset<fb::SparsityParameters> sparsity = 0;
  if (tensor.sparsity) {
    REEF_ASSIGN_OR_RETURN(sparsity, write_sparsity(context, *tensor.sparsity));
  }
  const auto variants = write_variants(context, tensor);
  return fb::CreateTensor(context.builder, shape, to_wire(tensor.type), static_cast<std::uint32_t>(tensor.buffer), name,
                          quantization, tensor.is_variable, sparsity, shape_signature, tensor.has_rank, variants,
                          tensor.external_buffer);
}

}  // namespace reef::tflite
