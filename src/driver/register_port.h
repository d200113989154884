// SPDX-License-Identifier: Apache-2.0
// Access to the chip's registers, however it is connected. Offsets are those of registers.def; a register's width
// follows from its offset.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "driver/registers.h"
#include "driver/usb.h"

namespace reef::driver {

class RegisterPort {
 public:
  virtual ~RegisterPort() = default;
  virtual Result<std::uint64_t> read(std::uint32_t offset) = 0;
  virtual Status write(std::uint32_t offset, std::uint64_t value) = 0;
  virtual void sleep(Milliseconds time) = 0;

  // Reads, changes some bits, writes.
  Status change(const Field& field, std::uint64_t value);
  // Reads until the field has the value. The limit counts the pauses between reads; a read that fails ends the wait.
  Status wait_for(const Field& field, std::uint64_t value, Milliseconds limit);
};

// All bits of a register as one field.
constexpr Field whole(std::uint32_t offset) { return {offset, 0, register_bits(offset)}; }

// Registers over USB: vendor requests on endpoint 0.
class UsbRegisters final : public RegisterPort {
 public:
  // Both must outlive this.
  UsbRegisters(UsbBus& bus, UsbDevice& device, Milliseconds limit) : bus_(bus), device_(device), limit_(limit) {}
  Result<std::uint64_t> read(std::uint32_t offset) override;
  Status write(std::uint32_t offset, std::uint64_t value) override;
  void sleep(Milliseconds time) override { bus_.sleep(time); }

 private:
  UsbBus& bus_;
  UsbDevice& device_;
  Milliseconds limit_;
};

}  // namespace reef::driver
