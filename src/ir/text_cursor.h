// SPDX-License-Identifier: Apache-2.0
// Reads a text token by token: the pieces that every rule of the grammar is made of. Each either takes what it names
// or fails with line, column, what was expected and what is there instead.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/text_tokens.h"

namespace reef::ir::text {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : lexer_(text), token_(lexer_.next()) {}

  const Token& peek() const { return token_; }
  Token take() { return std::exchange(token_, lexer_.next()); }
  bool at_mark(char mark) const { return token_.kind == TokenKind::kMark && token_.text[0] == mark; }
  bool at_word(std::string_view word) const { return token_.kind == TokenKind::kWord && token_.text == word; }
  bool accept(char mark);
  bool accept_word(std::string_view word);
  // "line 3, column 7: expected X, found Y", about the token at hand.
  Status expected(std::string_view what) const { return expected_at(token_, what); }
  static Status expected_at(const Token& token, std::string_view what);
  Status expect(char mark);
  Status expect_word(std::string_view word);

  Result<std::string> word(std::string_view what);
  Result<std::string> string(std::string_view what);
  Result<std::string> word_or_string(std::string_view what);
  Result<Bytes> hex(std::string_view what);
  // Any integer or floating-point type.
  template <typename Number>
  Result<Number> number(std::string_view what);
  // %12 or %none
  Result<std::int32_t> tensor();
  // (body, body, ...) with the marks given; none at all is fine.
  template <typename Body>
  Status list(char open, char close, Body&& body);
  template <typename Number>
  Result<std::vector<Number>> numbers(std::string_view what);
  // [1, 2] or a single value.
  template <typename Number>
  Result<std::vector<Number>> numbers_or_one(std::string_view what);
  Result<std::vector<std::int32_t>> tensors();  // (%1, %2)

  // = number, = %tensor, = "string": the second half of a field whose name was taken.
  template <typename Number>
  Status assign(Number& value, std::string_view what);
  Status assign_tensor(std::int32_t& value);
  Status assign_string(std::string& value, std::string_view what);
  Status assign_hex(Bytes& value, std::string_view what);
  template <typename Number>
  Status assign_list(std::vector<Number>& values, std::string_view what);

 private:
  template <typename Float>
  Result<Float> floating(std::string_view what);

  Lexer lexer_;
  Token token_;
};

// ---- Templates ----

template <typename Number>
Result<Number> Cursor::number(std::string_view what) {
  if constexpr (std::is_floating_point_v<Number>) {
    return floating<Number>(what);
  } else {
    if (token_.kind != TokenKind::kNumber) return expected(what);
    Number value = 0;
    const char* const end = token_.text.data() + token_.text.size();
    const auto [stop, error] = std::from_chars(token_.text.data(), end, value);
    if (error != std::errc() || stop != end) {
      return expected(fmt::format("{}: an integer from {} to {}", what, std::numeric_limits<Number>::min(),
                                  std::numeric_limits<Number>::max()));
    }
    take();
    return value;
  }
}

// nan, nan(0x...) with all bits, inf, and what read_float takes.
template <typename Float>
Result<Float> Cursor::floating(std::string_view what) {
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
  if (accept_word("inf")) return std::numeric_limits<Float>::infinity();
  if (accept_word("nan")) {
    if (!accept('(')) return std::numeric_limits<Float>::quiet_NaN();
    Bits bits = 0;
    const std::string_view digits = token_.text.substr(std::min<std::size_t>(2, token_.text.size()));
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    const Float value = std::bit_cast<Float>(bits);
    if (token_.kind != TokenKind::kNumber || !token_.text.starts_with("0x") || error != std::errc() ||
        stop != digits.data() + digits.size() || value == value) {
      return expected("the bits of a NaN, such as 0x7fc00001");
    }
    take();
    REEF_RETURN_IF_ERROR(expect(')'));
    return value;
  }
  std::optional<Float> value;
  if (token_.kind == TokenKind::kNumber) {
    if constexpr (sizeof(Float) == 4) {
      value = read_float(token_.text);
    } else {
      value = read_double(token_.text);
    }
  }
  if (!value) return expected(what);
  take();
  return *value;
}

template <typename Body>
Status Cursor::list(char open, char close, Body&& body) {
  REEF_RETURN_IF_ERROR(expect(open));
  if (accept(close)) return ok_status();
  do {
    REEF_RETURN_IF_ERROR(body());
  } while (accept(','));
  if (!at_mark(close)) return expected(fmt::format("',' or '{}'", close));
  take();
  return ok_status();
}

template <typename Number>
Result<std::vector<Number>> Cursor::numbers(std::string_view what) {
  std::vector<Number> values;
  REEF_RETURN_IF_ERROR(list('[', ']', [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const Number value, number<Number>(what));
    values.push_back(value);
    return ok_status();
  }));
  return values;
}

template <typename Number>
Result<std::vector<Number>> Cursor::numbers_or_one(std::string_view what) {
  if (at_mark('[')) return numbers<Number>(what);
  REEF_ASSIGN_OR_RETURN(const Number value, number<Number>(what));
  return std::vector<Number>{value};
}

template <typename Number>
Status Cursor::assign(Number& value, std::string_view what) {
  REEF_RETURN_IF_ERROR(expect('='));
  REEF_ASSIGN_OR_RETURN(value, number<Number>(what));
  return ok_status();
}

template <typename Number>
Status Cursor::assign_list(std::vector<Number>& values, std::string_view what) {
  REEF_RETURN_IF_ERROR(expect('='));
  REEF_ASSIGN_OR_RETURN(values, numbers_or_one<Number>(what));
  return ok_status();
}

}  // namespace reef::ir::text
