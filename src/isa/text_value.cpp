// SPDX-License-Identifier: Apache-2.0
#include "isa/text_value.h"

#include <bit>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace reef::isa::text {
namespace {

constexpr std::string_view kAllBut = "all-but-";

std::string print_tiles(std::uint32_t mask) {
  if (mask == 0xffff) return "all";
  if (mask == 0) return "none";
  std::string out;
  for (int tile = 0; tile < 16; ++tile) {
    if ((mask >> tile & 1) == 0) continue;
    int last = tile;
    while (last < 15 && (mask >> (last + 1) & 1) != 0) ++last;
    if (!out.empty()) out += ',';
    out += last > tile ? fmt::format("{}-{}", tile, last) : fmt::format("{}", tile);
    tile = last;
  }
  return out;
}

bool read_tile(std::string_view& text, int& tile) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), tile);
  if (error != std::errc() || tile < 0 || tile > 15) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

bool read_tiles(std::string_view text, std::uint32_t& mask) {
  mask = 0;
  while (true) {
    int first = 0;
    if (!read_tile(text, first)) return false;
    int last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!read_tile(text, last) || last < first) return false;
    }
    for (int tile = first; tile <= last; ++tile) mask |= 1u << tile;
    if (text.empty()) return true;
    if (text[0] != ',') return false;
    text.remove_prefix(1);
  }
}

std::string print_mask(const Field& field, std::uint32_t mask) {
  if (mask == field.mask()) return "all";
  if (mask == 0) return "none";
  const bool inverted = std::popcount(mask) * 2 > field.width;
  std::string out;
  for (int bit = 0; bit < field.width; ++bit) {
    if (((mask >> bit & 1) != 0) == inverted) continue;
    if (!out.empty()) out += ',';
    out += field.values[at(bit)];
  }
  return inverted ? std::string(kAllBut) + out : out;
}

bool read_mask(const Field& field, std::string_view text, std::uint32_t& mask) {
  const bool inverted = text.starts_with(kAllBut);
  if (inverted) text.remove_prefix(kAllBut.size());
  mask = 0;
  while (true) {
    const std::string_view name = text.substr(0, text.find(','));
    std::size_t bit = 0;
    while (bit < field.values.size() && field.values[bit] != name) ++bit;
    if (bit == field.values.size()) return false;
    mask |= 1u << bit;
    if (name.size() == text.size()) break;
    text.remove_prefix(name.size() + 1);
  }
  if (inverted) mask = ~mask & field.mask();
  return true;
}

std::string list_of(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

std::string print_value(const Instruction& instruction, const Field& field) {
  const std::uint32_t bits = instruction.bits(field);
  switch (field.kind) {
    case Kind::kFloat32:
      return print_float(bits);
    case Kind::kTileMask:
      return print_tiles(bits);
    case Kind::kMask:
      return print_mask(field, bits);
    case Kind::kRaw:
      return fmt::format("{:#x}", bits);
    case Kind::kEnum:
      if (bits < field.values.size() && !field.values[bits].empty()) return std::string(field.values[bits]);
      break;
    default:
      break;
  }
  return fmt::format("{}", instruction.get(field));
}

// Describes the field's valid values, for error messages.
std::string value_help(const Field& field) {
  const std::int64_t low = field.kind == Kind::kSigned ? -(std::int64_t{1} << (field.width - 1)) : 0;
  const std::int64_t range = (std::int64_t{1} << field.width) - 1;
  const std::string number = fmt::format("a number from {} to {}", low + field.plus, low + range + field.plus);
  switch (field.kind) {
    case Kind::kFloat32:
      return "a decimal number, inf, -inf or 32 bits in hexadecimal";
    case Kind::kTileMask:
      return "all, none, tiles such as 0,3-5, or 0x and the mask";
    case Kind::kMask:
      return fmt::format("all, none, names with commas, all-but- and names, or 0x and the mask; names: {}",
                         list_of(field.values));
    case Kind::kEnum:
      return fmt::format("one of {}, or {}", list_of(field.values), number);
    default:
      return number;
  }
}

// As the value that get() gives; floats and masks as bits.
bool read_value(const Field& field, std::string_view token, std::int64_t& value) {
  std::uint32_t bits = 0;
  switch (field.kind) {
    case Kind::kFloat32:
      if (!read_float(token, bits)) return false;
      value = bits;
      return true;
    case Kind::kTileMask:
    case Kind::kMask:
      value = token == "all" ? field.mask() : 0;
      if (token == "all" || token == "none") return true;
      if (field.kind == Kind::kTileMask ? read_tiles(token, bits) : read_mask(field, token, bits)) {
        value = bits;
        return true;
      }
      return token.starts_with("0x") && read_integer(token, value);
    case Kind::kEnum:
      for (std::size_t i = 0; i < field.values.size(); ++i) {
        if (!field.values[i].empty() && field.values[i] == token) {
          value = static_cast<std::int64_t>(i);
          return true;
        }
      }
      return read_integer(token, value);
    default:
      return read_integer(token, value);
  }
}

}  // namespace

