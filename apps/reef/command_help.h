// SPDX-License-Identifier: Apache-2.0
// The commands and their options as data, read from the parser that takes them: the one source of --help, of the man
// pages and of what shells complete.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace reef::app {

// The heading of options that have none of their own.
inline constexpr const char* kMainGroup = "Options";
inline constexpr const char* kMainCommandGroup = "Commands";

struct OptionHelp {
  std::string key;                 // how messages of the parser name it: "model", "--output"
  std::vector<std::string> names;  // "-o", "--output"; empty: positional
  std::string value;               // "FILE"; empty: a flag. Of a positional: its name
  std::string description;
  std::string fallback;              // what it is unless given; empty: not said
  std::vector<std::string> choices;  // words that it takes; empty: any
  std::string group;                 // heading
  bool is_required = false;
};

struct CommandHelp {
  std::string path;         // "reef learn imprint"
  std::string description;  // first line: a sentence
  std::string footer;
  std::string group;                // heading among the commands of its parent
  std::vector<OptionHelp> options;  // positional ones first
  std::vector<CommandHelp> commands;
};

// `command` and all commands beneath it (command.cpp).
CommandHelp describe(const Command& command);
// "out-dir" as it stands for a value: "OUT_DIR".
std::string upper_name(std::string text);

// Help text wrapped to `columns` (at least 40), with options under their headings.
std::string help_text(const CommandHelp& command, int columns);
// Width of the terminal, or 80 without one. The environment variable COLUMNS overrides both.
int terminal_columns();

// troff, section 1: "reef-compile(1)".
std::string man_page(const CommandHelp& command, const std::string& version);
std::string man_page_name(const CommandHelp& command);  // "reef-compile"

// A script for bash, zsh or fish.
std::string completion_script(const CommandHelp& program, const std::string& shell);

}  // namespace reef::app
