// SPDX-License-Identifier: Apache-2.0
// A text as one word of a shell command, for commands that messages suggest.
#pragma once

#include <string>
#include <string_view>

namespace reef {

// As it is where a POSIX shell takes it as one word, else in single quotes.
std::string shell_word(std::string_view text);

}  // namespace reef
