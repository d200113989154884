// SPDX-License-Identifier: Apache-2.0
// The temperature of a chip that no kernel driver watches, and the clock that it allows.
//
// Limits are those of gasket, Google's kernel driver: from 85, 90 and 95 degrees Celsius on, a half, a quarter and an
// eighth of the clock; at 100 the hardware shuts down by itself. Unlike there, a lower clock that was asked for stays.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "driver/register_port.h"

namespace reef::driver {

// How often gasket looks.
inline constexpr Milliseconds kThermalInterval{5000};

// Sets the limits of the hardware and switches the sensor on; once after power-on, harmless when repeated.
Status start_thermal_sensor(RegisterPort& port);

// Degrees Celsius; nothing: the sensor has no value yet. An error: the device is lost.
Result<std::optional<double>> read_temperature(RegisterPort& port);

// Divider of the clock that a temperature asks for at least: 0 (500 MHz) to 3 (63 MHz).
int divider_for(double celsius);

}  // namespace reef::driver
