// SPDX-License-Identifier: Apache-2.0
// --target: what a model is for. The usual one is a computer with an Edge TPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "commands.h"
#include "micro/assess.h"
#include "plan_options.h"

namespace reef::app {

struct TargetFlag {
  std::string name = "edgetpu";
  std::optional<std::uint64_t> ram, flash;  // bytes of a board with TFLite Micro alone

  // Nothing: a computer with all of TFLite.
  std::optional<micro::Target> micro() const {
    if (name == "micro") return micro::Target::kMicro;
    if (name == "tflm") return micro::Target::kTflm;
    return std::nullopt;
  }
};

// Describes the board for micro::assess(). It fails where sizes are given for a board whose sizes are known.
Result<micro::AssessOptions> board_of(const TargetFlag& target);

// Adds --ram and --flash.
void add_board_options(Command& command, TargetFlag& flag);

// The Dev Board Micro reaches its Edge TPU over USB 2, unless the user names another link.
void use_link_of(const TargetFlag& target, PlanFlags& plan);

void add_target_option(Command& command, TargetFlag& flag, const std::vector<std::string>& names);

}  // namespace reef::app
