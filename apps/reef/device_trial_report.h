// SPDX-License-Identifier: Apache-2.0
// reef devices --test: does an Edge TPU do what we believe? And the report that somebody with a stick can send us.
#pragma once

#include <string>

#include "command.h"

#include "commands.h"

namespace reef::app {

struct DeviceTestArguments {
  bool is_wanted = false;
  std::string device = "auto", report, firmware;
};
void add_device_test_options(Command& command, DeviceTestArguments& arguments);

// Exit code 1: something differs, or the device cannot be used.
Ending test_devices(const DeviceTestArguments& arguments, bool json);

}  // namespace reef::app
