// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

namespace reef::delegate {

Result<driver::SessionSettings> settings_of(std::span<const Option> options) {
  driver::SessionSettings settings;
  for (const Option& option : options) {
    if (option.name == "Performance") {
      auto clock = driver::parse_clock(option.value);
      if (!clock.ok()) return clock.status().in("Performance");
      settings.clock = *clock;
    } else if (option.name == "Usb.AlwaysDfu") {
      REEF_REQUIRE(option.value == "True" || option.value == "False", "Usb.AlwaysDfu is True or False, not '{}'",
                   option.value);
      settings.always_download = option.value == "True";
    }
  }
  return settings;
}

}  // namespace reef::delegate
