// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/option_schema.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>

#include "base/at.h"
#include "formats/tflite/schema_bfbs_generated.h"

namespace reef::tflite {
namespace {

using reflection::BaseType;

bool is_integer(BaseType type) { return type >= BaseType::UType && type <= BaseType::ULong; }
bool is_real(BaseType type) { return type == BaseType::Float || type == BaseType::Double; }

std::string_view last_part(const flatbuffers::String& qualified) {
  const std::string_view name(qualified.data(), qualified.size());
  return name.substr(name.rfind('.') + 1);
}

std::uint16_t full_vtable_bytes(const reflection::Object& object) {
  int slots = 0;
  for (const reflection::Field* field : *object.fields()) slots = std::max(slots, field->id() + 1);
  return static_cast<std::uint16_t>(4 + 2 * slots);
}

// The whole schema in the form that lookups want. Built on first use, never changed after.
class SchemaInfo {
 public:
  static const SchemaInfo& instance() {
    static const SchemaInfo info;
    return info;
  }

  const OptionTable* find(OptionUnion which, int union_type) const {
    const auto& members = which == OptionUnion::kFirst ? first_ : second_;
    const auto found = members.find(union_type);
    return found == members.end() ? nullptr : found->second;
  }
  const OptionTable* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  std::uint16_t vtable_bytes(std::string_view table) const {
    const auto found = vtable_bytes_.find(table);
    return found == vtable_bytes_.end() ? 4 : found->second;
  }
  const std::deque<OptionTable>& tables() const { return tables_; }

 private:
  SchemaInfo() {
    const auto& schema = *reflection::GetSchema(tflite_schema::ModelBinarySchema::data());
    for (const reflection::Enum* source : *schema.enums()) enums_.emplace_back(*source);
    for (const reflection::Object* object : *schema.objects()) {
      vtable_bytes_.emplace(last_part(*object->name()), full_vtable_bytes(*object));
    }
    for (const reflection::Enum* source : *schema.enums()) {
      if (last_part(*source->name()) == "BuiltinOptions") add_union(schema, *source, OptionUnion::kFirst);
      if (last_part(*source->name()) == "BuiltinOptions2") add_union(schema, *source, OptionUnion::kSecond);
    }
  }

  void add_union(const reflection::Schema& schema, const reflection::Enum& source, OptionUnion which) {
    for (const reflection::EnumVal* member : *source.values()) {
      if (member->value() == 0) continue;  // NONE
      const auto index = static_cast<flatbuffers::uoffset_t>(member->union_type()->index());
      tables_.push_back(describe(*schema.objects()->Get(index)));
      OptionTable& table = tables_.back();
      table.which = which;
      table.union_type = static_cast<int>(member->value());
      (which == OptionUnion::kFirst ? first_ : second_).emplace(table.union_type, &table);
      by_name_.emplace(table.name, &table);
    }
  }

  OptionTable describe(const reflection::Object& object) const {
    OptionTable table;
    table.name = last_part(*object.name());
    table.vtable_bytes = full_vtable_bytes(object);
    for (const reflection::Field* source : *object.fields()) {
      if (source->deprecated()) continue;
      const std::optional<OptionField> field = describe(*source);
      if (field) {
        table.fields.push_back(*field);
      } else {
        table.describable = false;
      }
    }
    // The schema lists fields by name.
    std::sort(table.fields.begin(), table.fields.end(),
              [](const OptionField& a, const OptionField& b) { return a.slot < b.slot; });
    return table;
  }

  std::optional<OptionField> describe(const reflection::Field& source) const {
    OptionField field;
    field.name = source.name()->str();
    field.slot = source.offset();
    field.default_integer = source.default_integer();
    field.default_real = source.default_real();
    const BaseType base = source.type()->base_type();
    const bool is_vector = base == BaseType::Vector;
    field.wire = is_vector ? source.type()->element() : base;
    const bool has_names = is_integer(field.wire) && source.type()->index() >= 0;
    if (has_names) field.names = &enums_[reef::at(source.type()->index())];
    if (base == BaseType::String) {
      field.kind = FieldKind::kString;
    } else if (has_names) {
      field.kind = is_vector ? FieldKind::kEnums : FieldKind::kEnum;
    } else if (is_integer(field.wire)) {
      field.kind = is_vector                      ? FieldKind::kIntegers
                   : field.wire == BaseType::Bool ? FieldKind::kBool
                                                  : FieldKind::kInteger;
    } else if (is_real(field.wire)) {
      field.kind = is_vector ? FieldKind::kFloats : FieldKind::kFloat;
    } else {
      return std::nullopt;
    }
    return field;
  }

  std::deque<EnumTable> enums_;  // deques: elements keep their addresses
  std::deque<OptionTable> tables_;
  std::map<int, const OptionTable*> first_, second_;
  std::map<std::string, const OptionTable*, std::less<>> by_name_;
  std::map<std::string, std::uint16_t, std::less<>> vtable_bytes_;
};

}  // namespace

EnumTable::EnumTable(const reflection::Enum& source) {
  for (const reflection::EnumVal* value : *source.values()) values_.emplace_back(value->value(), value->name()->str());
}

std::string EnumTable::name_of(std::int64_t value) const {
  for (const auto& [number, name] : values_) {
    if (number == value) return name;
  }
  return std::to_string(value);
}

std::optional<std::int64_t> EnumTable::value_of(std::string_view name) const {
  for (const auto& [number, known] : values_) {
    if (known == name) return number;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return value;
}

const OptionTable* find_option_table(OptionUnion which, int union_type) {
  return SchemaInfo::instance().find(which, union_type);
}
const OptionTable* find_option_table(std::string_view name) { return SchemaInfo::instance().find(name); }

std::vector<const OptionTable*> all_option_tables() {
  std::vector<const OptionTable*> result;
  for (const OptionTable& table : SchemaInfo::instance().tables()) result.push_back(&table);
  return result;
}

std::uint16_t known_vtable_bytes(std::string_view table) { return SchemaInfo::instance().vtable_bytes(table); }

int count_newer_fields(const flatbuffers::Table& table, std::uint16_t known_bytes) {
  const std::uint8_t* vtable = table.GetVTable();
  const auto bytes = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
  int newer = 0;
  for (int at = known_bytes; at + 2 <= bytes; at += 2) {
    if (flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + at) != 0) ++newer;
  }
  return newer;
}

int wire_size(BaseType type) {
  switch (type) {
    case BaseType::Short:
    case BaseType::UShort:
      return 2;
    case BaseType::Int:
    case BaseType::UInt:
    case BaseType::Float:
      return 4;
    case BaseType::Long:
    case BaseType::ULong:
    case BaseType::Double:
      return 8;
    default:
      return 1;
  }
}

}  // namespace reef::tflite
