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

}  // namespace reef::ir::text
