// SPDX-License-Identifier: Apache-2.0
// Foreign text made fit for a terminal.
//
// Names of tensors, operators and files come from outside. Sent to a terminal as they are, their control characters
// could move the cursor, change colours, or make a line look like another one. Everything that is printed for people
// passes through here; files and JSON keep the exact bytes.
#pragma once

#include <string>
#include <string_view>

namespace reef {

// Control characters (C0, DEL, C1), line separators, characters that change the direction of writing, and bytes that
// are no UTF-8 become \n, \t, \r, \x1b or \u202e. All other characters stay, so ordinary names are unchanged.
std::string printable(std::string_view name);

// The same for a whole report or message: its own line ends and tabs stay.
std::string printable_text(std::string_view text);

}  // namespace reef
