// SPDX-License-Identifier: Apache-2.0
// Options of every command that reads a model of any format: what the file leaves open, and its layout.
#pragma once

#include <string>
#include <vector>

#include "command.h"

#include "base/status.h"
#include "compiler/front_end.h"

namespace reef::app {

struct FrontEndFlags {
  std::vector<std::string> shapes, values, keep_nchw;
  bool no_simplify = false, pad_nms = false, unroll = false;

  bool are_given() const {
    return !shapes.empty() || !values.empty() || !keep_nchw.empty() || no_simplify || pad_nms || unroll;
  }
};

void add_front_end_flags(Command& command, FrontEndFlags& flags);
Result<compiler::FrontEndOptions> front_end_options(const FrontEndFlags& flags);

}  // namespace reef::app
