// SPDX-License-Identifier: Apache-2.0
// Foreign text in the HTML pages that Reef writes.
#pragma once

#include <string>
#include <string_view>

namespace reef {

// Text as it stands in HTML, also inside of quotes. Names from files can be any bytes: control characters and bytes
// that are no UTF-8 are shown as `printable` shows them.
std::string html_escaped(std::string_view text);

}  // namespace reef
