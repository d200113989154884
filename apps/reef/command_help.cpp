// SPDX-License-Identifier: Apache-2.0
#include "command_help.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reef::app {
namespace {

// `text` in lines of at most `columns`, those after the first indented; breaks in it are kept.
std::string wrapped(const std::string& text, std::size_t first_indent, std::size_t indent, std::size_t columns) {
  std::string result;
  std::size_t at = first_indent;
  bool is_start = true;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\n') {
      result += "\n" + std::string(indent, ' ');
      at = indent;
      is_start = true;
      ++i;
      continue;
    }
    const std::size_t spaces = text.find_first_not_of(' ', i);
    if (spaces == std::string::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \n", spaces), text.size());
    const std::size_t gap = is_start ? spaces - i : 1, length = end - spaces;
    if (!is_start && at + gap + length > columns) {
      result += "\n" + std::string(indent, ' ');
      at = indent;
    } else {
      result += std::string(gap, ' ');
      at += gap;
    }
    result += text.substr(spaces, length);
    at += length;
    is_start = false;
    i = end;
  }
  return result;
}

std::string left_column(const OptionHelp& option) {
  if (option.names.empty()) return option.value;
  // A lone long name stands under the others' long names.
  const bool has_short = option.names.front().size() == 2;
  std::string text = fmt::format("{}{}", has_short ? "" : "    ", fmt::join(option.names, ", "));
  return option.value.empty() ? text : text + " " + option.value;
}

// Whether the description names all the words that the option takes.
bool names_choices(const OptionHelp& option) {
  return std::all_of(option.choices.begin(), option.choices.end(),
                     [&](const std::string& word) { return option.description.find(word) != std::string::npos; });
}

// Help names the words of an option up to this many; shells complete them all.
constexpr std::size_t kMostShownChoices = 16;

std::string right_column(const OptionHelp& option) {
  std::string text = option.description;
  if (option.choices.size() <= kMostShownChoices && !names_choices(option))
    text += fmt::format(" ({})", fmt::join(option.choices, ", "));
  if (!option.fallback.empty()) text += fmt::format(" [{}]", option.fallback);
  return text;
}

void append_row(const std::string& left, const std::string& right, std::size_t columns, std::string& text) {
  constexpr std::size_t kWide = 26, kNarrow = 6, kFewestForTwo = 60;
  const std::size_t indent = columns < kFewestForTwo ? kNarrow : kWide;
  std::string line = "  " + left;
  const bool fits = line.size() + 2 <= indent;
  line += fits ? std::string(indent - line.size(), ' ') : "\n" + std::string(indent, ' ');
  text += line + wrapped(right, indent, indent, columns) + "\n";
}

std::vector<std::string> command_groups_of(const CommandHelp& command) {
  std::vector<std::string> groups;
  for (const CommandHelp& sub : command.commands) {
    if (std::find(groups.begin(), groups.end(), sub.group) == groups.end()) groups.push_back(sub.group);
  }
  return groups;
}

// Length of the shell word of `text` that starts at `at`: spaces inside quotes belong to it.
std::size_t shell_word_length(const std::string& text, std::size_t at) {
  char quote = 0;
  std::size_t end = at;
  for (; end < text.size() && (quote != 0 || text[end] != ' '); ++end) {
    if (quote != 0 ? text[end] == quote : text[end] == '\'' || text[end] == '"') quote = quote != 0 ? 0 : text[end];
  }
  return end - at;
}

// A shell command in lines of at most `columns` where its words allow that, each but the last ending in a backslash: so
// that it can be copied at any width.
std::string wrapped_command(const std::string& command, std::size_t columns) {
  constexpr std::size_t kFirstIndent = 2, kIndent = 6, kBackslash = 2;
  std::string result(kFirstIndent, ' ');
  std::size_t column = kFirstIndent;
  bool is_start = true;
  for (std::size_t at = command.find_first_not_of(' '); at != std::string::npos;) {
    const std::size_t length = shell_word_length(command, at);
    const std::size_t next = command.find_first_not_of(' ', at + length);
    const std::size_t reserved = next == std::string::npos ? 0 : kBackslash;
    if (!is_start && column + 1 + length + reserved > columns) {
      result += " \\\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (!is_start) {
      result += ' ';
      ++column;
    }
    result += command.substr(at, length);
    column += length;
    is_start = false;
    at = next;
  }
  return result;
}

// The line of `text` that starts at `at`, together with those that continue it after a backslash; moves `at` behind it.
std::string take_line(const std::string& text, std::size_t& at) {
  std::string line;
  for (;;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    line += text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line.back() != '\\' || at > text.size()) return line;
    line.pop_back();
  }
}

// A footer has paragraphs of prose, whose line breaks do not matter, and under a heading that ends in a colon indented
// lines: commands under "Example:" or "Examples:", rows of a table under any other.
std::string wrapped_footer(const std::string& footer, std::size_t columns) {
  constexpr std::size_t kRowIndent = 4;
  std::string text, paragraph;
  bool are_commands = false;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) text += wrapped(paragraph, 0, 0, columns) + "\n";
    paragraph.clear();
  };
  for (std::size_t at = 0; at <= footer.size();) {
    const std::string line = take_line(footer, at);
    if (!line.empty() && line.front() == ' ') {
      end_paragraph();
      text += (are_commands ? wrapped_command(line, columns) : wrapped(line, 0, kRowIndent, columns)) + "\n";
      continue;
    }
    const bool is_example_heading = line == "Example:" || line == "Examples:";
    if (is_example_heading) end_paragraph();
    paragraph += (paragraph.empty() ? "" : " ") + line;
    if (line.empty() || line.back() == ':') {
      are_commands = is_example_heading;
      end_paragraph();
    }
  }
  end_paragraph();
  return text;
}

