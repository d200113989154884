// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command_help.h"

namespace reef::app {
namespace {

CLI::Validator validator_of(const Validator& validator) {
  return CLI::Validator(validator.check, validator.description);
}

// The subcommand that was asked for, as far as the words were understood.
std::string innermost_path(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  return path;
}

// What CLI11 does not know of options and commands. Entries live as long as the program, as the parsers do.
std::map<const CLI::Option*, WritesByDefault>& written_options() {
  static std::map<const CLI::Option*, WritesByDefault> all;
  return all;
}
std::set<const void*>& starters_of_programs() {  // options and commands
  static std::set<const void*> all;
  return all;
}

// The commands that were asked for, outermost first: reef, learn, imprint.
std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> all = {&app};
  while (!all.back()->get_subcommands().empty()) all.push_back(all.back()->get_subcommands().front());
  return all;
}

}  // namespace

// ---- Option ----

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::check(const Validator& validator) {
  option_->check(validator_of(validator));
  return *this;
}

Option Option::transform(const Validator& validator) {
  option_->transform(validator_of(validator));
  return *this;
}

Option Option::capture_default_str() {
  option_->capture_default_str();
  return *this;
}

Option Option::allow_extra_args(bool allowed) {
  option_->allow_extra_args(allowed);
  return *this;
}

Option Option::expected(int values) {
  option_->expected(values);
  return *this;
}

Option Option::delimiter(char between_values) {
  option_->delimiter(between_values);
  return *this;
}

Option Option::option_text(const std::string& text) {
  option_->option_text(text);
  return *this;
}

Option Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option Option::writes(WritesByDefault otherwise) {
  written_options()[option_] = otherwise;
  return *this;
}

Option Option::starts_programs() {
  starters_of_programs().insert(option_);
  return *this;
}

// ---- Command ----

void Command::starts_programs() { starters_of_programs().insert(app_); }

Command Command::add_subcommand(const std::string& name, const std::string& description) {
  return Command(app_->add_subcommand(name, description));
}

template <typename T>
requires(!std::is_enum_v<T>) Option Command::add_option(const std::string& name, T& variable,
                                                        const std::string& description) {
  return Option(app_->add_option(name, variable, description));
}

template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::uint64_t>&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint32_t&, const std::string&);
template Option Command::add_option(const std::string&, std::size_t&, const std::string&);
template Option Command::add_option(const std::string&, float&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<double>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<int>&, const std::string&);

Option Command::add_number_option(const std::string& name, const std::function<void(int)>& set,
                                  const std::string& description) {
  return Option(app_->add_option_function<int>(name, set, description));
}

Option Command::add_flag(const std::string& name, bool& variable, const std::string& description) {
  return Option(app_->add_flag(name, variable, description));
}

Option Command::add_flag_callback(const std::string& name, const std::function<void()>& callback,
                                  const std::string& description) {
  return Option(app_->add_flag_callback(name, callback, description));
}

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::callback(const std::function<void()>& callback) { app_->callback(callback); }

void Command::require_subcommand() { app_->require_subcommand(1); }

void Command::group_commands(const std::string& heading) {
  const std::string usual = CLI::App().get_group();
  for (CLI::App* command : app_->get_subcommands([](CLI::App*) { return true; })) {
    if (command->get_group() == usual) command->group(heading);
  }
}

std::string Command::set_heading(const std::string& heading) {
  std::string before = app_->option_defaults()->get_group();
  app_->option_defaults()->group(heading);
  return before;
}

std::string Command::plain_help(const std::string& program) const {
  return app_->help(program, CLI::AppFormatMode::Normal);
}

// ---- CommandLine ----

CommandLine::CommandLine(const std::string& program, const std::string& description)
    : app_(std::make_unique<CLI::App>(description)) {
  app_->name(program);
}

CommandLine::~CommandLine() = default;

void CommandLine::add_version_flag(const std::string& name) { app_->set_version_flag(name, ""); }

void CommandLine::remove_help_flag() { app_->set_help_flag(); }

namespace {

// An empty word is a variable of the shell that is not set: --image "$PICTURE". Behind "--" stand words of other
// programs.
void check_for_empty_words(const std::vector<std::string>& words, ParseOutcome& outcome) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const bool ends_empty = words[i].starts_with("--") && words[i].ends_with("=");
    if (!words[i].empty() && !ends_empty) continue;
    const bool has_option = !ends_empty && i > 0 && words[i - 1].starts_with("-");
    const std::string name = ends_empty ? words[i].substr(0, words[i].size() - 1) : has_option ? words[i - 1] : "";
    outcome.kind = ParseOutcome::Kind::kProblem;
    outcome.error = "EmptyWord";
    outcome.what = fmt::format("{} empty: is a variable of the shell not set?",
                               name.empty() ? "an argument is" : fmt::format("the value of {} is", name));
    return;
  }
}

}  // namespace

