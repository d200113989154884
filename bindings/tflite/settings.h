// SPDX-License-Identifier: Apache-2.0
// Options of libedgetpu's interfaces that mean something to a real device.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "driver/attachment.h"

namespace reef::delegate {

struct Option {
  std::string_view name, value;
};

// "Performance" is Max, High, Medium or Low; "Usb.AlwaysDfu" True or False. Other names are for other parts.
Result<driver::SessionSettings> settings_of(std::span<const Option> options);

}  // namespace reef::delegate
