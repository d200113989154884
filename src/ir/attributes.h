// SPDX-License-Identifier: Apache-2.0
// Attributes of an operator: an ordered list of (name, value).
//
// Names and types are those of TFLite's option tables. Enumerated values are kept by name ("SAME", "RELU6"), or as the
// number's decimal text when this version has no name for it, so that the text form can be read without a schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reef::ir {

struct EnumName {
  std::string name;
  friend bool operator==(const EnumName&, const EnumName&) = default;
};

using AttributeValue = std::variant<bool, std::int64_t, double, EnumName, std::string, std::vector<std::int64_t>,
                                    std::vector<double>, std::vector<std::string>>;

// Equality of content: floating-point values are compared by bits, so that NaN equals itself.
bool same_value(const AttributeValue& a, const AttributeValue& b);

struct Attribute {
  std::string name;
  AttributeValue value;
  friend bool operator==(const Attribute& a, const Attribute& b) {
    return a.name == b.name && same_value(a.value, b.value);
  }
};

class Attributes {
 public:
  const AttributeValue* find(std::string_view name) const;
  void set(std::string_view name, AttributeValue value);  // replaces in place or appends
  bool empty() const { return rows_.empty(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

  // The value, or `fallback` when the attribute is absent or of another type.
  bool get_bool(std::string_view name, bool fallback = false) const;
  std::int64_t get_int(std::string_view name, std::int64_t fallback = 0) const;
  double get_float(std::string_view name, double fallback = 0) const;
  std::string_view get_enum(std::string_view name, std::string_view fallback = "") const;
  std::string_view get_string(std::string_view name, std::string_view fallback = "") const;
  std::vector<std::int64_t> get_ints(std::string_view name) const;

  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<Attribute> rows_;
};

}  // namespace reef::ir