ParseOutcome CommandLine::parse(const std::vector<std::string>& words) {
  ParseOutcome outcome;
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back
  } catch (const CLI::CallForVersion&) {
    outcome.kind = ParseOutcome::Kind::kVersion;
  } catch (const CLI::ParseError& error) {
    outcome.kind = error.get_exit_code() == 0 ? ParseOutcome::Kind::kHelp : ParseOutcome::Kind::kProblem;
    outcome.error = error.get_name();
    outcome.what = error.what();
    outcome.remaining = app_->remaining(/*recurse=*/true);
  }
  outcome.path = innermost_path(*app_);
  if (outcome.kind == ParseOutcome::Kind::kParsed) check_for_empty_words(words, outcome);
  return outcome;
}

std::vector<std::string> CommandLine::outputs() const {
  std::vector<std::string> all;
  for (const CLI::App* command : commands_of(*app_)) {
    for (const CLI::Option* option : command->get_options()) {
      const auto known = written_options().find(option);
      if (known == written_options().end()) continue;
      std::vector<std::string> named = option->results();
      if (named.empty() && known->second == WritesByDefault::kHere) named = {"."};
      all.insert(all.end(), named.begin(), named.end());
    }
  }
  return all;
}

bool CommandLine::starts_programs() const {
  for (const CLI::App* command : commands_of(*app_)) {
    if (starters_of_programs().contains(command)) return true;
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() > 0 && starters_of_programs().contains(option)) return true;
    }
  }
  return false;
}

void refuse_usage(const std::string& sentence) { throw CLI::ValidationError(sentence); }

void refuse_missing(const std::string& what) { throw CLI::RequiredError(what); }

// ---- Help ----

namespace {

// "TEXT:{a,b}": the words in the braces that one_of() puts there.
std::vector<std::string> choices_of(const std::string& type_name) {
  std::vector<std::string> words;
  const std::size_t open = type_name.find('{'), close = type_name.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return words;
  std::string list = type_name.substr(open + 1, close - open - 1);
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// The word that help shows for an option's value: the one that option_text() gives, else one for its type.
std::string value_name(const CLI::Option& option, const std::vector<std::string>& choices) {
  const std::string& text = option.get_option_text();
  if (!text.empty()) return text.substr(0, text.find(' '));
  if (!choices.empty()) return "WORD";
  const std::string type = option.get_type_name();
  if (type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT")) return "NUMBER";
  std::string name = option.get_lnames().empty() ? "VALUE" : option.get_lnames().front();
  static const std::vector<std::string> kRead = {"image", "in", "labels", "data", "truth", "source", "model"};
  const bool is_read = std::find(kRead.begin(), kRead.end(), name) != kRead.end();
  return is_read || written_options().contains(&option) ? "FILE" : upper_name(name);
}

// `as_positional`: an option may be given by name or by place.
OptionHelp option_help(const CLI::Option& option, bool as_positional) {
  OptionHelp help;
  help.key = option.get_name();
  help.description = option.get_description();
  help.group = option.get_group().empty() ? kMainGroup : option.get_group();
  help.is_required = option.get_required();
  help.choices = choices_of(option.get_type_name());
  for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  if (as_positional) {
    help.key = option.get_name(/*positional=*/true);
    help.names.clear();
    help.value = upper_name(help.key);
    if (option.get_expected_max() > 1) help.value += "...";
    return help;
  }
  if (option.get_items_expected_max() > 0) help.value = value_name(option, help.choices);
  help.fallback = option.get_default_str();
  const std::string& text = option.get_option_text();
  if (const std::size_t open = text.find('['); open != std::string::npos) {
    help.fallback = text.substr(open + 1, text.rfind(']') - open - 1);
  }
  return help;
}

CommandHelp describe_parser(const CLI::App& app, const std::string& path) {
  CommandHelp help;
  help.path = path;
  help.description = app.get_description();
  help.footer = app.get_footer();
  help.group = app.get_group() == CLI::App().get_group() ? kMainCommandGroup : app.get_group();
  for (const CLI::Option* option : app.get_options()) {
    const bool has_name = !option->get_lnames().empty() || !option->get_snames().empty();
    if (option->get_positional()) help.options.push_back(option_help(*option, /*as_positional=*/true));
    if (!has_name) continue;
    help.options.push_back(option_help(*option, /*as_positional=*/false));
    if (!option->get_positional()) continue;
    help.options.back().is_required = false;
    help.options.back().description = "The same by name";
  }
  std::stable_sort(help.options.begin(), help.options.end(),
                   [](const OptionHelp& a, const OptionHelp& b) { return a.names.empty() > b.names.empty(); });
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    help.commands.push_back(describe_parser(*command, path + " " + command->get_name()));
  }
  return help;
}

}  // namespace

CommandHelp describe(const Command& command) { return describe_parser(command.parser(), command.parser().get_name()); }

}  // namespace reef::app
