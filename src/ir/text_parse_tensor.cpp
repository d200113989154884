// SPDX-License-Identifier: Apache-2.0
// Rules for what belongs to a tensor: type and shape, content, quantization, sparsity.
#include <cstring>

#include "ir/text_rules.h"

namespace reef::ir::text {
namespace {

template <typename Element>
Result<Bytes> parse_elements(Cursor& cursor, DataType type) {
  const std::string what = fmt::format("a value of type {}", type_name(type));
  std::vector<std::uint8_t> bytes;
  REEF_RETURN_IF_ERROR(cursor.list('[', ']', [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const Element value, cursor.number<Element>(what));
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return ok_status();
  }));
  return Bytes(std::move(bytes));
}

// (scales=%1, zero_points=%2, block_size=32, NAME=[...])
Status parse_blocks(Cursor& cursor, std::int32_t& scales, std::int32_t& zero_points, std::int32_t& block_size,
                    std::string_view list_name, std::vector<std::int32_t>& list) {
  return cursor.list('(', ')', [&]() -> Status {
    if (cursor.accept_word("scales")) return cursor.assign_tensor(scales);
    if (cursor.accept_word("zero_points")) return cursor.assign_tensor(zero_points);
    if (cursor.accept_word("block_size")) return cursor.assign(block_size, "a number of elements");
    if (cursor.accept_word(list_name)) return cursor.assign_list(list, "an integer");
    return cursor.expected(fmt::format("scales, zero_points, block_size or {}", list_name));
  });
}

Status parse_details(Cursor& cursor, Quantization& quantization) {
  if (cursor.accept_word("custom")) {
    return cursor.assign_hex(quantization.details.emplace<CustomQuantization>().custom, "custom quantization");
  }
  if (cursor.accept_word("blockwise")) {
    auto& blocks = quantization.details.emplace<BlockwiseQuantization>();
    return parse_blocks(cursor, blocks.scales, blocks.zero_points, blocks.block_size, "block_shape",
                        blocks.block_shape);
  }
  if (cursor.accept_word("multi_axis")) {
    auto& axes = quantization.details.emplace<MultiAxisQuantization>();
    return parse_blocks(cursor, axes.scales, axes.zero_points, axes.block_size, "dimensions", axes.dimensions);
  }
  if (cursor.accept_word("opaque")) return parse_opaque(cursor, quantization.details.emplace<OpaqueTable>());
  return cursor.expected("scale, zero_point, dimension, min, max, custom, blockwise, multi_axis, opaque or absent");
}

// wire1[0, 3]
Status parse_index_vector(Cursor& cursor, SparsityDimension::IndexVector& vector) {
  constexpr std::string_view kPrefix = "wire";
  constexpr std::string_view kWhat = "a list such as wire1[0, 3]";
  REEF_RETURN_IF_ERROR(cursor.expect('='));
  const Token token = cursor.peek();
  if (token.kind != TokenKind::kWord || !token.text.starts_with(kPrefix)) return cursor.expected(kWhat);
  const char* const end = token.text.data() + token.text.size();
  const auto [stop, error] = std::from_chars(token.text.data() + kPrefix.size(), end, vector.wire_type);
  if (error != std::errc() || stop != end) return cursor.expected(kWhat);
  cursor.take();
  REEF_ASSIGN_OR_RETURN(vector.values, cursor.numbers<std::int32_t>("an index"));
  return ok_status();
}

Status parse_sparsity_dimension(Cursor& cursor, SparsityDimension& dimension) {
  return cursor.list('(', ')', [&]() -> Status {
    if (cursor.accept_word("format")) return cursor.assign(dimension.format, "a format: 0 dense, 1 compressed");
    if (cursor.accept_word("dense_size")) return cursor.assign(dimension.dense_size, "a size");
    if (cursor.accept_word("segments")) return parse_index_vector(cursor, dimension.segments);
    if (cursor.accept_word("indices")) return parse_index_vector(cursor, dimension.indices);
    return cursor.expected("format, dense_size, segments or indices");
  });
}

}  // namespace

Result<Bytes> parse_data(Cursor& cursor, std::optional<DataType> type) {
  Result<Bytes> result = Bytes();
  if (cursor.peek().kind == TokenKind::kHex) {
    result = cursor.hex("a constant");
  } else if (cursor.peek().kind == TokenKind::kString) {
    REEF_ASSIGN_OR_RETURN(const std::string bytes, cursor.string("a constant"));
    result = Bytes(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  } else if (!type) {
    return cursor.expected("a constant: hex\"...\", a string, or values behind their type as in int8[1, 2]");
  } else if (!with_value_type(*type, [&](auto zero) { result = parse_elements<decltype(zero)>(cursor, *type); })) {
    return cursor.expected(fmt::format("a constant of type {} as hex\"...\" or a string", type_name(*type)));
  }
  if (result.ok() && cursor.peek().kind == TokenKind::kEllipsis) return cursor.expected("the rest of the constant");
  return result;
}

Status parse_opaque(Cursor& cursor, OpaqueTable& table) {
  return cursor.list('(', ')', [&]() -> Status {
    if (cursor.accept_word("union_type")) return cursor.assign(table.union_type, "a discriminator");
    if (cursor.accept_word("table_offset")) return cursor.assign(table.table_offset, "an offset");
    if (cursor.accept_word("alignment_phase")) return cursor.assign(table.alignment_phase, "an address modulo 16");
    if (cursor.accept_word("bytes")) return cursor.assign_hex(table.bytes, "a table");
    return cursor.expected("union_type, table_offset, alignment_phase or bytes");
  });
}

Status parse_typed_shape(Cursor& cursor, DataType& type, std::vector<std::int32_t>& dims) {
  constexpr std::string_view kWhat = "an element type, such as int8 or float32";
  const Token token = cursor.peek();
  REEF_ASSIGN_OR_RETURN(const std::string name, cursor.word(kWhat));
  const std::optional<DataType> known = type_from_name(name);
  if (!known) return Cursor::expected_at(token, kWhat);
  type = *known;
  REEF_ASSIGN_OR_RETURN(dims, cursor.numbers<std::int32_t>("a size"));
  return ok_status();
}

Status parse_quantization(Cursor& cursor, Tensor& tensor) {
  tensor.has_quantization = true;
  Quantization& quantization = tensor.quantization;
  return cursor.list('(', ')', [&]() -> Status {
    if (cursor.accept_word("scale")) return cursor.assign_list(quantization.scale, "a scale");
    if (cursor.accept_word("zero_point")) return cursor.assign_list(quantization.zero_point, "a zero point");
    if (cursor.accept_word("dimension")) return cursor.assign(quantization.dimension, "a dimension");
    if (cursor.accept_word("min")) return cursor.assign_list(quantization.min, "a minimum");
    if (cursor.accept_word("max")) return cursor.assign_list(quantization.max, "a maximum");
    if (cursor.accept_word("absent")) {
      tensor.has_quantization = false;
      return ok_status();
    }
    return parse_details(cursor, quantization);
  });
}

Status parse_sparsity(Cursor& cursor, Sparsity& sparsity) {
  return cursor.list('(', ')', [&]() -> Status {
    if (cursor.accept_word("order")) return cursor.assign_list(sparsity.traversal_order, "a dimension");
    if (cursor.accept_word("block_map")) return cursor.assign_list(sparsity.block_map, "a dimension");
    if (cursor.accept_word("dimension")) return parse_sparsity_dimension(cursor, sparsity.dimensions.emplace_back());
    return cursor.expected("order, block_map or dimension");
  });
}

}  // namespace reef::ir::text
