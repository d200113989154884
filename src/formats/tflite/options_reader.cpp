// SPDX-License-Identifier: Apache-2.0

#include "formats/tflite/options.h"

namespace reef::tflite {
namespace {

using flatbuffers::Table;
using reflection::BaseType;

template <typename T>
std::int64_t field_as(const Table& source, const OptionField& field) {
  return static_cast<std::int64_t>(source.GetField<T>(field.slot, static_cast<T>(field.default_integer)));
}

std::int64_t read_integer(const Table& source, const OptionField& field) {
  switch (field.wire) {
    case BaseType::Byte:
      return field_as<std::int8_t>(source, field);
    case BaseType::Short:
      return field_as<std::int16_t>(source, field);
    case BaseType::UShort:
      return field_as<std::uint16_t>(source, field);
    case BaseType::Int:
      return field_as<std::int32_t>(source, field);
    case BaseType::UInt:
      return field_as<std::uint32_t>(source, field);
    case BaseType::Long:
      return field_as<std::int64_t>(source, field);
    case BaseType::ULong:
      return field_as<std::uint64_t>(source, field);
    default:
      return field_as<std::uint8_t>(source, field);  // bool, ubyte
  }
}

double read_real(const Table& source, const OptionField& field) {
  if (field.wire == BaseType::Double) return source.GetField<double>(field.slot, field.default_real);
  return source.GetField<float>(field.slot, static_cast<float>(field.default_real));
}

template <typename To, typename Wire>
std::vector<To> elements_as(ReadContext& context, const Table& source, const OptionField& field) {
  return context.copy<To>(source.GetPointer<const flatbuffers::Vector<Wire>*>(field.slot));
}

std::vector<std::int64_t> read_integers(ReadContext& context, const Table& source, const OptionField& field) {
  using To = std::int64_t;
  switch (field.wire) {
    case BaseType::Byte:
      return elements_as<To, std::int8_t>(context, source, field);
    case BaseType::Short:
      return elements_as<To, std::int16_t>(context, source, field);
    case BaseType::UShort:
      return elements_as<To, std::uint16_t>(context, source, field);
    case BaseType::Int:
      return elements_as<To, std::int32_t>(context, source, field);
    case BaseType::UInt:
      return elements_as<To, std::uint32_t>(context, source, field);
    case BaseType::Long:
      return elements_as<To, std::int64_t>(context, source, field);
    case BaseType::ULong:
      return elements_as<To, std::uint64_t>(context, source, field);
    default:
      break;
  }
  std::vector<To> result = elements_as<To, std::uint8_t>(context, source, field);
  if (field.wire == BaseType::Bool) {
    for (To& element : result) element = element != 0;
  }
  return result;
}

ir::AttributeValue read_field(ReadContext& context, const Table& source, const OptionField& field) {
  switch (field.kind) {
    case FieldKind::kBool:
      return read_integer(source, field) != 0;
    case FieldKind::kInteger:
      return read_integer(source, field);
    case FieldKind::kFloat:
      return read_real(source, field);
    case FieldKind::kEnum:
      return ir::EnumName{field.names->name_of(read_integer(source, field))};
    case FieldKind::kString:
      return context.copy(source.GetPointer<const flatbuffers::String*>(field.slot));
    case FieldKind::kIntegers:
      return read_integers(context, source, field);
    case FieldKind::kFloats:
      return field.wire == BaseType::Double ? elements_as<double, double>(context, source, field)
                                            : elements_as<double, float>(context, source, field);
    case FieldKind::kEnums:
      break;
  }
  std::vector<std::string> names;
  for (const std::int64_t value : read_integers(context, source, field)) {
    if (!context.charge(sizeof(std::string))) break;
    names.push_back(field.names->name_of(value));
  }
  return names;
}

}  // namespace

ir::Attributes read_options(ReadContext& context, const OptionTable& table, const Table& source) {
  ir::Attributes result;
  for (const OptionField& field : table.fields) {
    if (!context.charge(sizeof(ir::Attribute))) break;
    result.set(field.name, read_field(context, source, field));
  }
  return result;
}

}  // namespace reef::tflite
