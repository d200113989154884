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

class LibusbBus final : public UsbBus {
 public:
  // The table must outlive it: load_libusb()'s does. `proc` is where the system shows its processes.
  explicit LibusbBus(const LibusbApi& api, std::string proc = "/proc") : api_(api), proc_(std::move(proc)) {}
  Result<std::vector<UsbDeviceInfo>> list() override;
  Result<std::unique_ptr<UsbDevice>> open(const std::string& path) override;
  void sleep(Milliseconds time) override;

 private:
  const LibusbApi& api_;
  std::string proc_;
};

}  // namespace reef::driver
