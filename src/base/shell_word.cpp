// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <algorithm>

namespace reef {
namespace {

bool is_plain(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_letter || std::string_view("_-./:,+=@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";  // ends the quotes, adds one, begins again
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace reef
