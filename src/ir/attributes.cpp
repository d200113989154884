// SPDX-License-Identifier: Apache-2.0
#include "ir/attributes.h"

#include <algorithm>
#include <bit>

namespace reef::ir {
namespace {

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

template <typename T>
T get_or(const Attributes& attributes, std::string_view name, T fallback) {
  const AttributeValue* value = attributes.find(name);
  const T* typed = value ? std::get_if<T>(value) : nullptr;
  return typed ? *typed : fallback;
}

}  // namespace

bool same_value(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
  if (const auto* x = std::get_if<std::vector<double>>(&a)) {
    const auto& y = std::get<std::vector<double>>(b);
    return std::equal(x->begin(), x->end(), y.begin(), y.end(), same_bits);
  }
  return a == b;
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const Attribute& row : rows_) {
    if (row.name == name) return &row.value;
  }
  return nullptr;
}

void Attributes::set(std::string_view name, AttributeValue value) {
  for (Attribute& row : rows_) {
    if (row.name == name) {
      row.value = std::move(value);
      return;
    }
  }
  rows_.push_back({std::string(name), std::move(value)});
}

bool Attributes::get_bool(std::string_view name, bool fallback) const { return get_or(*this, name, fallback); }
std::int64_t Attributes::get_int(std::string_view name, std::int64_t fallback) const {
  return get_or(*this, name, fallback);
}
double Attributes::get_float(std::string_view name, double fallback) const { return get_or(*this, name, fallback); }
std::vector<std::int64_t> Attributes::get_ints(std::string_view name) const {
  return get_or(*this, name, std::vector<std::int64_t>{});
}

std::string_view Attributes::get_enum(std::string_view name, std::string_view fallback) const {
  const AttributeValue* value = find(name);
  const EnumName* typed = value ? std::get_if<EnumName>(value) : nullptr;
  return typed ? std::string_view(typed->name) : fallback;
}

std::string_view Attributes::get_string(std::string_view name, std::string_view fallback) const {
  const AttributeValue* value = find(name);
  const std::string* typed = value ? std::get_if<std::string>(value) : nullptr;
  return typed ? std::string_view(*typed) : fallback;
}

}  // namespace reef::ir
