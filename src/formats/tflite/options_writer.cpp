// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/tflite/options.h"

namespace reef::tflite {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::uoffset_t;
using reflection::BaseType;

template <typename T>
const T* value_as(const ir::AttributeValue& value) {
  return std::get_if<T>(&value);
}

// "[]" in a text has no element type.
bool is_empty_vector(const ir::AttributeValue& value) {
  if (const auto* v = value_as<std::vector<std::int64_t>>(value)) return v->empty();
  if (const auto* v = value_as<std::vector<double>>(value)) return v->empty();
  if (const auto* v = value_as<std::vector<std::string>>(value)) return v->empty();
  return false;
}

Status wrong_type(const OptionField& field, std::string_view wanted) {
  return invalid_input("attribute '{}' must be {}", field.name, wanted);
}

Result<float> to_float(const OptionField& field, double value) {
  const bool fits = !std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max();
  REEF_REQUIRE(fits, "attribute '{}' is {}, which does not fit into a float", field.name, value);
  return static_cast<float>(value);
}

// Calls body(T()) with the C++ type of an integer wire type.
template <typename Body>
auto with_integer_type(BaseType wire, Body&& body) {
  switch (wire) {
    case BaseType::Byte:
      return body(std::int8_t{});
    case BaseType::Short:
      return body(std::int16_t{});
    case BaseType::UShort:
      return body(std::uint16_t{});
    case BaseType::Int:
      return body(std::int32_t{});
    case BaseType::UInt:
      return body(std::uint32_t{});
    case BaseType::Long:
      return body(std::int64_t{});
    case BaseType::ULong:
      return body(std::uint64_t{});
    default:
      return body(std::uint8_t{});
  }
}

Status check_range(const OptionField& field, std::int64_t value) {
  if (wire_size(field.wire) == 8) return ok_status();  // 64-bit values are kept bit by bit
  const bool fits = with_integer_type(field.wire, [&](auto zero) {
    using T = decltype(zero);
    return static_cast<std::int64_t>(static_cast<T>(value)) == value;
  });
  REEF_REQUIRE(fits && (field.wire != BaseType::Bool || value == 0 || value == 1),
               "attribute '{}' is {}, which does not fit", field.name, value);
  return ok_status();
}

Result<std::int64_t> to_integer(const OptionField& field, const ir::AttributeValue& value) {
  std::int64_t result = 0;
  if (field.kind == FieldKind::kBool) {
    const bool* typed = value_as<bool>(value);
    if (!typed) return wrong_type(field, "true or false");
    result = *typed;
  } else if (field.kind == FieldKind::kEnum) {
    const auto* typed = value_as<ir::EnumName>(value);
    if (!typed) return wrong_type(field, "the name of an enum value");
    const std::optional<std::int64_t> number = field.names->value_of(typed->name);
    REEF_REQUIRE(number.has_value(), "attribute '{}' has no value named '{}'", field.name, typed->name);
    result = *number;
  } else {
    const auto* typed = value_as<std::int64_t>(value);
    if (!typed) return wrong_type(field, "an integer");
    result = *typed;
  }
  REEF_RETURN_IF_ERROR(check_range(field, result));
  return result;
}

Result<double> to_real(const OptionField& field, const ir::AttributeValue& value) {
  if (const auto* typed = value_as<double>(value)) return *typed;
  if (const auto* typed = value_as<std::int64_t>(value)) return static_cast<double>(*typed);
  return wrong_type(field, "a number");
}

// Scalars that equal the default by bits are left out, as all writers do.
Status add_scalar(FlatBufferBuilder& builder, const OptionField& field, const ir::AttributeValue& value) {
  if (field.kind == FieldKind::kFloat) {
    REEF_ASSIGN_OR_RETURN(const double real, to_real(field, value));
    if (field.wire == BaseType::Double) {
      if (std::bit_cast<std::uint64_t>(real) != std::bit_cast<std::uint64_t>(field.default_real)) {
        builder.AddElement<double>(field.slot, real);
      }
      return ok_status();
    }
    REEF_ASSIGN_OR_RETURN(const float narrow, to_float(field, real));
    if (std::bit_cast<std::uint32_t>(narrow) != std::bit_cast<std::uint32_t>(static_cast<float>(field.default_real))) {
      builder.AddElement<float>(field.slot, narrow);
    }
    return ok_status();
  }
  REEF_ASSIGN_OR_RETURN(const std::int64_t integer, to_integer(field, value));
  with_integer_type(field.wire, [&](auto zero) {
    using T = decltype(zero);
    if (integer != field.default_integer) builder.AddElement<T>(field.slot, static_cast<T>(integer));
  });
  return ok_status();
}

Result<std::vector<std::int64_t>> to_integers(const OptionField& field, const ir::AttributeValue& value) {
  std::vector<std::int64_t> result;
  if (field.kind == FieldKind::kEnums) {
    const auto* names = value_as<std::vector<std::string>>(value);
    if (!names) return wrong_type(field, "a list of names of enum values");
    for (const std::string& name : *names) {
      const std::optional<std::int64_t> number = field.names->value_of(name);
      REEF_REQUIRE(number.has_value(), "attribute '{}' has no value named '{}'", field.name, name);
      result.push_back(*number);
    }
  } else {
    const auto* typed = value_as<std::vector<std::int64_t>>(value);
    if (!typed) return wrong_type(field, "a list of integers");
    result = *typed;
  }
  for (const std::int64_t element : result) REEF_RETURN_IF_ERROR(check_range(field, element));
  return result;
}

Result<uoffset_t> write_floats(FlatBufferBuilder& builder, const OptionField& field, const ir::AttributeValue& value) {
  const auto* typed = value_as<std::vector<double>>(value);
  if (!typed) return wrong_type(field, "a list of numbers with a decimal point");
  if (field.wire == BaseType::Double) return builder.CreateVector(*typed).o;
  std::vector<float> narrow;
  for (const double element : *typed) {
    REEF_ASSIGN_OR_RETURN(const float one, to_float(field, element));
    narrow.push_back(one);
  }
  return builder.CreateVector(narrow).o;
}

// Strings and vectors; 0 for an empty one, which is left out.
Result<uoffset_t> write_outside(FlatBufferBuilder& builder, const OptionField& field, const ir::AttributeValue& value) {
  if (field.kind == FieldKind::kString) {
    const auto* typed = value_as<std::string>(value);
    if (!typed) return wrong_type(field, "a string");
    return typed->empty() ? 0 : builder.CreateString(*typed).o;
  }
  if (is_empty_vector(value)) return uoffset_t{0};
  if (field.kind == FieldKind::kFloats) return write_floats(builder, field, value);
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> integers, to_integers(field, value));
  return with_integer_type(field.wire, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> narrow;
    for (const std::int64_t element : integers) narrow.push_back(static_cast<T>(element));
    return builder.CreateVector(narrow).o;
  });
}

