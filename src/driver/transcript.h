// SPDX-License-Identifier: Apache-2.0
// Every operation on a USB bus, in order: what tests compare with the traffic of Google's runtime, and what a person
// attaches to a report. A LoggedBus stands before any other bus and writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "driver/usb.h"

namespace reef::driver {

struct TranscriptEntry {
  enum class Kind : std::uint8_t { kOpen, kClose, kClaim, kRelease, kReset, kControl, kSubmitIn, kTransfer };
  Kind kind = Kind::kOpen;
  std::string path{};         // kOpen
  SetupPacket setup{};        // kControl
  std::uint8_t endpoint = 0;  // kSubmitIn, kTransfer
  std::size_t asked = 0;      // bytes of the buffer
  Outcome outcome{};
  std::vector<std::uint8_t> data{};  // that was moved: all of it, or the first bytes

  // One line: "write scu_ctrl_3 = 0x60c50004", "out 01, 12624 bytes: 800f004c...".
  std::string text() const;
};

// A record of operations. Any number of threads may add to it.
class Transcript {
 public:
  explicit Transcript(std::size_t most_bytes = 64) : most_bytes_(most_bytes) {}
  // Entries are not kept, but handed on, one at a time.
  explicit Transcript(std::function<void(const TranscriptEntry&)> sink, std::size_t most_bytes = 64)
      : most_bytes_(most_bytes), sink_(std::move(sink)) {}
  void add(TranscriptEntry entry);
  std::vector<TranscriptEntry> entries() const;
  std::string text() const;
  // The number of bytes that are kept of one entry's data.
  std::size_t most_bytes() const { return most_bytes_; }

 private:
  const std::size_t most_bytes_;
  const std::function<void(const TranscriptEntry&)> sink_;
  mutable std::mutex mutex_;
  std::vector<TranscriptEntry> entries_;
};

class LoggedBus final : public UsbBus {
 public:
  // Both must outlive it.
  LoggedBus(UsbBus& bus, Transcript& transcript) : bus_(bus), transcript_(transcript) {}
  Result<std::vector<UsbDeviceInfo>> list() override { return bus_.list(); }
  Result<std::unique_ptr<UsbDevice>> open(const std::string& path) override;
  void sleep(Milliseconds time) override { bus_.sleep(time); }

 private:
  UsbBus& bus_;
  Transcript& transcript_;
};

}  // namespace reef::driver
