// SPDX-License-Identifier: Apache-2.0
// What a mistyped command line is answered with: what is wrong, what was given, what is allowed, what was probably
// meant. The validators here take the place of CLI11's, whose messages show its internals ("Check 3 value in {0->...").
#pragma once

#include <map>
#include <string>
#include <vector>

#include "command.h"
#include "command_help.h"

namespace reef::app {

// The word of `known` that `word` was probably meant to be; empty: none is near. Case, '-' and '_' do not matter.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

// The same for commands, which people also call by the names that they have in other programs.
std::string meant_command(const std::string& word, const std::vector<std::string>& known);

// The value is one of these words; give it to transform(), which makes "CPU" the word "cpu".
Validator one_of(std::vector<std::string> words);

// The value is one of these words and becomes the enumerator that belongs to it.
template <typename Enum>
Validator one_of(const std::map<std::string, Enum>& meanings) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : meanings) words.push_back(word);
  const Validator is_known = one_of(std::move(words));
  return {[meanings, is_known](std::string& text) {
            std::string problem = is_known(text);
            if (problem.empty()) text = std::to_string(static_cast<int>(meanings.at(text)));
            return problem;
          },
          is_known.description};
}

// The value is a number in this range, ends included.
Validator between(double least, double most);
Validator not_negative();
Validator positive();
// The value is a number of bytes, possibly with K, M or G (1,024 each time) behind it, and becomes that number.
Validator size_in_bytes();

// --help of the command at `path` ("reef learn imprint") beneath `program`, for the width of the terminal.
std::string help_of(const CommandHelp& program, const std::string& path);

// One sentence about a command line of `program` that could not be parsed.
std::string usage_error(const CommandHelp& program, const ParseOutcome& outcome);

}  // namespace reef::app