bool is_scalar(const OptionField& field) { return field.kind <= FieldKind::kEnum; }

// Attributes that Reef's stages note for each other: how the chip computes an operator that stays as it is. No file has
// them.
constexpr std::string_view kOwnNotes = "reef_";

}  // namespace

bool has_only_notes(const ir::Attributes& attributes) {
  return std::all_of(attributes.begin(), attributes.end(),
                     [](const ir::Attribute& attribute) { return attribute.name.starts_with(kOwnNotes); });
}

Result<uoffset_t> write_options(FlatBufferBuilder& builder, const OptionTable& table,
                                const ir::Attributes& attributes) {
  for (const ir::Attribute& attribute : attributes) {
    if (attribute.name.starts_with(kOwnNotes)) continue;
    bool known = false;
    for (const OptionField& field : table.fields) known = known || field.name == attribute.name;
    REEF_REQUIRE(known, "{} has no attribute '{}'", table.name, attribute.name);
  }
  std::vector<uoffset_t> outside(table.fields.size(), 0);
  for (std::size_t i = 0; i < table.fields.size(); ++i) {
    const ir::AttributeValue* value = attributes.find(table.fields[i].name);
    if (value == nullptr || is_scalar(table.fields[i])) continue;
    REEF_ASSIGN_OR_RETURN(outside[i], write_outside(builder, table.fields[i], *value));
  }
  const uoffset_t start = builder.StartTable();
  Status status;
  // Widest first, so that no padding is needed between fields.
  for (int width = 8; width > 0 && status.ok(); width /= 2) {
    for (std::size_t i = 0; i < table.fields.size() && status.ok(); ++i) {
      const OptionField& field = table.fields[i];
      if (is_scalar(field) ? wire_size(field.wire) != width : width != 4) continue;
      const ir::AttributeValue* value = attributes.find(field.name);
      if (value == nullptr) continue;
      if (!is_scalar(field)) {
        builder.AddOffset(field.slot, Offset<void>(outside[i]));
      } else {
        status = add_scalar(builder, field, *value);
      }
    }
  }
  const uoffset_t end = builder.EndTable(start);
  if (!status.ok()) return status.in(table.name);
  return end;
}

}  // namespace reef::tflite
