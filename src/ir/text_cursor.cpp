// SPDX-License-Identifier: Apache-2.0
#include "ir/text_cursor.h"

namespace reef::ir::text {
namespace {

std::string describe(const Token& token) {
  constexpr std::size_t kLongest = 40;
  std::string shown;
  append_quoted(shown, token.text.substr(0, kLongest));
  if (token.text.size() > kLongest) shown.insert(shown.size() - 1, "...");
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kEllipsis:
      return "'...'";
    case TokenKind::kUnfinished:
      return "a string without closing quote";
    case TokenKind::kString:
      return "the string " + shown;
    case TokenKind::kHex:
      return "hex" + shown;
    case TokenKind::kUnknown:
      return "the character " + shown;
    default:
      return fmt::format("'{}'", std::string_view(shown).substr(1, shown.size() - 2));
  }
}

}  // namespace

bool Cursor::accept(char mark) {
  const bool is_there = at_mark(mark);
  if (is_there) take();
  return is_there;
}

bool Cursor::accept_word(std::string_view word) {
  const bool is_there = at_word(word);
  if (is_there) take();
  return is_there;
}

Status Cursor::expected_at(const Token& token, std::string_view what) {
  const std::string_view advice =
      token.kind == TokenKind::kEllipsis
          ? "; this text was printed with its constants cut short: print it with all of them"
          : "";
  return invalid_input("line {}, column {}: expected {}, found {}{}", token.line, token.column, what, describe(token),
                       advice);
}

Status Cursor::expect(char mark) { return accept(mark) ? ok_status() : expected(fmt::format("'{}'", mark)); }
Status Cursor::expect_word(std::string_view word) {
  return accept_word(word) ? ok_status() : expected(fmt::format("'{}'", word));
}

Result<std::string> Cursor::word(std::string_view what) {
  if (token_.kind != TokenKind::kWord) return expected(what);
  return std::string(take().text);
}

Result<std::string> Cursor::string(std::string_view what) {
  if (token_.kind != TokenKind::kString) return expected(what);
  std::optional<std::string> value = unescape(token_.text);
  if (!value) {
    return expected(fmt::format("{}: a string whose escapes are among \\\" \\\\ \\n \\t \\x00..\\xff", what));
  }
  take();
  return *std::move(value);
}

Result<std::string> Cursor::word_or_string(std::string_view what) {
  return token_.kind == TokenKind::kWord ? word(what) : string(what);
}

Result<Bytes> Cursor::hex(std::string_view what) {
  if (token_.kind != TokenKind::kHex) return expected(fmt::format("{} as hex\"...\"", what));
  std::optional<std::vector<std::uint8_t>> value = decode_hex(token_.text);
  if (!value) return expected(fmt::format("{} with two hexadecimal digits a byte", what));
  take();
  return Bytes(*std::move(value));
}

Result<std::int32_t> Cursor::tensor() {
  if (!accept('%')) return expected("a tensor, such as %3");
  if (accept_word("none")) return -1;
  return number<std::int32_t>("a tensor's number");
}

Result<std::vector<std::int32_t>> Cursor::tensors() {
  std::vector<std::int32_t> indices;
  REEF_RETURN_IF_ERROR(list('(', ')', [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const std::int32_t index, tensor());
    indices.push_back(index);
    return ok_status();
  }));
  return indices;
}

Status Cursor::assign_tensor(std::int32_t& value) {
  REEF_RETURN_IF_ERROR(expect('='));
  REEF_ASSIGN_OR_RETURN(value, tensor());
  return ok_status();
}

Status Cursor::assign_string(std::string& value, std::string_view what) {
  REEF_RETURN_IF_ERROR(expect('='));
  REEF_ASSIGN_OR_RETURN(value, string(what));
  return ok_status();
}

Status Cursor::assign_hex(Bytes& value, std::string_view what) {
  REEF_RETURN_IF_ERROR(expect('='));
  REEF_ASSIGN_OR_RETURN(value, hex(what));
  return ok_status();
}

}  // namespace reef::ir::text
