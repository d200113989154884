// SPDX-License-Identifier: Apache-2.0
#include "ir/text_tokens.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

namespace reef::ir::text {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view kHexDigits = "0123456789abcdef";

template <typename Float>
void append_floating(std::string& out, Float value) {
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
  if (std::isnan(value)) {
    const Bits bits = std::bit_cast<Bits>(value);
    const bool is_usual = bits == std::bit_cast<Bits>(std::numeric_limits<Float>::quiet_NaN());
    out += is_usual ? "nan" : fmt::format("nan({:#x})", bits);
    return;
  }
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end);
}

// from_chars takes "nan", "nan(...)" and "inf" too, which are words here; all but -inf are kept out.
template <typename Float>
std::optional<Float> read_floating(std::string_view number) {
  if (number == "-inf") return -std::numeric_limits<Float>::infinity();
  const std::string_view digits = number.starts_with('-') ? number.substr(1) : number;
  if (digits.empty() || !is_digit(digits[0])) return std::nullopt;
  Float value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return value;
}

}  // namespace

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (is_space(text_[at_])) {
      if (text_[at_] == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      }
      ++at_;
    } else {
      return;
    }
  }
}

// The token's text is [begin, end); reading goes on at `next`.
Token Lexer::finish(TokenKind kind, std::size_t begin, std::size_t end, std::size_t next) {
  const Token token{kind, text_.substr(begin, end - begin), line_, at_ - line_start_ + 1};
  at_ = next;
  return token;
}

// `begin` is behind the opening quote. Only hex may go over several lines.
Token Lexer::quoted(TokenKind kind, std::size_t begin) {
  std::size_t end = begin;
  std::size_t lines = 0, last_start = line_start_;
  for (; end < text_.size() && text_[end] != '"'; ++end) {
    if (text_[end] == '\n') {
      if (kind != TokenKind::kHex) break;
      ++lines;
      last_start = end + 1;
    } else if (text_[end] == '\\' && kind == TokenKind::kString && end + 1 < text_.size() && text_[end + 1] != '\n') {
      ++end;
    }
  }
  const bool is_closed = end < text_.size() && text_[end] == '"';
  const Token token = finish(is_closed ? kind : TokenKind::kUnfinished, begin, end, is_closed ? end + 1 : end);
  line_ += lines;
  line_start_ = last_start;
  return token;
}

Token Lexer::next() {
  skip_space();
  if (at_ == text_.size()) return finish(TokenKind::kEnd, at_, at_, at_);
  const char first = text_[at_];
  std::size_t end = at_ + 1;
  if (is_letter(first)) {
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    const bool opens_hex = text_.substr(at_, end - at_) == "hex" && end < text_.size() && text_[end] == '"';
    return opens_hex ? quoted(TokenKind::kHex, end + 1) : finish(TokenKind::kWord, at_, end, end);
  }
  if (is_digit(first) || first == '-') {
    for (; end < text_.size(); ++end) {
      const bool is_exponent_sign = (text_[end] == '+' || text_[end] == '-') && (text_[end - 1] | 0x20) == 'e';
      if (!is_letter(text_[end]) && !is_digit(text_[end]) && text_[end] != '.' && !is_exponent_sign) break;
    }
    return finish(TokenKind::kNumber, at_, end, end);
  }
  if (first == '"') return quoted(TokenKind::kString, end);
  if (text_.substr(at_, 3) == "...") return finish(TokenKind::kEllipsis, at_, at_ + 3, at_ + 3);
  const bool is_mark = std::string_view("{}()[],:=%").find(first) != std::string_view::npos;
  return finish(is_mark ? TokenKind::kMark : TokenKind::kUnknown, at_, end, end);
}

bool is_word(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c)) return false;
  }
  return true;
}

bool is_value_word(std::string_view word) {
  constexpr std::array<std::string_view, 8> kWords = {"true", "false", "inf",    "nan",
                                                      "enum", "ints",  "floats", "strings"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

void append_quoted(std::string& out, std::string_view bytes) {
  out += '"';
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  out += '"';
}

std::optional<std::string> unescape(std::string_view quoted) {
  std::string result;
  result.reserve(quoted.size());
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      result += quoted[i];
      continue;
    }
    if (++i == quoted.size()) return std::nullopt;
    switch (quoted[i]) {
      case '"':
      case '\\':
        result += quoted[i];
        break;
      case 'n':
        result += '\n';
        break;
      case 't':
        result += '\t';
        break;
      case 'x': {
        if (i + 2 >= quoted.size()) return std::nullopt;
        const int high = hex_value(quoted[i + 1]), low = hex_value(quoted[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        result += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default:
        return std::nullopt;
    }
  }
  return result;
}

void append_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  const std::size_t start = out.size();
  out.resize(start + 2 * bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    out[start + 2 * i] = kHexDigits[bytes[i] >> 4];
    out[start + 2 * i + 1] = kHexDigits[bytes[i] & 15];
  }
}

std::optional<std::vector<std::uint8_t>> decode_hex(std::string_view digits) {
  std::vector<std::uint8_t> result;
  result.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size();) {
    if (is_space(digits[i])) {
      ++i;
      continue;
    }
    if (i + 1 == digits.size()) return std::nullopt;
    const int high = hex_value(digits[i]), low = hex_value(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    result.push_back(static_cast<std::uint8_t>(high * 16 + low));
    i += 2;
  }
  return result;
}

void append_float(std::string& out, float value) { append_floating(out, value); }
void append_double(std::string& out, double value) { append_floating(out, value); }
std::optional<float> read_float(std::string_view number) { return read_floating<float>(number); }
std::optional<double> read_double(std::string_view number) { return read_floating<double>(number); }

}  // namespace reef::ir::text
