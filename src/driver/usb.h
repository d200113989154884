// SPDX-License-Identifier: Apache-2.0
// The driver's interface to a USB stack: find devices, open one, control transfers, bulk transfers that may be under
// way at the same time. libusb is one implementation, the virtual stick another.
//
// Every wait has a limit, and time is the bus's own: a virtual bus does not wait for real. No function throws, and none
// of a device that is gone does anything but say so.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace reef::driver {

using Milliseconds = std::chrono::milliseconds;

struct UsbId {
  std::uint16_t vendor = 0, product = 0;
  friend bool operator==(const UsbId&, const UsbId&) = default;
};
// A stick that was just plugged in waits for its firmware; with it, it shows itself as another device.
inline constexpr UsbId kDfuId = {0x1a6e, 0x089a}, kApplicationId = {0x18d1, 0x9302};

enum class UsbSpeed : std::uint8_t { kUnknown, kFull, kHigh, kSuper };

// How a transfer ended.
enum class TransferEnd : std::uint8_t {
  kDone,       // perhaps with fewer bytes than there was room for
  kTimedOut,   // some bytes may have been moved
  kStalled,    // the device refused
  kUnplugged,  // the device is gone
  kOverflow,   // the device sent more than there was room for
  kCancelled,
  kFailed,  // anything else
};
std::string_view name_of(TransferEnd end);  // "timed out"

struct Outcome {
  TransferEnd end = TransferEnd::kDone;
  std::size_t bytes = 0;
  bool ok() const { return end == TransferEnd::kDone; }
};

// An error of the operating system or the device; `what` is the subject of the sentence: "writing scu_ctrl_3".
Status transfer_error(std::string_view what, Outcome outcome);

// The device is held by somebody else, named in `holder`. Trying again does not help; a reset would end their work.
Status in_use_error(std::string_view holder);

// The first eight bytes of a control transfer, without the length.
struct SetupPacket {
  std::uint8_t type = 0, request = 0;
  std::uint16_t value = 0, index = 0;
  bool is_in() const { return (type & 0x80) != 0; }
};

// A transfer on a bulk or interrupt endpoint. It and its buffer stay where they are while it is pending.
struct Transfer {
  std::uint8_t endpoint = 0;  // with bit 7: to the host
  std::span<std::uint8_t> buffer;
  // Set by the device.
  bool is_pending = false;
  Outcome outcome;
  void* of_device = nullptr;  // whatever the device keeps with it while it is pending

  bool is_in() const { return (endpoint & 0x80) != 0; }
};

// An open device. One thread at a time. Its destructor cancels what is pending and closes it.
class UsbDevice {
 public:
  virtual ~UsbDevice() = default;

  virtual UsbSpeed speed() const = 0;
  // The length of `data` is wLength. To the host: at most so many bytes are written.
  virtual Outcome control(const SetupPacket& setup, std::span<std::uint8_t> data, Milliseconds limit) = 0;

  virtual Status claim(int interface) = 0;
  virtual Status release(int interface) = 0;
  // Resets the port. The device may come back as another one: then close it, find it again and open that.
  virtual Status reset() = 0;

  // Starts a transfer. One that cannot be started is not pending afterwards, and its outcome says why.
  virtual void submit(Transfer& transfer) = 0;
  // Until one of them is not pending any more, or the limit has passed.
  virtual void wait_any(std::span<Transfer* const> transfers, Milliseconds limit) = 0;
  // Until it is not pending any more. Bytes that were moved before count in its outcome.
  virtual void cancel(Transfer& transfer) = 0;
};

// A device that is plugged in. The path says where: it stays the same when the device comes back as another one.
struct UsbDeviceInfo {
  UsbId id;
  std::string path;  // bus and ports: "2-1.4"
  UsbSpeed speed = UsbSpeed::kUnknown;
};

class UsbBus {
 public:
  virtual ~UsbBus() = default;

  // Edge TPUs with and without firmware, in the order of their paths.
  virtual Result<std::vector<UsbDeviceInfo>> list() = 0;
  virtual Result<std::unique_ptr<UsbDevice>> open(const std::string& path) = 0;
  virtual void sleep(Milliseconds time) = 0;
};

}  // namespace reef::driver
