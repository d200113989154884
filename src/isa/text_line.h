// SPDX-License-Identifier: Apache-2.0
// One line of assembly, read piece by piece. Every piece is taken or refused with line, column, what was expected and
// what is there instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace reef::isa::text {

// A place in the text, for complaints that come later than the reading.
struct Place {
  int line = 0;
  int column = 0;
};
Status complaint(Place place, std::string_view what);

class Line {
 public:
  Line(std::string_view text, int number) : text_(text), number_(number) { skip_blanks(); }

  bool at_end() const { return at_ == text_.size() || text_[at_] == ';'; }
  Place place() const { return {number_, static_cast<int>(at_) + 1}; }
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  // Takes `mark` (punctuation) if it is next.
  bool accept(std::string_view mark);
  // Takes `word` if it is the whole next word.
  bool accept_word(std::string_view word);
  bool at_word(std::string_view word) const { return next_word() == word; }
  // Letters, digits, '_' and '.', not starting with a digit; empty where none is next.
  std::string_view next_word() const;

  Status expect(std::string_view mark);
  Status expect_word(std::string_view word);
  Status expect_end();
  Result<std::string_view> word(std::string_view what);
  // Everything up to the next blank or ';'.
  Result<std::string_view> token(std::string_view what);
  // "text" with the escapes \" \\ \n \t \xNN.
  Result<std::string> quoted(std::string_view what);
  // Decimal or 0x hexadecimal, with an optional sign, from `low` to `high`.
  Result<std::int64_t> number(std::string_view what, std::int64_t low, std::int64_t high);

  // "line 3, column 7: expected X, found Y"
  Status expected(std::string_view what) const;

 private:
  void skip_blanks();
  void take(std::size_t count);

  std::string_view text_;
  std::size_t at_ = 0;
  int number_;
};

// A whole token as an integer: decimal or 0x hexadecimal, with an optional sign. False where it is not one or does not
// fit 64 bits.
bool read_integer(std::string_view token, std::int64_t& value);

}  // namespace reef::isa::text
