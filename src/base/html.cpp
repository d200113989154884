// SPDX-License-Identifier: Apache-2.0
#include "base/html.h"

#include "base/printable.h"

namespace reef {

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace reef
