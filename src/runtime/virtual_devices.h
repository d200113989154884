// SPDX-License-Identifier: Apache-2.0
// Virtual Edge TPUs: the emulated chip behind the interface that all devices have.
//
// A device that nobody runs anything on costs nothing. What stays on the chip between runs follows device::Device
// (caching tokens). A child of fork() has devices of its own, as they are after a reset.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "execute/device/device.h"
#include "runtime/edge_tpu.h"
#include "runtime/per_process.h"

namespace reef::runtime {

class VirtualDevice final : public EdgeTpu {
 public:
  VirtualDevice(Connection connection, int index_of_kind);

  Connection connection() const override { return connection_; }
  bool is_virtual() const override { return true; }
  const std::string& selector() const override { return selector_; }  // "usb:1"
  const std::string& path() const override { return path_; }          // "virtual/usb/1"
  Result<Loaded> load(const darwinn::Package& package) const override;
  Result<Tensors> run(const Loaded& package, const Inputs& inputs) override;
  Use use() const override;

 private:
  struct State {
    std::mutex mutex = {};
    std::optional<device::Device> device = {};  // from the first run on
    std::int64_t runs = 0;
  };

  const Connection connection_;
  const std::string selector_, path_;
  PerProcess<State> state_;
};

// "usb,usb,pci"; "none" or "": an empty list.
Result<DeviceList> make_devices(std::string_view kinds);

// The caller's own emulated chip, for those who watch it or set its limits. One thread at a time.
std::shared_ptr<EdgeTpu> as_edge_tpu(std::shared_ptr<device::Device> chip);

}  // namespace reef::runtime
