// SPDX-License-Identifier: Apache-2.0
// Scripts with which bash, zsh and fish complete commands, options and the words that an option takes. Everything else
// is completed as a file.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command_help.h"

namespace reef::app {
namespace {

// All commands, outermost first, each with its words behind the program's name.
void flatten(const CommandHelp& command, std::vector<const CommandHelp*>& all) {
  all.push_back(&command);
  for (const CommandHelp& sub : command.commands) flatten(sub, all);
}

std::vector<const CommandHelp*> flattened(const CommandHelp& program) {
  std::vector<const CommandHelp*> all;
  flatten(program, all);
  return all;
}

std::string words_of(const CommandHelp& command) {
  const std::size_t space = command.path.find(' ');
  return space == std::string::npos ? "" : command.path.substr(space + 1);
}

std::string first_sentence(const std::string& text) { return text.substr(0, text.find('\n')); }

// For single quotes of a POSIX shell.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string names_of_commands(const CommandHelp& command) {
  std::vector<std::string> names;
  for (const CommandHelp& sub : command.commands) names.push_back(sub.path.substr(command.path.size() + 1));
  return fmt::format("{}", fmt::join(names, " "));
}

// The words that a command's arguments can be, if they are no files: commands of `program`, or the choices of an
// option.
std::string words_of_arguments(const CommandHelp& program, const CommandHelp& command) {
  if (!command.commands.empty()) return names_of_commands(command);
  for (const OptionHelp& option : command.options) {
    if (!option.names.empty()) continue;
    if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, " "));
    if (option.key == "command") return names_of_commands(program);
  }
  return "";
}

// The part that bash and zsh share. Before it, `word` goes through the words on the line in a loop; behind it,
// `command` is the command that they name, `options` and `arguments` are what can follow, and `values` what the option
// `previous` takes.
std::string tables(const CommandHelp& program) {
  std::vector<std::string> patterns;
  for (const CommandHelp* command : flattened(program)) {
    const std::string words = words_of(*command);
    if (words.empty()) continue;
    patterns.push_back(in_quotes((words.find(' ') == std::string::npos ? " " : "") + words));
  }
  std::string text = "    case \"$word\" in -*) ;; *)\n      case \"$command $word\" in\n        ";
  text += fmt::format("{}) command=\"${{command:+$command }}$word\" ;;\n", fmt::join(patterns, "|"));
  text += "      esac ;;\n    esac\n  done\n  local options=\"\" arguments=\"\" values=\"\"\n  case \"$command\" in\n";
  for (const CommandHelp* command : flattened(program)) {
    std::vector<std::string> options;
    std::string values;
    for (const OptionHelp& option : command->options) {
      for (const std::string& name : option.names) options.push_back(name);
      if (option.choices.empty() || option.names.empty()) continue;
      values += fmt::format(" {}) values={} ;;", fmt::join(option.names, "|"),
                            in_quotes(fmt::format("{}", fmt::join(option.choices, " "))));
    }
    text += fmt::format("    {})\n      options={}\n      arguments={}\n", in_quotes(words_of(*command)),
                        in_quotes(fmt::format("{}", fmt::join(options, " "))),
                        in_quotes(words_of_arguments(program, *command)));
    if (!values.empty()) text += fmt::format("      case \"$previous\" in{} esac\n", values);
    text += "      ;;\n";
  }
  return text + "  esac\n";
}

std::string bash_script(const CommandHelp& program) {
  return "# bash completion for reef; `reef completion bash` made it.\n"
         "_reef() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"\" word\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
         tables(program) +
         "  if [[ -n \"$values\" ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
         "  elif [[ \"$current\" == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
         "  elif [[ -n \"$arguments\" ]]; then COMPREPLY=($(compgen -W \"$arguments\" -- \"$current\"))\n"
         "  else COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _reef reef\n";
}

std::string zsh_script(const CommandHelp& program) {
  return "#compdef reef\n# zsh completion for reef; `reef completion zsh` made it.\n"
         "_reef() {\n"
         "  local current=\"${words[CURRENT]}\" previous=\"${words[CURRENT-1]}\" command=\"\" word\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n" +
         tables(program) +
         "  if [[ -n \"$values\" ]]; then compadd -- ${=values}\n"
         "  elif [[ \"$current\" == -* ]]; then compadd -- ${=options}\n"
         "  elif [[ -n \"$arguments\" ]]; then compadd -- ${=arguments}\n"
         "  else _files\n"
         "  fi\n"
         "}\n"
         // Loaded by compinit the file is the function itself; read by `source`, it registers it.
         "if [ \"$funcstack[1]\" = _reef ]; then _reef \"$@\"; else compdef _reef reef; fi\n";
}

std::string fish_script(const CommandHelp& program) {
  std::string text = "# fish completion for reef; `reef completion fish` made it.\ncomplete -c reef -f\n";
  for (const CommandHelp* command : flattened(program)) {
    const std::string words = words_of(*command);
    std::string condition = words.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + words;
    if (const std::size_t space = words.find(' '); space != std::string::npos) {
      condition = fmt::format("__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}",
                              words.substr(0, space), words.substr(space + 1));
    }
    for (const CommandHelp& sub : command->commands) {
      text += fmt::format("complete -c reef -n {} -a {} -d {}\n", in_quotes(condition),
                          sub.path.substr(command->path.size() + 1), in_quotes(first_sentence(sub.description)));
    }
    if (!words.empty() && command->commands.empty()) {
      const std::string arguments = words_of_arguments(program, *command);
      text += fmt::format("complete -c reef -n {} {}\n", in_quotes(condition),
                          arguments.empty() ? "-F" : "-a " + in_quotes(arguments));
    }
    for (const OptionHelp& option : command->options) {
      if (option.names.empty()) continue;
      text += fmt::format("complete -c reef -n {}", in_quotes(condition));
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.choices.empty()) {
        text += fmt::format(" -x -a {}", in_quotes(fmt::format("{}", fmt::join(option.choices, " "))));
      } else if (!option.value.empty()) {
        text += " -r -F";
      }
      text += fmt::format(" -d {}\n", in_quotes(first_sentence(option.description)));
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const CommandHelp& program, const std::string& shell) {
  if (shell == "fish") return fish_script(program);
  return shell == "zsh" ? zsh_script(program) : bash_script(program);
}

}  // namespace reef::app
