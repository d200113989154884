// SPDX-License-Identifier: Apache-2.0
// Rules for operators and their attributes.
#include "ir/text_rules.h"

namespace reef::ir::text {
namespace {

// Attributes are looked up by walking the list; real option tables have fewer than 30.
constexpr std::size_t kMostAttributes = 4096;

bool is_integer(std::string_view number) {
  return number.find_first_not_of("0123456789", number.starts_with('-') ? 1 : 0) == std::string_view::npos;
}

// 1.5 is a double; 1.5f is the float, widened.
Result<double> parse_floating(Cursor& cursor) {
  constexpr std::string_view kWhat = "a number";
  const Token token = cursor.peek();
  if (token.kind != TokenKind::kNumber || !token.text.ends_with('f') || token.text == "-inf") {
    return cursor.number<double>(kWhat);
  }
  const std::optional<float> value = read_float(token.text.substr(0, token.text.size() - 1));
  if (!value) return cursor.expected(kWhat);
  cursor.take();
  return static_cast<double>(*value);
}

// Parses an element of a list: an integer, a floating-point number or a string.
Result<AttributeValue> parse_element(Cursor& cursor) {
  const Token& token = cursor.peek();
  if (token.kind == TokenKind::kString) {
    REEF_ASSIGN_OR_RETURN(std::string value, cursor.string("a string"));
    return AttributeValue(std::move(value));
  }
  if (token.kind == TokenKind::kNumber && is_integer(token.text)) {
    REEF_ASSIGN_OR_RETURN(const std::int64_t value, cursor.number<std::int64_t>("an integer"));
    return AttributeValue(value);
  }
  REEF_ASSIGN_OR_RETURN(const double value, parse_floating(cursor));
  return AttributeValue(value);
}

// A list whose elements are all of the kind that `values` holds.
template <typename Element>
Result<AttributeValue> parse_list_of(Cursor& cursor, std::vector<Element> values, std::string_view what) {
  while (cursor.accept(',')) {
    const Token token = cursor.peek();
    REEF_ASSIGN_OR_RETURN(AttributeValue value, parse_element(cursor));
    if (!std::holds_alternative<Element>(value)) return Cursor::expected_at(token, fmt::format("{}, as before", what));
    values.push_back(std::get<Element>(std::move(value)));
  }
  if (!cursor.at_mark(']')) return cursor.expected("',' or ']'");
  cursor.take();
  return AttributeValue(std::move(values));
}

Result<AttributeValue> parse_list(Cursor& cursor) {
  REEF_RETURN_IF_ERROR(cursor.expect('['));
  if (cursor.at_mark(']')) return cursor.expected("an element; an empty list is ints[], floats[] or strings[]");
  REEF_ASSIGN_OR_RETURN(AttributeValue first, parse_element(cursor));
  if (const auto* value = std::get_if<std::int64_t>(&first)) {
    return parse_list_of<std::int64_t>(cursor, {*value}, "an integer");
  }
  if (const auto* value = std::get_if<double>(&first)) {
    return parse_list_of<double>(cursor, {*value}, "a number with a decimal point or an f at its end");
  }
  return parse_list_of<std::string>(cursor, {std::get<std::string>(std::move(first))}, "a string");
}

Result<AttributeValue> parse_attribute_value(Cursor& cursor) {
  if (cursor.at_mark('[')) return parse_list(cursor);
  if (cursor.peek().kind != TokenKind::kWord || cursor.at_word("inf") || cursor.at_word("nan")) {
    return parse_element(cursor);
  }
  const std::string word(cursor.take().text);
  if (word == "true" || word == "false") return AttributeValue(word == "true");
  if (word == "enum") {
    REEF_ASSIGN_OR_RETURN(std::string name, cursor.string("an enumerator in quotes"));
    return AttributeValue(EnumName{std::move(name)});
  }
  if (!is_value_word(word)) return AttributeValue(EnumName{word});
  REEF_RETURN_IF_ERROR(cursor.expect('['));
  REEF_RETURN_IF_ERROR(cursor.expect(']'));
  if (word == "ints") return AttributeValue(std::vector<std::int64_t>{});
  if (word == "floats") return AttributeValue(std::vector<double>{});
  return AttributeValue(std::vector<std::string>{});
}

// {name=value, ...}
Status parse_attributes(Cursor& cursor, Attributes& attributes) {
  std::size_t count = 0;
  return cursor.list('{', '}', [&]() -> Status {
    const Token token = cursor.peek();
    REEF_ASSIGN_OR_RETURN(const std::string name, cursor.word_or_string("an attribute's name"));
    if (attributes.find(name)) return Cursor::expected_at(token, "an attribute that was not given yet");
    if (++count > kMostAttributes) {
      return Cursor::expected_at(token, fmt::format("no more than {} attributes", kMostAttributes));
    }
    REEF_RETURN_IF_ERROR(cursor.expect('='));
    REEF_ASSIGN_OR_RETURN(AttributeValue value, parse_attribute_value(cursor));
    attributes.set(name, std::move(value));
    return ok_status();
  });
}

// =opaque(...)
Status parse_opaque_options(Cursor& cursor, std::optional<OpaqueTable>& options) {
  REEF_RETURN_IF_ERROR(cursor.expect('='));
  REEF_RETURN_IF_ERROR(cursor.expect_word("opaque"));
  return parse_opaque(cursor, options.emplace());
}

Status parse_mutating(Cursor& cursor, std::vector<bool>& mutating) {
  REEF_RETURN_IF_ERROR(cursor.expect('='));
  mutating.clear();
  return cursor.list('[', ']', [&]() -> Status {
    const Token token = cursor.peek();
    REEF_ASSIGN_OR_RETURN(const int value, cursor.number<int>("0 or 1"));
    if (value != 0 && value != 1) return Cursor::expected_at(token, "0 or 1");
    mutating.push_back(value == 1);
    return ok_status();
  });
}

// One of the things that follow an op's inputs, but for its options, which have a name of their own.
Status parse_operator_field(Cursor& cursor, std::string_view word, const Token& token, Operator& op) {
  if (word == "code") return cursor.assign(op.builtin_code, "the code of a builtin op");
  if (word == "version") return cursor.assign(op.version, "a version");
  if (word == "options") return parse_opaque_options(cursor, op.opaque_options);
  if (word == "options_2") return parse_opaque_options(cursor, op.opaque_options_2);
  if (word == "custom_options") return cursor.assign_hex(op.custom_options, "custom options");
  if (word == "custom_options_format") return cursor.assign(op.custom_options_format, "a format");
  if (word == "mutating") return parse_mutating(cursor, op.mutating_variable_inputs);
  if (word == "debug") return cursor.assign(op.debug_metadata_index, "an index");
  if (word == "large_custom_options") {
    op.custom_options_are_large = true;
    return ok_status();
  }
  if (word == "intermediates") {
    REEF_ASSIGN_OR_RETURN(op.intermediates, cursor.tensors());
    return ok_status();
  }
  return Cursor::expected_at(token,
                             "options in braces, code, version, options, options_2, custom_options, "
                             "custom_options_format, large_custom_options, intermediates, mutating or debug");
}

}  // namespace

Status parse_operator(Cursor& cursor, Operator& op) {
  REEF_ASSIGN_OR_RETURN(op.type, cursor.word_or_string("the type of an op, such as CONV_2D"));
  REEF_ASSIGN_OR_RETURN(op.inputs, cursor.tensors());
  bool has_options = false;
  while (cursor.peek().kind == TokenKind::kWord || cursor.peek().kind == TokenKind::kString) {
    const Token token = cursor.peek();
    REEF_ASSIGN_OR_RETURN(std::string word, cursor.word_or_string("a field of the op"));
    if (cursor.at_mark('{')) {
      if (has_options) return Cursor::expected_at(token, "the next op; an op has its options once");
      has_options = true;
      op.options_type = std::move(word);
      REEF_RETURN_IF_ERROR(parse_attributes(cursor, op.attributes));
    } else if (token.kind == TokenKind::kString) {
      return cursor.expected("'{' behind the name of options");
    } else {
      REEF_RETURN_IF_ERROR(parse_operator_field(cursor, word, token, op));
    }
  }
  return ok_status();
}

}  // namespace reef::ir::text
