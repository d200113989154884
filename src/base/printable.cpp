// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace reef {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool is_valid = false;  // else it is one byte that belongs to no character
};

// The character that `text`, which is not empty, begins with. Overlong forms, surrogates and codes above U+10FFFF are
// no characters.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {first, 1, false};
  std::uint32_t code = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {first, 1, false};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[bytes] || is_surrogate || code > 0x10FFFF) return {first, 1, false};
  return {code, bytes, true};
}

bool is_control(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return true;        // C0, DEL, C1
  if (code == 0x061C || code == 0x200E || code == 0x200F) return true;  // marks of direction
  return (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

void append_escaped(std::string& out, std::uint32_t code) {
  switch (code) {
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      out += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

std::string made_printable(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool stays = keeps_lines && (character.code == '\n' || character.code == '\t');
    if (character.is_valid && (stays || !is_control(character.code))) {
      out += text.substr(0, character.bytes);
    } else {
      append_escaped(out, character.code);
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view name) { return made_printable(name, false); }
std::string printable_text(std::string_view text) { return made_printable(text, true); }

}  // namespace reef
