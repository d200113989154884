// SPDX-License-Identifier: Apache-2.0
// The words of the text form (docs/formats/ir_text.md): how names, numbers and bytes are spelled, and the lexer that
// takes a text apart. Printer and parser share this file so that they cannot disagree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/type.h"

namespace reef::ir::text {

enum class TokenKind {
  kEnd,
  kWord,        // letters, digits and _; not starting with a digit
  kNumber,      // 12, -3.5e-7f, 0x7fc00001, -inf: everything that starts with a digit or a minus sign
  kString,      // "..." with escapes; text is what stands between the quotes, undecoded
  kHex,         // hex"..."; text is what stands between the quotes
  kMark,        // one of { } ( ) [ ] , : = %
  kEllipsis,    // ...: something was left out when printing
  kUnfinished,  // a string without closing quote, to the end of its line or of the text
  kUnknown,     // a character that starts nothing
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  std::size_t line = 1, column = 1;  // where it starts; counted from 1, columns in bytes
};

// Comments run from // to the end of the line. White space separates and means nothing else.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();

 private:
  void skip_space();
  Token finish(TokenKind kind, std::size_t begin, std::size_t end, std::size_t next);
  Token quoted(TokenKind kind, std::size_t begin);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t line_start_ = 0;
};

// True if `text` can stand for itself as a word.
bool is_word(std::string_view text);

// Words that already mean something as the value of an attribute; an enumerator of that name is quoted.
bool is_value_word(std::string_view word);

// The quoted form of any bytes, and back from what stands between the quotes.
void append_quoted(std::string& out, std::string_view bytes);
std::optional<std::string> unescape(std::string_view quoted);

// Two digits a byte; white space between bytes is skipped when reading.
void append_hex(std::string& out, std::span<const std::uint8_t> bytes);
std::optional<std::vector<std::uint8_t>> decode_hex(std::string_view digits);

// Spelled so that reading gives the same bits: the shortest decimal that does, inf, -inf, nan, and nan(0x...) with all
// bits for NaNs other than the usual one.
void append_float(std::string& out, float value);
void append_double(std::string& out, double value);

// A number token, except NaN. nullopt: not such a number, or out of range. "-inf" is one; "inf" is a word.
std::optional<float> read_float(std::string_view number);
std::optional<double> read_double(std::string_view number);

// Calls body with a zero of the C++ type in which elements of `type` are spelled, if they are spelled as numbers at
// all. Booleans are bytes here: a file may hold others than 0 and 1.
template <typename Body>
bool with_value_type(DataType type, Body&& body) {
  switch (type) {
    case DataType::kFloat32:
      return body(float{}), true;
    case DataType::kFloat64:
      return body(double{}), true;
    case DataType::kInt8:
      return body(std::int8_t{}), true;
    case DataType::kInt16:
      return body(std::int16_t{}), true;
    case DataType::kInt32:
      return body(std::int32_t{}), true;
    case DataType::kInt64:
      return body(std::int64_t{}), true;
    case DataType::kBool:
    case DataType::kUInt8:
      return body(std::uint8_t{}), true;
    case DataType::kUInt16:
      return body(std::uint16_t{}), true;
    case DataType::kUInt32:
      return body(std::uint32_t{}), true;
    case DataType::kUInt64:
      return body(std::uint64_t{}), true;
    default:
      return false;
  }
}
// Bytes of such an element; 0: not spelled as numbers.
inline std::size_t value_bytes(DataType type) {
  std::size_t result = 0;
  with_value_type(type, [&](auto zero) { result = sizeof zero; });
  return result;
}

}  // namespace reef::ir::text