std::string print_float(std::uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  if (std::isnan(value)) return fmt::format("{:#010x}", bits);
  return fmt::format("{}", value);
}

bool read_float(std::string_view token, std::uint32_t& bits) {
  if (token.starts_with("0x")) {
    std::int64_t value = 0;
    if (!read_integer(token, value) || value > 0xffffffffll) return false;
    bits = static_cast<std::uint32_t>(value);
    return true;
  }
  const bool negative = token.starts_with('-');
  const std::string_view magnitude = token.substr(negative ? 1 : 0);
  if (magnitude == "inf") {
    bits = negative ? 0xff800000u : 0x7f800000u;
    return true;
  }
  if (magnitude.empty() || !((magnitude[0] >= '0' && magnitude[0] <= '9') || magnitude[0] == '.')) return false;
  float value = 0;
  const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || stop != token.data() + token.size()) return false;
  bits = std::bit_cast<std::uint32_t>(value);
  return true;
}

void print_item(std::string& out, const Instruction& instruction, const Field& field) {
  if (!field.group.empty()) {
    out += field.group;
    out += '.';
  }
  out += field.name;
  if (field.kind == Kind::kFlag && instruction.test(field)) return;
  out += '=';
  out += print_value(instruction, field);
}

Result<const Field*> read_item(Line& line, Instruction& instruction) {
  const Place place = line.place();
  const std::string_view name = line.next_word();
  const Field* const field = find_field(instruction.opcode(), name);
  if (field == nullptr || *field == common::kOpcode) {
    return line.expected(fmt::format("a field of {}", info(instruction.opcode()).mnemonic));
  }
  REEF_RETURN_IF_ERROR(line.expect_word(name));
  std::int64_t value = 1;
  if (line.accept("=")) {
    Line rest = line;
    REEF_ASSIGN_OR_RETURN(const std::string_view token, line.token(fmt::format("a value of {}", name)));
    if (!read_value(*field, token, value) || !instruction.set(*field, value).ok()) {
      return rest.expected(fmt::format("for {}: {}", name, value_help(*field)));
    }
    return field;
  }
  if (field->kind != Kind::kFlag) return line.expected(fmt::format("'=' and {}", value_help(*field)));
  if (!instruction.set(*field, value).ok()) return complaint(place, fmt::format("{} cannot be set", name));
  return field;
}

std::string counter_name(bool is_scalar, std::uint32_t counter) {
  const std::span<const std::string_view> names = is_scalar ? std::span<const std::string_view>(kScalarCounterNames)
                                                            : std::span<const std::string_view>(kTileCounterNames);
  return counter < names.size() ? std::string(names[counter]) : fmt::format("counter_{}", counter);
}

Result<std::uint32_t> read_counter(Line& line, bool is_scalar, std::uint32_t highest) {
  const std::string_view word = line.next_word();
  for (std::uint32_t counter = 0; counter <= highest; ++counter) {
    if (!word.empty() && word == counter_name(is_scalar, counter)) {
      REEF_RETURN_IF_ERROR(line.expect_word(word));
      return counter;
    }
  }
  return line.expected(fmt::format("a counter of {}, such as {}", is_scalar ? "the scalar core" : "the tile",
                                   is_scalar ? "AVDATA_POP" : "AVDATA"));
}

}  // namespace reef::isa::text
