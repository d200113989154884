// SPDX-License-Identifier: Apache-2.0
// Sticks on the machine's own USB, by libusb.
//
// Every open device has a library context of its own: its transfers end only in the thread that waits for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/libusb_api.h"
#include "driver/usb.h"

namespace reef::driver {

// Where devices have their files, "/dev/bus/usb". Programs under `reef virtual-usb` have a folder of their own for
// that.
std::string usb_device_files();

class LibusbBus final : public UsbBus {
 public:
  // The table must outlive it: load_libusb()'s does. `proc` is where the system shows its processes, `devices` where it
  // has a file for each device, by which the process that holds one is found.
  explicit LibusbBus(const LibusbApi& api, std::string proc = "/proc", std::string devices = usb_device_files())
      : api_(api), proc_(std::move(proc)), devices_(std::move(devices)) {}
  Result<std::vector<UsbDeviceInfo>> list() override;
  Result<std::unique_ptr<UsbDevice>> open(const std::string& path) override;
  void sleep(Milliseconds time) override;

 private:
  const LibusbApi& api_;
  std::string proc_, devices_;
};

}  // namespace reef::driver
