// SPDX-License-Identifier: Apache-2.0
// Element types of tensors. The values are those of TFLite's wire format, so that an unknown newer type survives
// load and save as a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reef::ir {

enum class DataType : std::uint8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kInt32 = 2,
  kUInt8 = 3,
  kInt64 = 4,
  kString = 5,
  kBool = 6,
  kInt16 = 7,
  kComplex64 = 8,
  kInt8 = 9,
  kFloat64 = 10,
  kComplex128 = 11,
  kUInt64 = 12,
  kResource = 13,  // handle of a variable or table that lives beside the graph
  kVariant = 14,   // opaque object
  kUInt32 = 15,
  kUInt16 = 16,
  kInt4 = 17,  // two elements a byte, low nibble first
  kBFloat16 = 18,
  kInt2 = 19,   // four elements a byte, low bits first
  kUInt4 = 20,  // two elements a byte, low nibble first
  kFloat8E4M3FN = 21,
  kFloat8E5M2 = 22,
};

// "int8", "float32", ...; "type<n>" for a number this version does not know.
std::string type_name(DataType type);
std::optional<DataType> type_from_name(std::string_view name);

// Bits of one element; 0 for types without a fixed size (string, resource, variant, unknown).
int bits_per_element(DataType type);

inline bool is_packed(DataType type) {
  return type == DataType::kInt4 || type == DataType::kInt2 || type == DataType::kUInt4;
}
inline bool is_integer_8(DataType type) { return type == DataType::kInt8 || type == DataType::kUInt8; }

// The C++ type of one element: data_type_of<std::int8_t> == DataType::kInt8. Sub-byte types have none.
template <typename T>
inline constexpr DataType data_type_of = DataType::kVariant;
template <>
inline constexpr DataType data_type_of<float> = DataType::kFloat32;
template <>
inline constexpr DataType data_type_of<double> = DataType::kFloat64;
template <>
inline constexpr DataType data_type_of<std::int8_t> = DataType::kInt8;
template <>
inline constexpr DataType data_type_of<std::uint8_t> = DataType::kUInt8;
template <>
inline constexpr DataType data_type_of<std::int16_t> = DataType::kInt16;
template <>
inline constexpr DataType data_type_of<std::uint16_t> = DataType::kUInt16;
template <>
inline constexpr DataType data_type_of<std::int32_t> = DataType::kInt32;
template <>
inline constexpr DataType data_type_of<std::uint32_t> = DataType::kUInt32;
template <>
inline constexpr DataType data_type_of<std::int64_t> = DataType::kInt64;
template <>
inline constexpr DataType data_type_of<std::uint64_t> = DataType::kUInt64;
template <>
inline constexpr DataType data_type_of<bool> = DataType::kBool;

}  // namespace reef::ir
