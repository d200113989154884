// SPDX-License-Identifier: Apache-2.0
// `reef`: one program, one subcommand per job. Exit codes: 0 done, 1 the input cannot be processed, 2 wrong usage,
// 3 compiled, but nothing runs on the Edge TPU.
// Called `edgetpu_compiler`, it is that.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "command_help.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "kernels/simd/targets.h"
#include "usage.h"

namespace {

constexpr int kExitInputError = 1;
constexpr int kExitUsage = 2;

// `reef help`, `reef help run` and `reef help learn split` are `reef --help`, `reef run --help` and so on.
std::vector<std::string> with_help_as_option(std::vector<std::string> words) {
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names = {"help"};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

bool has_command(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> names = command_names(app);
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Programs that asked for JSON get their answer there.
bool wants_json(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

int report_unknown_command(const CLI::App& app, const std::string& name) {
  const std::string near = reef::app::nearest_word(name, command_names(app));
  reef::app::print_error("reef: there is no command '{}'{}\n`reef help` lists the commands.\n", name,
                         near.empty() ? "" : fmt::format("; did you mean `reef {}`?", near));
  return kExitUsage;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Reef: open toolbox for the Coral Edge TPU.\n"
      "Example: reef run models/reef_creatures_int8.tflite --image models/images/crab_1.jpg "
      "--labels models/reef_creatures_labels.txt");
  app.name("reef");
  app.set_version_flag("--version", "reef " REEF_VERSION);
  app.require_subcommand(1);
  reef::app::Action action;
  reef::app::add_check(app, action);
  reef::app::add_inspect(app, action);
  reef::app::add_convert(app, action);
  reef::app::add_compile(app, action);
  reef::app::add_learn(app, action);
  reef::app::add_quantize(app, action);
  reef::app::add_retarget(app, action);
  reef::app::add_run(app, action);
  reef::app::add_eval(app, action);
  reef::app::add_compare(app, action);
  reef::app::add_export(app, action);
  reef::app::add_devices(app, action);
  reef::app::add_virtual_usb(app, action);
  reef::app::add_verify(app, action);
  reef::app::add_audit(app, action);
  reef::app::add_disasm(app, action);
  reef::app::add_asm(app, action);
  reef::app::add_exec(app, action);
  reef::app::add_models(app, action);
  reef::app::add_completion(app, action);
  reef::app::add_man(app, action);
  const std::vector<std::string> words = with_help_as_option({argv + 1, argv + argc});
  if (!words.empty() && words[0][0] != '-' && !has_command(app, words[0])) return report_unknown_command(app, words[0]);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the back
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      const std::string sentence = reef::app::usage_error(app, error);
      if (wants_json(words)) reef::app::print_json_usage_error(sentence, kExitUsage);
      reef::app::print_error("{}\n", sentence);
      return kExitUsage;
    }
    if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
      reef::app::print_text("{}", reef::app::help_of(app));
      return 0;
    }
    std::ostringstream text, problem;
    app.exit(error, text, problem);
    reef::app::print_text("{}", text.str());
    return 0;
  }
  if (const std::string problem = reef::kernels::unmet_request(); !problem.empty()) {
    reef::app::print_error("reef: note: {}\n", problem);
  }
  const reef::app::Ending ending = action();
  if (ending.status.ok()) return ending.exit_code;
  if (wants_json(words)) reef::app::print_json_error(ending.status, kExitInputError);
  std::fflush(stdout);
  reef::app::print_error("reef: {}\n", ending.status.message());
  return kExitInputError;
}

}  // namespace

int main(int argc, char** argv) {
  reef::app::prepare_process();
  try {
    const bool is_googles = argc > 0 && std::filesystem::path(argv[0]).stem() == "edgetpu_compiler";
    const int code = is_googles ? reef::app::edgetpu_compiler_main(argc, argv) : run(argc, argv);
    if (code != kExitInputError && code != kExitUsage) reef::app::flush_output();
    return code;
  } catch (const reef::app::OutputFailed& error) {
    reef::app::print_error("reef: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "reef: out of memory\n");
  } catch (const std::exception& error) {
    reef::app::print_error("reef: internal error: {}\n", error.what());
  }
  return kExitInputError;
}
