// SPDX-License-Identifier: Apache-2.0
// A virtual Edge TPU on USB: the virtual device behind the transfers of a real stick, with and without firmware.
// Strict: its FIFOs are as small as a stick's. Any of the faults of stick_faults.def can be made to happen at any
// operation.
//
// Its bus has its own time: a wait that nothing can end is over at once, and only the clock moves. Nothing is random.
// Every function may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/stick_core.h"
#include "driver/usb.h"

namespace reef::driver {

enum class StickFault : std::uint8_t {
#define FAULT(constant, name, meaning) constant,
#include "driver/stick_faults.def"
#undef FAULT
};
struct StickFaultInfo {
  StickFault fault;
  std::string_view name, meaning;
};
std::span<const StickFaultInfo> stick_faults();

struct StickOptions {
  bool is_strict = true;
  bool has_firmware = false;  // as if another program had used it
  bool was_put_to_sleep = false;
  UsbSpeed speed = UsbSpeed::kSuper;
  int threads = 1;  // that compute
  // A chip that is not as we believe, to see whether that is noticed; null: as we believe. It must outlive the stick.
  const device::OtherChip* other_chip = nullptr;
};

class VirtualBus;

class VirtualStick {
 public:
  explicit VirtualStick(const StickOptions& options);

  // Happens at an operation (opening, claiming, resetting, a control transfer, the end of a bulk transfer), counted
  // from 0 since the stick was made.
  void inject(StickFault fault, std::int64_t at_operation);
  std::int64_t operations() const;
  // From now on it is not on the bus, until it is plugged in again.
  void unplug();
  void plug_in();

  bool has_firmware() const;
  std::vector<std::uint8_t> firmware() const;  // that it was sent
  // How often it has left the bus: open handles of an earlier generation are of no use.
  std::uint64_t generation() const;
  bool is_on_bus() const;
  bool is_claimed() const;  // by anybody
  // The configuration that the host has chosen: 1, or 0 for none, with which there is nothing to claim.
  int configuration() const;
  void configure(int value);
  // As GET_DESCRIPTOR answers it, without being an operation; empty: it has none.
  std::vector<std::uint8_t> own_descriptor(std::uint16_t value) const;
  // Why the chip has stopped; empty: it has not.
  std::string diagnosis() const;

 private:
  friend class VirtualBus;
  friend class VirtualStickHandle;

  // All with mutex_ held.
  std::optional<StickFault> next_fault();
  void lose_power();
  // Leaves the bus and comes back: open handles are of no use any more.
  void leave_bus(Milliseconds time);
  void reset_port();
  void wake_core();
  Outcome control(const SetupPacket& setup, std::span<std::uint8_t> data);
  Outcome standard_request(const SetupPacket& setup, std::span<std::uint8_t> data);
  Outcome descriptor(std::uint16_t value, std::span<std::uint8_t> data) const;
  Outcome download(std::uint16_t block, std::span<const std::uint8_t> data);
  Outcome upload(std::uint16_t block, std::span<std::uint8_t> data) const;
  Outcome dfu_status(std::span<std::uint8_t> data) const;
  Outcome dfu_end(std::uint8_t request);
  Outcome read_register(std::uint32_t offset, std::span<std::uint8_t> data) const;
  Outcome write_register(std::uint32_t offset, std::span<const std::uint8_t> data);
  std::size_t write_bulk(std::span<const std::uint8_t> data);
  // Reads the next packet, if there is one, and returns its size. A packet larger than `to` is lost.
  std::optional<std::size_t> read_bulk(std::uint8_t endpoint, std::span<std::uint8_t> to);
  void interrupt(std::uint32_t cause);
  bool is_present(Milliseconds now) const { return is_plugged_in_ && now >= returns_at_; }

  const StickOptions options_;
  mutable std::mutex mutex_;
  const std::atomic<std::int64_t>* clock_ = nullptr;  // of the bus, in milliseconds
  StickCore core_;
  std::map<std::uint32_t, std::uint64_t> registers_;
  bool is_plugged_in_ = true;
  Milliseconds returns_at_{0};
  std::uint64_t generation_ = 0;  // of handles that are of use
  const void* claimed_by_ = nullptr;
  int configuration_ = 1;
  bool has_firmware_ = false, returns_to_dfu_ = false;
  int hangs_ = 0;                    // resets until it answers again
  std::array<bool, 4> is_halted_{};  // out, and in 1..3
  // DFU
  std::vector<std::uint8_t> firmware_;
  std::uint8_t dfu_state_ = 2, dfu_error_ = 0;
  std::uint16_t next_block_ = 0;
  bool is_firmware_complete_ = false;
  // The piece that is being sent
  std::vector<std::uint8_t> header_;
  std::size_t piece_left_ = 0;
  std::uint8_t piece_tag_ = 0;
  std::uint32_t interrupts_ = 0;  // causes that were not read yet
  std::int64_t operations_ = 0, fault_at_ = -1;
  StickFault fault_ = StickFault::kUnplug;
};

class VirtualBus final : public UsbBus {
 public:
  // One stick for each, at the ports "1-1", "1-2" and so on.
  explicit VirtualBus(std::span<const StickOptions> sticks);

  Result<std::vector<UsbDeviceInfo>> list() override;
  Result<std::unique_ptr<UsbDevice>> open(const std::string& path) override;
  void sleep(Milliseconds time) override { now_ += time.count(); }

  VirtualStick& stick(std::size_t index) { return *sticks_[index]; }
  // From now on it opens sticks as a USB stack does: also one that somebody else has claimed.
  void let_sticks_be_shared() { may_be_shared_ = true; }
  // That has passed by its own clock.
  Milliseconds now() const { return Milliseconds(now_.load()); }

 private:
  friend class VirtualStickHandle;
  std::atomic<std::int64_t> now_{0};
  std::atomic<bool> may_be_shared_{false};
  std::vector<std::shared_ptr<VirtualStick>> sticks_;
};

}  // namespace reef::driver
