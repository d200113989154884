// SPDX-License-Identifier: Apache-2.0
// Edge TPUs on PCIe without Google's kernel driver: over VFIO, which is part of every current kernel.
//
// This file does what gasket does in the kernel: reset, clocks, temperature, the chip's page table, routing of
// interrupts, bus mastering. Memory for the chip is one arena that is mapped once, at bus addresses below 4 GiB; making
// a buffer visible is then a matter of a few entries in the chip's own table. The chip's pages have 4 KiB, whatever the
// host's have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "driver/pcie.h"

namespace reef::driver {

// The calls of VFIO for one device, as an interface that tests can replace.
class VfioKernel {
 public:
  virtual ~VfioKernel() = default;
  // Takes the device; an error says what to do. The others may be called after it, until close().
  virtual Status open() = 0;
  virtual void close() = 0;
  // PCI configuration space.
  virtual Result<std::uint16_t> read_config(std::uint32_t offset) = 0;
  virtual Status write_config(std::uint32_t offset, std::uint16_t value) = 0;
  // BAR 2, in the register's own width.
  virtual Result<std::uint64_t> read_register(std::uint32_t offset) = 0;
  virtual Status write_register(std::uint32_t offset, std::uint64_t value) = 0;
  struct Arena {
    std::span<std::uint8_t> memory;
    std::uint64_t bus_address = 0;  // of its first byte
  };
  // Memory that the device can reach; once.
  virtual Result<Arena> map_arena(std::size_t bytes) = 0;
  // MSI-X: how many of the wanted vectors there are, at least 1. 0 vectors: off.
  virtual Result<int> set_vectors(int wanted) = 0;
  // Vectors that have fired since the last call, a bit for each; none within the limit: 0.
  virtual Result<std::uint32_t> wait_for_vectors(Milliseconds limit) = 0;
  // Resets the function as the kernel can.
  virtual Status reset_function() = 0;
  virtual void sleep(Milliseconds time) = 0;
  // A clock that only goes forward.
  virtual Milliseconds uptime() = 0;
};

struct VfioOptions {
  std::size_t arena_bytes = std::size_t{64} << 20;
  Milliseconds settle{12000};  // for a state of power to change, as gasket waits
};

class VfioBus final : public PcieBus {
 public:
  // The kernel must outlive what is opened.
  explicit VfioBus(VfioKernel& kernel, const VfioOptions& options = {}) : kernel_(kernel), options_(options) {}
  Result<std::unique_ptr<PcieDevice>> open() override;
  void sleep(Milliseconds time) override { kernel_.sleep(time); }

 private:
  VfioKernel& kernel_;
  VfioOptions options_;
};

}  // namespace reef::driver
