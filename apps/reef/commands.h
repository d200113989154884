// SPDX-License-Identifier: Apache-2.0
// The subcommands of `reef`, one file each. Each adds itself to the command line and returns when its turn comes.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/status.h"
#include "command.h"

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

void add_asm(Command& app, Action& action);
void add_audit(Command& app, Action& action);
void add_check(Command& app, Action& action);
void add_compare(Command& app, Action& action);
void add_compile(Command& app, Action& action);
void add_help(Command& app);
void add_completion(Command& app, Action& action);
void add_convert(Command& app, Action& action);
void add_devices(Command& app, Action& action);
void add_disasm(Command& app, Action& action);
void add_eval(Command& app, Action& action);
void add_exec(Command& app, Action& action);
void add_export(Command& app, Action& action);
void add_inspect(Command& app, Action& action);
void add_learn(Command& app, Action& action);
void add_man(Command& app, Action& action);
void add_models(Command& app, Action& action);
void add_prune(Command& app, Action& action);
void add_quantize(Command& app, Action& action);
void add_retarget(Command& app, Action& action);
void add_run(Command& app, Action& action);
void add_train(Command& app, Action& action);
void add_tune(Command& app, Action& action);
void add_verify(Command& app, Action& action);
void add_virtual_usb(Command& app, Action& action);

// The whole program under the name of Google's compiler. Its exit code.
int edgetpu_compiler_main(int argc, char** argv);

}  // namespace reef::app
