// SPDX-License-Identifier: Apache-2.0
// reef compile, and the same under the name of Google's compiler.
//
// Standard output is Google's, letter by letter: scripts read it. What Reef itself has to say goes to standard error.
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "base/version.h"
#include "commands.h"
#include "compile_report.h"
#include "compiler/compile.h"
#include "compiler/google_text.h"
#include "plan_options.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct CompileArguments {
  compiler::CompileOptions how;
  PlanFlags plan;
  bool show_operations = false;
  bool json = false;
  bool quiet = false;
  bool help = false, version = false;
};

constexpr double kShortestTimeout = 0.001, kLongestTimeout = 1e9;  // seconds

// Google's own options, with Google's names.
void add_googles_options(CLI::App& command, CompileArguments& arguments) {
  compiler::CompileOptions& how = arguments.how;
  command.add_option("-o,--out_dir", how.out_dir,
                     "Folder for the compiled model and its log (default: the current one)");
  command.add_flag("-s,--show_operations", arguments.show_operations, "Also print the table of operations of the log");
  command
      .add_option("-m,--min_runtime_version", arguments.plan.runtime,
                  "Oldest Edge TPU runtime that the result shall run on, 10 to 14")
      ->check(CLI::Range(ops::kOldestRuntime, ops::kNewestRuntime))
      ->capture_default_str();
  command.add_option("-i,--intermediate_tensors", arguments.plan.intermediate_tensors,
                     "Names of tensors, with commas between them, that end the part for the Edge TPU");
  command
      .add_option("-n,--num_segments", how.segments,
                  "Cut the model into so many, for a pipeline of Edge TPUs; balanced by predicted latency")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_flag("-d,--search_delegate", how.search,
                   "If the model does not compile, find the largest part that does");
  command.add_option("-k,--delegate_search_step", how.search_step, "Operations by which lengths in that search differ")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command.add_option("-t,--timeout_sec", how.timeout_seconds, "Seconds after which an attempt is given up")
      ->check(CLI::Range(kShortestTimeout, kLongestTimeout))
      ->capture_default_str();
  // May be repeated (-aaa), as Google's may.
  command.add_flag("-a,--enable_multiple_subgraphs", arguments.plan.several_parts,
                   "Allow several parts for the Edge TPU, wherever that is predicted to save time");
}

void add_reefs_options(CLI::App& command, CompileArguments& arguments) {
  compiler::CompileOptions& how = arguments.how;
  add_plan_flags(command, arguments.plan);
  command.add_flag("--keep-signatures", how.keep_signatures,
                   "Keep the model's signatures (Google's compiler drops them)");
  command
      .add_option("--no-code", how.no_code,
                  "Operators that the chip could run but Reef has no code for: cpu (they stay there), package (mapped "
                  "as Google's compiler would, in a file that says it cannot run), fail")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, compiler::NoCode>{{"cpu", compiler::NoCode::kCpu},
                                                                          {"package", compiler::NoCode::kPackage},
                                                                          {"fail", compiler::NoCode::kFail}},
                                  CLI::ignore_case))
      ->default_str("cpu");
  command.add_flag("--quiet", arguments.quiet, "Print nothing but errors and warnings");
  command.add_flag("--json", arguments.json, "Print one JSON object instead (documented in docs/json.md)");
}

Status compile_models(CompileArguments arguments) {
  compiler::CompileOptions& how = arguments.how;
  REEF_ASSIGN_OR_RETURN(how.plan, plan_options(arguments.plan));
  const bool prints = !arguments.json && !arguments.quiet;
  if (prints) fmt::print("{}", compiler::version_line());
  std::fflush(stdout);
  const compiler::CompileResult result = compiler::compile(how);
  if (arguments.json) {
    fmt::print("{}\n", compile_json(how, result).dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (prints) {
    fmt::print("{}", compiler::console_text(how, result, arguments.show_operations));
  }
  std::fflush(stdout);
  if (!result.ok()) return Status(StatusCode::kInvalidInput, result.refusals.front().explanation);
  fmt::print(stderr, "{}", compile_notes(how, result, !prints));
  return ok_status();
}

// Under Google's name, as Google's: the version line, then how it is called.
void print_googles_help(const CLI::App& command) {
  std::string options = command.help("edgetpu_compiler", CLI::AppFormatMode::Normal);
  options.erase(0, options.find("\nOptions:") == std::string::npos ? 0 : options.find("\nOptions:") + 1);
  fmt::print("{}Usage:\nedgetpu_compiler [options] model...\n\n{}", compiler::version_line(), options);
}

// One line on standard output, whose last word is the version: Ultralytics' exporter takes it from there. The line on
// standard error ends with the same word, for those who read both.
void print_googles_version() {
  fmt::print("{}", compiler::version_line());
  std::fflush(stdout);
  fmt::print(stderr, "This is Reef {}, an open program that takes the place of Google's edgetpu_compiler {}\n",
             reef_version(), compiler::kCompatibleVersion);
}

constexpr char kFooter[] =
    "Example:\n  {} -s -o compiled model_int8.tflite\n"
    "This version generates machine code for networks of convolutions; other files say that they have none and cannot\n"
    "run (docs/compile.md). Its code was checked against Google's and on a virtual device, not on silicon.";

}  // namespace

void add_compile(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<CompileArguments>();
  CLI::App* command = app.add_subcommand(
      "compile", "Compile quantized models for the Edge TPU, with the options and output of Google's edgetpu_compiler");
  command->add_option("model", arguments->how.models, "Quantized .tflite files; several share the chip's memory")
      ->required();
  add_googles_options(*command, *arguments);
  add_reefs_options(*command, *arguments);
  command->footer(fmt::format(kFooter, "reef compile"));
  command->callback([arguments, &action] {
    const auto options = plan_options(arguments->plan);
    if (!options.ok()) throw CLI::ValidationError(options.status().message());
    action = [arguments] { return compile_models(*arguments); };
  });
}

int edgetpu_compiler_main(int argc, char** argv) {
  constexpr int kFailure = 1;
  CompileArguments arguments;
  CLI::App command;
  command.name("edgetpu_compiler");
  command.set_help_flag();
  command.add_option("model", arguments.how.models, "Quantized .tflite files; several share the chip's memory");
  command.add_flag("-h,--help", arguments.help, "Print this help and exit");
  command.add_flag("-v,--version", arguments.version, "Print the version and exit");
  add_googles_options(command, arguments);
  add_reefs_options(command, arguments);
  command.footer(fmt::format(kFooter, "edgetpu_compiler"));
  try {
    command.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    fmt::print("{}", compiler::version_line());
    std::fflush(stdout);
    fmt::print(stderr, "reef: {}; edgetpu_compiler --help lists the options\n", error.what());
    return kFailure;
  }
  if (arguments.version && !arguments.help) {
    print_googles_version();
    return 0;
  }
  if (arguments.help || arguments.how.models.empty()) {
    print_googles_help(command);
    return arguments.help ? 0 : kFailure;
  }
  const Status status = compile_models(arguments);
  if (!status.ok()) fmt::print(stderr, "reef: {}\n", status.message());
  return status.ok() ? 0 : kFailure;
}

}  // namespace reef::app
