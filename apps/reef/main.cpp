// SPDX-License-Identifier: Apache-2.0
// `reef`: one program, one subcommand per job. Exit codes: 0 done, 1 the input cannot be processed, 2 wrong usage,
// 3 compiled, but nothing runs on the Edge TPU.
// Called `edgetpu_compiler`, it is that.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "command_help.h"
#include "commands.h"
#include "console.h"
#include "data_options.h"
#include "json_output.h"
#include "kernels/simd/targets.h"
#include "sandbox.h"
#include "usage.h"

namespace {

constexpr int kExitInputError = 1;
constexpr int kExitUsage = 2;
constexpr std::string_view kGooglesCompiler = "edgetpu_compiler";

// `reef help`, `reef help run` and `reef help learn split` are `reef --help`, `reef run --help` and so on; `reef
// version`, `reef -V` and `reef -v` are `reef --version`.
std::vector<std::string> with_help_as_option(std::vector<std::string> words) {
  if (words.size() == 1 && (words[0] == "version" || words[0] == "-V" || words[0] == "-v")) return {"--version"};
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

std::vector<std::string> command_names(const reef::app::CommandHelp& program) {
  std::vector<std::string> names;
  for (const reef::app::CommandHelp& command : program.commands) {
    names.push_back(command.path.substr(program.path.size() + 1));
  }
  return names;
}

bool has_command(const reef::app::CommandHelp& program, const std::string& name) {
  const std::vector<std::string> names = command_names(program);
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Programs that asked for JSON get their answer there.
bool wants_json(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

int report_unknown_command(const reef::app::CommandHelp& program, const std::string& name, bool as_json) {
  const std::string near = reef::app::meant_command(name, command_names(program));
  const std::string sentence = fmt::format("there is no command '{}'{}", name,
                                           near.empty() ? "" : fmt::format("; did you mean `reef {}`?", near));
  if (as_json) reef::app::print_json_usage_error(sentence, kExitUsage);
  reef::app::print_error("reef: {}\n`reef help` lists the commands.\n", sentence);
  return kExitUsage;
}

// Reports why the words were not taken. The exit code.
int report_usage_problem(const reef::app::CommandHelp& program, const reef::app::ParseOutcome& outcome, bool as_json) {
  const std::string sentence = reef::app::usage_error(program, outcome);
  if (as_json) reef::app::print_json_usage_error(sentence, kExitUsage);
  reef::app::print_error("{}\n", sentence);
  return kExitUsage;
}

void add_commands(reef::app::Command& app, reef::app::Action& action) {
  reef::app::add_models(app, action);
  reef::app::add_check(app, action);
  reef::app::add_compile(app, action);
  reef::app::add_run(app, action);
  app.group_commands("Start here");
  reef::app::add_convert(app, action);
  reef::app::add_quantize(app, action);
  reef::app::add_prune(app, action);
  reef::app::add_tune(app, action);
  reef::app::add_eval(app, action);
  reef::app::add_compare(app, action);
  reef::app::add_learn(app, action);
  reef::app::add_train(app, action);
  app.group_commands("Convert, quantize, measure, teach");
  reef::app::add_exec(app, action);
  reef::app::add_devices(app, action);
  reef::app::add_virtual_usb(app, action);
  reef::app::add_export(app, action);
  app.group_commands("Devices and other programs");
  reef::app::add_inspect(app, action);
  reef::app::add_verify(app, action);
  reef::app::add_audit(app, action);
  reef::app::add_disasm(app, action);
  reef::app::add_asm(app, action);
  reef::app::add_retarget(app, action);
  app.group_commands("Inside compiled models");
  reef::app::add_help(app);
  reef::app::add_completion(app, action);
  reef::app::add_man(app, action);
  app.group_commands("This program");
}

// Runs the command, in the sandbox unless starting programs is what it is for.
reef::app::Ending confined(const reef::app::CommandLine& line, const reef::app::Action& action) {
  if (!line.starts_programs()) REEF_RETURN_IF_ERROR(reef::app::enter_sandbox(line.outputs()));
  return action();
}

int run(int argc, char** argv) {
  using Kind = reef::app::ParseOutcome::Kind;
  reef::app::CommandLine line("reef", "Reef: an open compiler, simulator and toolbox for the Coral Edge TPU");
  line.add_version_flag("--version");
  reef::app::Command app = line.root();
  app.require_subcommand();
  app.footer(
      "Examples:\n  reef models yolo -o first\n"
      "  reef compile first/shapes_yolo.onnx --data first/shapes --preprocess yolo -o first\n"
      "  reef run first/shapes_yolo_int8_edgetpu.tflite --image first/shapes/shapes_05.jpg --draw seen.png");
  reef::app::Action action;
  add_commands(app, action);
  const std::vector<std::string> words = reef::app::with_joined_shards(with_help_as_option({argv + 1, argv + argc}));
  const auto help = [&] { return reef::app::describe(app); };
  if (!words.empty() && words[0][0] != '-' && !has_command(help(), words[0])) {
    return report_unknown_command(help(), words[0], wants_json(words));
  }
  const reef::app::ParseOutcome outcome = line.parse(words);
  switch (outcome.kind) {
    case Kind::kParsed:
      break;
    case Kind::kHelp:
      reef::app::print_text("{}", reef::app::help_of(help(), outcome.path));
      return 0;
    case Kind::kVersion:
      reef::app::print_text("reef {}\n", REEF_VERSION);
      return 0;
    case Kind::kProblem:
      return report_usage_problem(help(), outcome, wants_json(words));
  }
  if (const std::string problem = reef::kernels::unmet_request(); !problem.empty()) {
    reef::app::print_error("reef: note: {}\n", problem);
  }
  const reef::app::Ending ending = confined(line, action);
  if (ending.status.ok()) return ending.exit_code;
  if (wants_json(words)) reef::app::print_json_error(ending.status, kExitInputError);
  std::fflush(stdout);
  reef::app::print_error("reef: {}\n", ending.status.message());
  return kExitInputError;
}

}  // namespace

// Packages have the program in libreef, and call it from a small command (apps/launcher).
#ifdef REEF_IN_LIBRARY
extern "C" __attribute__((visibility("default"))) int reef_program(int argc, char** argv) {
#else
int main(int argc, char** argv) {
#endif
  reef::app::prepare_process();
  try {
    int code = 0;
    if (argc > 0 && std::filesystem::path(argv[0]).stem() == kGooglesCompiler) {
      code = reef::app::edgetpu_compiler_main(argc, argv);
    } else if (argc > 1 &&
               std::string_view(argv[1]) == kGooglesCompiler) {  // a wheel has no links: a script calls this
      code = reef::app::edgetpu_compiler_main(argc - 1, argv + 1);
    } else {
      code = run(argc, argv);
    }
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
