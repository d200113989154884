// SPDX-License-Identifier: Apache-2.0
// The Edge TPUs of a process, real and virtual, as libedgetpu shows real ones: each has a number, a selector and a
// path, and is shared by whoever opens it.
//
// Which there are: $REEF_DEVICES. "auto" (the default): the machine's real devices if it has any, else two virtual ones
// on USB and two on PCIe. "real": real ones only. A list such as "usb,usb,pci": these virtual ones. "none": none.
// Real devices are looked for again with every call; one that was found keeps its number while the process lives.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "driver/attachment.h"
#include "runtime/edge_tpu.h"
#include "runtime/real_device.h"

namespace reef::runtime {

// The process's devices; those that programs find. An error: $REEF_DEVICES cannot be understood.
Result<DeviceList> devices();

// Other devices for the process from now on, with words as in $REEF_DEVICES; those in use stay with their users.
Status set_devices(std::string_view kinds);

// All real devices that were ever seen in this process, whatever $REEF_DEVICES says.
struct RealDevices {
  std::vector<std::shared_ptr<RealDevice>> devices;
  std::vector<std::string> notes;  // why some of the machine's devices cannot be seen or used
};
RealDevices real_devices();

// Looks for real devices in this way instead of on the machine, from now on, and forgets those that were seen; for
// tests, and for programs that bring their own bus. Null: on the machine.
using Finder = driver::FoundDevices (*)();
void set_finder(Finder finder);

// "" or "auto" any, ":1" the second of all, "usb" any on USB, "usb:1" the second on USB, "pci", "pci:0", or a device's
// path. "Any" is the first. An error names those that there are.
Result<std::shared_ptr<EdgeTpu>> find_device(const DeviceList& devices, std::string_view selector);

// Finds one of the process's devices and opens it: the device is in use for as long as the result lives. "virtual" and
// "virtual:1" name virtual devices whatever $REEF_DEVICES says.
Result<std::shared_ptr<EdgeTpu>> open_device(std::string_view selector, const driver::SessionSettings& settings = {});
// The same for a device of the list.
Result<std::shared_ptr<EdgeTpu>> open_device(const std::shared_ptr<EdgeTpu>& device,
                                             const driver::SessionSettings& settings = {});

}  // namespace reef::runtime
