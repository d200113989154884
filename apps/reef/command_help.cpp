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

// A footer's paragraphs as one line each, so that they fit any width. Examples, which are indented, keep their lines.
std::string with_long_paragraphs(const std::string& footer) {
  std::string text;
  bool was_prose = false;
  for (std::size_t at = 0; at <= footer.size();) {
    const std::size_t end = std::min(footer.find('\n', at), footer.size());
    const std::string line = footer.substr(at, end - at);
    const bool is_prose = !line.empty() && line.front() != ' ' && line.back() != ':';
    if (at > 0) text += was_prose && is_prose ? ' ' : '\n';
    text += line;
    was_prose = is_prose;
    at = end + 1;
  }
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
  if (!command.footer.empty()) text += "\n" + wrapped(with_long_paragraphs(command.footer), 0, 2, width) + "\n";
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
