// SPDX-License-Identifier: Apache-2.0
// `reef`: one program, one subcommand per job. Exit codes: 0 done, 1 the input cannot be processed, 2 wrong usage.
// Called `edgetpu_compiler`, it is that.
#include <cstdio>
#include <filesystem>
#include <new>
#include <string>

#include "commands.h"
#include "kernels/simd/targets.h"

namespace {

constexpr int kExitInputError = 1;
constexpr int kExitUsage = 2;

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
  reef::app::add_devices(app, action);
  reef::app::add_verify(app, action);
  reef::app::add_audit(app, action);
  reef::app::add_disasm(app, action);
  reef::app::add_asm(app, action);
  const auto is_asked_for = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_asked_for).empty()) {
    std::fprintf(stderr, "reef: there is no command '%s'; `reef --help` lists them\n", argv[1]);
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (const std::string problem = reef::kernels::unmet_request(); !problem.empty()) {
    std::fprintf(stderr, "reef: note: %s\n", problem.c_str());
  }
  const reef::Status status = action();
  if (status.ok()) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "reef: %s\n", status.message().c_str());
  return kExitInputError;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const bool is_googles = argc > 0 && std::filesystem::path(argv[0]).stem() == "edgetpu_compiler";
    return is_googles ? reef::app::edgetpu_compiler_main(argc, argv) : run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "reef: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reef: internal error: %s\n", error.what());
  }
  return kExitInputError;
}
