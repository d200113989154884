// SPDX-License-Identifier: Apache-2.0
// The subcommands of `reef`, one file each. Each adds itself to the command line and returns when its turn comes.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/status.h"

namespace reef::app {

// `reef compile` wrote a file in which nothing runs on the Edge TPU.
inline constexpr int kExitNothingOnChip = 3;

// How a subcommand ended. A Status alone is the usual end: 0, or 1 with its message.
struct Ending {
  Ending(Status result) : status(std::move(result)) {}
  Ending(Status result, int code) : status(std::move(result)), exit_code(code) {}
  Status status;
  int exit_code = 0;  // where the status is ok
};

// What the chosen subcommand does; set by it when the command line has been parsed.
using Action = std::function<Ending()>;

void add_asm(CLI::App& app, Action& action);
void add_audit(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_compile(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_disasm(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_exec(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_learn(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);
void add_models(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_retarget(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_virtual_usb(CLI::App& app, Action& action);

// The whole program under the name of Google's compiler. Its exit code.
int edgetpu_compiler_main(int argc, char** argv);

}  // namespace reef::app
