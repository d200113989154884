// SPDX-License-Identifier: Apache-2.0
// Firmware for a stick that waits for it: DFU 1.1 ("device firmware upgrade") on interface 0.
//
// The firmware goes into RAM: it is lost with power, and nothing done here can damage a stick. One that was interrupted
// half-way still waits for firmware, and takes it from the start.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "driver/usb.h"

namespace reef::driver {

// Sends the firmware, reads it back and compares. Reset the port afterwards: the device comes back as kApplicationId.
Status download_firmware(UsbDevice& device, std::span<const std::uint8_t> firmware, Milliseconds limit);

// Asks a device that runs to wait for firmware again, from its next reset on.
Status detach(UsbDevice& device, Milliseconds limit);

}  // namespace reef::driver
