// SPDX-License-Identifier: Apache-2.0
// The command line as commands declare it: commands, options, and what a value must be.
//
// CLI11 parses it. Its header costs every file that includes it about three seconds to compile, so that command.cpp is
// the only one that does; `Command` and `Option` are handles of its objects, as cheap to copy as a pointer, and live as
// long as the `CommandLine` that owns them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace reef::app {

// A rule for values of an option. `check` returns what is wrong with a text, or nothing; it may replace the text by the
// form that the option takes ("CPU" by "cpu"). `description` is shown in help; words in braces ("{a,b}") are offered by
// shells.
struct Validator {
  std::function<std::string(std::string&)> check;
  std::string description;
  std::string operator()(std::string& text) const { return check(text); }
};

// Where an option's results go when the option is not given.
enum class WritesByDefault : std::uint8_t { kNowhere, kHere };

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  Option check(const Validator& validator);      // the text must pass
  Option transform(const Validator& validator);  // the text must pass and may be changed
  Option capture_default_str();                  // help shows the variable's value as the default
  Option allow_extra_args(bool allowed);         // false: one value each time the option is given
  Option expected(int values);
  Option delimiter(char between_values);
  Option option_text(const std::string& text);  // "MODE [int8]": the value's name in help, and the default
  Option excludes(const Option& other);
  Option needs(const Option& other);
  // The value names a file or folder that the command writes: only there the sandbox lets it (sandbox.h).
  Option writes(WritesByDefault otherwise = WritesByDefault::kNowhere);
  // With this option the command starts other programs, which a sandbox would refuse.
  Option starts_programs();

 private:
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_subcommand(const std::string& name, const std::string& description);
  // The variable must live until the command line has been parsed. Types are those that command.cpp lists.
  template <typename T>
  requires(!std::is_enum_v<T>) Option add_option(const std::string& name, T& variable, const std::string& description);
  // For enumerators, which a validator (one_of) makes of words.
  template <typename T>
  requires std::is_enum_v<T> Option add_option(const std::string& name, T& variable, const std::string& description) {
    return add_number_option(
        name, [&variable](int value) { variable = static_cast<T>(value); }, description);
  }
  Option add_flag(const std::string& name, bool& variable, const std::string& description);
  Option add_flag_callback(const std::string& name, const std::function<void()>& callback,
                           const std::string& description);
  void footer(const std::string& text);
  // Called when the command line has been parsed and names this command. It may refuse it by refuse_usage.
  void callback(const std::function<void()>& callback);
  void require_subcommand();
  // The command exists to start other programs, which a sandbox would refuse.
  void starts_programs();
  // Commands that were added since the last call stand under this heading in help.
  void group_commands(const std::string& heading);
  // Options that are added from now on stand under this heading in help. Returns the heading before.
  std::string set_heading(const std::string& heading);
  // Help in CLI11's own form, for a program of another name.
  std::string plain_help(const std::string& program) const;

  const CLI::App& parser() const { return *app_; }

 private:
  Option add_number_option(const std::string& name, const std::function<void(int)>& set,
                           const std::string& description);

  CLI::App* app_;
};

struct ParseOutcome {
  enum class Kind { kParsed, kHelp, kVersion, kProblem };
  Kind kind = Kind::kParsed;
  std::string path;  // of the innermost command that was understood: "reef learn imprint"
  // kProblem: why the words could not be parsed, in CLI11's terms.
  std::string error;                   // "RequiredError", "ArgumentMismatch", ...
  std::string what;                    // its message
  std::vector<std::string> remaining;  // words that nothing took
};

// A program's whole command line.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command root() const { return Command(app_.get()); }
  void add_version_flag(const std::string& name);
  void remove_help_flag();
  // `words`: without the program's name.
  ParseOutcome parse(const std::vector<std::string>& words);

  // Files and folders that the parsed command may write, and whether it starts programs.
  std::vector<std::string> outputs() const;
  bool starts_programs() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

// For callbacks of commands: the words cannot go together, or something is missing.
[[noreturn]] void refuse_usage(const std::string& sentence);
[[noreturn]] void refuse_missing(const std::string& what);

// While it lives, options that are added to the command stand under this heading.
class OptionGroup {
 public:
  OptionGroup(Command& command, const std::string& heading)
      : command_(command), before_(command.set_heading(heading)) {}
  ~OptionGroup() { command_.set_heading(before_); }
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;

 private:
  Command command_;
  std::string before_;
};

}  // namespace reef::app
