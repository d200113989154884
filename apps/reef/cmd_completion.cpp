// SPDX-License-Identifier: Apache-2.0
// reef completion and reef man: the command line as shells and `man` want it.
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/output_place.h"
#include "base/version.h"
#include "command_help.h"
#include "commands.h"
#include "console.h"
#include "usage.h"

namespace reef::app {
namespace {

const CommandHelp* find(const CommandHelp& help, const std::vector<std::string>& words) {
  const CommandHelp* command = &help;
  for (const std::string& word : words) {
    const CommandHelp* next = nullptr;
    for (const CommandHelp& sub : command->commands) {
      if (sub.path == command->path + " " + word) next = &sub;
    }
    if (next == nullptr) return nullptr;
    command = next;
  }
  return command;
}

void add_pages(const CommandHelp& command, const std::string& folder, std::vector<std::string>& paths,
               std::vector<std::string>& pages) {
  paths.push_back((std::filesystem::path(folder) / (man_page_name(command) + ".1")).string());
  pages.push_back(man_page(command, std::string(reef_version())));
  for (const CommandHelp& sub : command.commands) add_pages(sub, folder, paths, pages);
}

Status write_pages(const CommandHelp& help, const std::string& folder) {
  REEF_RETURN_IF_ERROR(check_output_folder(folder));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::vector<std::string> paths, pages;
  add_pages(help, folder, paths, pages);
  std::vector<FileContent> files;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    files.push_back({paths[i], bytes_of(pages[i])});
  }
  REEF_RETURN_IF_ERROR(write_files(files));
  print_text("{} pages written to {}\n", paths.size(), folder);
  return ok_status();
}

struct ManArguments {
  std::vector<std::string> words;
  std::string output;
};

Status print_page(const CommandHelp& help, const ManArguments& arguments) {
  if (!arguments.output.empty()) return write_pages(help, arguments.output);
  const CommandHelp* command = find(help, arguments.words);
  REEF_REQUIRE(command != nullptr, "there is no such command; `reef help` lists them");
  print_exact("{}", man_page(*command, std::string(reef_version())));
  return ok_status();
}

}  // namespace

// Only so that it is listed and completed: main() turns `reef help run` into `reef run --help`.
void add_help(Command& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  Command command = app.add_subcommand("help", "Show the help of a command");
  command.add_option("command", *words, "The command; none: reef itself");
  command.footer("Examples:\n  reef help compile\n  reef help learn imprint");
  command.callback([words] {});
}

void add_completion(Command& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  Command command = app.add_subcommand("completion", "Print a script with which a shell completes reef's command line");
  command.add_option("shell", *shell, "Which shell").required().transform(one_of({"bash", "zsh", "fish"}));
  command.footer(
      "Examples:\n  reef completion bash > ~/.local/share/bash-completion/completions/reef\n"
      "  reef completion zsh > ~/.zfunc/_reef\n  reef completion fish > ~/.config/fish/completions/reef.fish");
  command.callback([shell, app, &action] {
    action = [shell, app] {
      print_exact("{}", completion_script(describe(app), *shell));
      return ok_status();
    };
  });
}

void add_man(Command& app, Action& action) {
  auto arguments = std::make_shared<ManArguments>();
  Command command = app.add_subcommand("man", "Print the man page of a command, or write all of them");
  command.add_option("command", arguments->words, "The command; none: reef itself");
  command.add_option("-o,--output", arguments->output, "Write all pages to this folder").writes();
  command.footer("Example:\n  reef man compile | man -l -");
  command.callback(
      [arguments, app, &action] { action = [arguments, app] { return print_page(describe(app), *arguments); }; });
}

}  // namespace reef::app
