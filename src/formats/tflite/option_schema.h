// SPDX-License-Identifier: Apache-2.0
// The schema's tables as data: which fields an option table has, at which slots, with which defaults.
//
// Derived once from the binary schema that flatc embeds, so that the 150 or so option tables are read and written by
// one generic routine each and a new table costs a line in schema.fbs and nothing here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <flatbuffers/reflection.h>

namespace reef::tflite {

// The names of an enum's values.
class EnumTable {
 public:
  explicit EnumTable(const reflection::Enum& source);
  // The enumerator, or the number in decimal when it has no name.
  std::string name_of(std::int64_t value) const;
  // The reverse; nullopt when `name` is neither an enumerator nor a number.
  std::optional<std::int64_t> value_of(std::string_view name) const;

 private:
  std::vector<std::pair<std::int64_t, std::string>> values_;
};

enum class FieldKind { kBool, kInteger, kFloat, kEnum, kString, kIntegers, kFloats, kEnums };

struct OptionField {
  std::string name;
  std::uint16_t slot = 0;  // offset of its entry in the vtable
  FieldKind kind = FieldKind::kInteger;
  reflection::BaseType wire = reflection::Int;  // of the value, or of the elements of a vector
  std::int64_t default_integer = 0;
  double default_real = 0;
  const EnumTable* names = nullptr;  // for enums
};

enum class OptionUnion { kFirst, kSecond };  // BuiltinOptions, BuiltinOptions2

struct OptionTable {
  std::string name;  // "Conv2DOptions"
  OptionUnion which = OptionUnion::kFirst;
  int union_type = 0;
  std::uint16_t vtable_bytes = 4;   // of a vtable with every field that the schema knows
  bool describable = true;          // false: has a field that ir::Attributes cannot hold
  std::vector<OptionField> fields;  // by id; deprecated ones left out
};

// nullptr when the schema has no such union member.
const OptionTable* find_option_table(OptionUnion which, int union_type);
const OptionTable* find_option_table(std::string_view name);
// Every member of both unions.
std::vector<const OptionTable*> all_option_tables();

// Size of a vtable of `table` ("Tensor") with every field that the schema knows.
std::uint16_t known_vtable_bytes(std::string_view table);

// Present fields of `table` beyond the first `known_bytes` of its vtable: those newer than our schema. The table must
// have passed verification.
int count_newer_fields(const flatbuffers::Table& table, std::uint16_t known_bytes);

// Bytes of one value of a scalar wire type.
int wire_size(reflection::BaseType type);

}  // namespace reef::tflite