std::vector<std::string> groups_of(const CommandHelp& command) {
  std::vector<std::string> groups = {kMainGroup};
  for (const OptionHelp& option : command.options) {
    if (option.names.empty()) continue;
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  return groups;
}

std::string usage_line(const CommandHelp& command) {
  std::string text = command.path;
  for (const OptionHelp& option : command.options) {
    if (option.names.empty()) {
      text += option.is_required ? " " + option.value : " [" + option.value + "]";
    } else if (option.is_required) {
      text += fmt::format(" {} {}", option.names.back(), option.value);
    }
  }
  return text + (command.commands.empty() ? " [OPTIONS]" : " COMMAND");
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A line that begins with a dot or an apostrophe is troff's own; backslashes and dashes are escaped.
std::string troff(const std::string& text) {
  std::string result;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    is_line_start = c == '\n';
  }
  return result;
}

}  // namespace

std::string upper_name(std::string text) {
  for (char& c : text) c = c == '-' || c == '_' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string help_text(const CommandHelp& command, int columns) {
  const auto width = static_cast<std::size_t>(std::max(columns, 40));
  std::string text = wrapped(command.description, 0, 0, width) + "\n\nUsage: ";
  text += wrapped(usage_line(command), 7, 9, width) + "\n";
  bool has_arguments = false;
  for (const OptionHelp& option : command.options) {
    if (!option.names.empty()) continue;
    if (!has_arguments) text += "\nArguments:\n";
    has_arguments = true;
    append_row(option.value, right_column(option), width, text);
  }
  for (const std::string& group : command_groups_of(command)) {
    text += "\n" + group + ":\n";
    for (const CommandHelp& sub : command.commands) {
      if (sub.group != group) continue;
      append_row(sub.path.substr(command.path.size() + 1), first_line(sub.description), width, text);
    }
  }
  for (const std::string& group : groups_of(command)) {
    bool has_heading = false;
    for (const OptionHelp& option : command.options) {
      if (option.names.empty() || option.group != group) continue;
      if (!has_heading) text += "\n" + group + ":\n";
      has_heading = true;
      append_row(left_column(option), right_column(option), width, text);
    }
  }
  if (!command.footer.empty()) text += "\n" + wrapped_footer(command.footer, width);
  return text;
}

int terminal_columns() {
  constexpr int kUsual = 80, kMost = 110;
  if (const char* const said = std::getenv("COLUMNS"); said != nullptr && std::atoi(said) > 0) {
    return std::min(std::atoi(said), kMost);
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::min<int>(size.ws_col, kMost);
  return kUsual;
}

std::string man_page_name(const CommandHelp& command) {
  std::string name = command.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const CommandHelp& command, const std::string& version) {
  const std::string name = man_page_name(command);
  std::string title = upper_name(name);
  std::replace(title.begin(), title.end(), '_', '-');
  std::string text = fmt::format(".TH {} 1 \"\" \"Reef {}\" \"Reef\"\n", title, version);
  text += fmt::format(".SH NAME\n{} \\- {}\n", troff(name), troff(first_line(command.description)));
  text += fmt::format(".SH SYNOPSIS\n.B {}\n", troff(usage_line(command)));
  text += fmt::format(".SH DESCRIPTION\n{}\n", troff(command.description));
  if (!command.commands.empty()) text += ".SH COMMANDS\n";
  for (const CommandHelp& sub : command.commands) {
    text += fmt::format(".TP\n.B {}\n{} See {}(1).\n", troff(sub.path.substr(command.path.size() + 1)),
                        troff(first_line(sub.description)), troff(man_page_name(sub)));
  }
  const auto rows = [&](bool are_positional, const std::string& group) {
    for (const OptionHelp& option : command.options) {
      if (option.names.empty() != are_positional || (!are_positional && option.group != group)) continue;
      std::string left = left_column(option);
      left.erase(0, left.find_first_not_of(' '));
      text += fmt::format(".TP\n.B {}\n{}\n", troff(left), troff(right_column(option)));
    }
  };
  const bool has_arguments = std::any_of(command.options.begin(), command.options.end(),
                                         [](const OptionHelp& option) { return option.names.empty(); });
  if (has_arguments) text += ".SH ARGUMENTS\n";
  rows(true, "");
  for (const std::string& group : groups_of(command)) {
    text +=
        fmt::format(".SH {}\n", upper_name(group).find('_') == std::string::npos ? upper_name(group) : troff(group));
    rows(false, group);
  }
  if (!command.footer.empty()) text += fmt::format(".SH EXAMPLES AND NOTES\n.nf\n{}\n.fi\n", troff(command.footer));
  text +=
      ".SH EXIT STATUS\n0 done; 1 the input cannot be processed; 2 wrong usage; 3 done, but of no use (nothing runs on "
      "the "
      "Edge TPU, or an output is lost).\n";
  return text;
}

}  // namespace reef::app
