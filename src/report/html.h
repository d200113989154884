// SPDX-License-Identifier: Apache-2.0
// Helpers for the HTML pages that Reef writes.
#pragma once

#include <string>

namespace reef::report {

// Text as it stands in HTML, also inside of quotes.
std::string escaped(const std::string& text);

}  // namespace reef::report
