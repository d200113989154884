// SPDX-License-Identifier: Apache-2.0
#include "isa/text_line.h"

#include <charconv>
#include <limits>

namespace reef::isa::text {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Status complaint(Place place, std::string_view what) {
  return invalid_input("line {}, column {}: {}", place.line, place.column, what);
}

bool read_integer(std::string_view token, std::int64_t& value) {
  const bool negative = !token.empty() && token[0] == '-';
  if (negative || (!token.empty() && token[0] == '+')) token.remove_prefix(1);
  int base = 10;
  if (token.starts_with("0x") || token.starts_with("0X")) {
    token.remove_prefix(2);
    base = 16;
  }
  std::uint64_t magnitude = 0;
  const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), magnitude, base);
  if (token.empty() || error != std::errc() || stop != token.data() + token.size()) return false;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (magnitude > kMax + (negative ? 1 : 0)) return false;
  value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  return true;
}

void Line::skip_blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

void Line::take(std::size_t count) {
  at_ += count;
  skip_blanks();
}

bool Line::accept(std::string_view mark) {
  if (!text_.substr(at_).starts_with(mark)) return false;
  take(mark.size());
  return true;
}

std::string_view Line::next_word() const {
  std::size_t end = at_;
  while (end < text_.size() && is_word(text_[end])) ++end;
  if (end == at_ || is_digit(text_[at_])) return {};
  return text_.substr(at_, end - at_);
}

bool Line::accept_word(std::string_view word) {
  if (next_word() != word) return false;
  take(word.size());
  return true;
}

Status Line::expected(std::string_view what) const {
  std::size_t end = at_;
  while (end < text_.size() && !is_blank(text_[end]) && text_[end] != ';' && end - at_ < 40) ++end;
  std::string found = at_end() ? "the end of the line" : fmt::format("'{}'", text_.substr(at_, end - at_));
  for (char& c : found) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return complaint(place(), fmt::format("expected {}, found {}", what, found));
}

Status Line::expect(std::string_view mark) { return accept(mark) ? ok_status() : expected(fmt::format("'{}'", mark)); }

Status Line::expect_word(std::string_view word) {
  return accept_word(word) ? ok_status() : expected(fmt::format("'{}'", word));
}

Status Line::expect_end() { return at_end() ? ok_status() : expected("the end of the line"); }

Result<std::string_view> Line::word(std::string_view what) {
  const std::string_view word = next_word();
  if (word.empty()) return expected(what);
  take(word.size());
  return word;
}

Result<std::string_view> Line::token(std::string_view what) {
  std::size_t end = at_;
  while (end < text_.size() && !is_blank(text_[end]) && text_[end] != ';') ++end;
  if (end == at_) return expected(what);
  const std::string_view token = text_.substr(at_, end - at_);
  take(token.size());
  return token;
}

Result<std::int64_t> Line::number(std::string_view what, std::int64_t low, std::int64_t high) {
  std::size_t end = at_;
  if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
  while (end < text_.size() && is_word(text_[end])) ++end;
  std::int64_t value = 0;
  if (!read_integer(text_.substr(at_, end - at_), value) || value < low || value > high) {
    return expected(fmt::format("{}, a number from {} to {}", what, low, high));
  }
  take(end - at_);
  return value;
}

Result<std::string> Line::quoted(std::string_view what) {
  if (peek() != '"') return expected(fmt::format("{} in double quotes", what));
  std::string value;
  for (std::size_t at = at_ + 1; at < text_.size(); ++at) {
    const char c = text_[at];
    if (c == '"') {
      take(at + 1 - at_);
      return value;
    }
    if (c != '\\') {
      value += c;
      continue;
    }
    const char escape = at + 1 < text_.size() ? text_[at + 1] : '\0';
    if (escape == '"' || escape == '\\' || escape == 'n' || escape == 't') {
      value += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
      ++at;
    } else if (escape == 'x' && at + 3 < text_.size() && hex_digit(text_[at + 2]) >= 0 &&
               hex_digit(text_[at + 3]) >= 0) {
      value += static_cast<char>(hex_digit(text_[at + 2]) * 16 + hex_digit(text_[at + 3]));
      at += 3;
    } else {
      return complaint({number_, static_cast<int>(at) + 1}, "expected one of the escapes \\\" \\\\ \\n \\t \\xNN");
    }
  }
  return expected(fmt::format("{} in double quotes that end on this line", what));
}

}  // namespace reef::isa::text
