// SPDX-License-Identifier: Apache-2.0
// The virtual Edge TPUs of a process, as libedgetpu shows real ones: so many on USB, so many on PCIe, each found by a
// selector, each shared by whoever opens it.
//
// How many there are: $REEF_DEVICES, a list of "usb" and "pci" such as "usb,usb,pci" ("none": no device at all), else
// two of each. A device that nobody runs anything on costs nothing. Safe for any number of threads: a device works
// for one caller at a time, the others wait. What stays on the chip between runs follows device::Device (caching
// tokens). A child of fork() has devices of its own, as they are after a reset, whatever the parent's do at that
// moment.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "execute/device/device.h"
#include "runtime/edge_tpu_call.h"

namespace reef::runtime {

enum class Connection : std::uint8_t { kPci = 0, kUsb = 1 };  // numbers as in libedgetpu

std::string_view connection_name(Connection connection);  // "usb"

class VirtualDevice {
 public:
  VirtualDevice(Connection connection, int index, int index_of_kind);
  ~VirtualDevice();
  VirtualDevice(const VirtualDevice&) = delete;
  VirtualDevice& operator=(const VirtualDevice&) = delete;

  Connection connection() const { return connection_; }
  int index() const { return index_; }                       // among all
  const std::string& selector() const { return selector_; }  // "usb:1"
  const std::string& path() const { return path_; }          // "virtual/usb/1"

  Status run(const EdgeTpuCall& call, std::span<std::byte* const> inputs, std::span<std::byte* const> outputs);

  struct Use {
    std::int64_t runs = 0;             // that ended well
    std::int64_t parameter_loads = 0;  // parameter-caching programs that ran
  };
  Use use() const;

 private:
  const Connection connection_;
  const int index_;
  const std::string selector_, path_;
  struct State {
    std::uint32_t generation;  // fork_generation() of the process that it belongs to
    std::mutex mutex = {};
    std::optional<device::Device> device = {};  // from the first run on
    std::int64_t runs = 0;
  };

  // This process's. What a parent process left is neither locked nor destroyed: a thread that does not exist here may
  // have been in the middle of it.
  State& state() const;

  mutable std::atomic<State*> state_;
};

using DeviceList = std::vector<std::shared_ptr<VirtualDevice>>;

// "usb,usb,pci"; "none" or "": an empty list.
Result<DeviceList> make_devices(std::string_view kinds);

// The process's devices; made when first asked for. An error: $REEF_DEVICES cannot be understood.
Result<DeviceList> virtual_devices();

// Replaces the process's devices from now on; those in use stay with their users.
Status set_virtual_devices(std::string_view kinds);

// "" any, ":1" the second of all, "usb" any on USB, "usb:1" the second on USB, "pci", "pci:0", or a device's path.
// "Any" is the first.
Result<std::shared_ptr<VirtualDevice>> find_device(const DeviceList& devices, std::string_view selector);

}  // namespace reef::runtime
