// SPDX-License-Identifier: Apache-2.0
// The subcommands of `reef`, one file each. Each adds itself to the command line and returns when its turn comes.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/status.h"

namespace reef::app {

// What the chosen subcommand does; set by it when the command line has been parsed.
using Action = std::function<Status()>;

void add_asm(CLI::App& app, Action& action);
void add_audit(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_compile(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_disasm(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_learn(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_retarget(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);

// The whole program under the name of Google's compiler. Its exit code.
int edgetpu_compiler_main(int argc, char** argv);

}  // namespace reef::app
