// SPDX-License-Identifier: Apache-2.0
// An Edge TPU as everything above it sees one, virtual or real: load a package, give it tensors, take tensors.
//
// Whoever runs models takes a shared_ptr<EdgeTpu> and does not ask what stands behind it (virtual_devices.h,
// real_device.h; devices.h finds one by its name). Any number of threads and interpreters may share one: it works for
// one after the other. What stays on the chip between runs follows caching tokens (host/parameter_cache.h). A child of
// fork() has devices of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::runtime {

enum class Connection : std::uint8_t { kPci = 0, kUsb = 1 };  // numbers as in libedgetpu

std::string_view connection_name(Connection connection);  // "usb"

class EdgeTpu {
 public:
  using Tensors = std::vector<std::vector<std::uint8_t>>;
  using Inputs = std::vector<std::span<const std::uint8_t>>;
  // A package that this device made ready; only this device, or another of its kind, runs it.
  using Loaded = std::shared_ptr<const void>;

  virtual ~EdgeTpu() = default;

  virtual Connection connection() const = 0;
  virtual bool is_virtual() const = 0;
  virtual const std::string& selector() const = 0;  // "usb:1": the second on USB among the process's devices
  virtual const std::string& path() const = 0;      // "virtual/usb/1", "/sys/bus/usb/devices/2-1.4", "/dev/apex_0"

  // Refuses what this device cannot execute, with the reason.
  virtual Result<Loaded> load(const darwinn::Package& package) const = 0;
  // Tensors as TFLite holds them, in the order of the layers. Runs the parameter-caching program first where needed.
  virtual Result<Tensors> run(const Loaded& package, const Inputs& inputs) = 0;

  struct Use {
    std::int64_t runs = 0;             // that ended well
    std::int64_t parameter_loads = 0;  // parameter-caching programs that ran
  };
  virtual Use use() const = 0;
  // Returns sentences about faults that were mended since the last call.
  virtual std::vector<std::string> take_notes() { return {}; }

 protected:
  EdgeTpu() = default;
  EdgeTpu(const EdgeTpu&) = delete;
  EdgeTpu& operator=(const EdgeTpu&) = delete;
};

using DeviceList = std::vector<std::shared_ptr<EdgeTpu>>;

// "virtual Edge TPU usb:0", "Edge TPU usb:0 (/sys/bus/usb/devices/2-1.4)".
std::string describe(const EdgeTpu& device);

}  // namespace reef::runtime
