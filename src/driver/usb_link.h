// SPDX-License-Identifier: Apache-2.0
// A stick that is awake: bytes to it by tag, outputs and events from it.
//
// Everything for the chip goes over one endpoint, a header of 8 bytes before each piece. Three transfers to the device
// are under way at most, and reads of outputs, events and interrupts always: the chip never waits for a reader. One
// thread at a time. No error is fatal: the link is of no use afterwards and is to be thrown away.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/bring_up.h"
#include "driver/model.h"
#include "driver/register_port.h"
#include "driver/usb.h"

namespace reef::driver {

struct LinkLimits {
  Milliseconds control{6000};    // for one access to a register
  Milliseconds progress{10000};  // without any transfer coming to its end
};

// A report of the device on endpoint 0x82.
struct Event {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint8_t tag = 0;
};

class UsbLink {
 public:
  // The bus must outlive it.
  UsbLink(UsbBus& bus, std::unique_ptr<UsbDevice> device, const LinkLimits& limits);
  ~UsbLink();
  UsbLink(const UsbLink&) = delete;
  UsbLink& operator=(const UsbLink&) = delete;

  // Takes the interface, wakes the chip and starts to read.
  Status start(const BringUp& options);
  // Ends reading, sends the chip to sleep and gives the interface back.
  Status stop();

  // An error if the device has sent something that nobody waits for, or has reported an error: before a request.
  Status expect_quiet();

  // Queues bytes; waits while too many transfers are under way. The data must stay until drain().
  Status send(Tag tag, std::span<const std::uint8_t> data);
  // Until everything has been sent.
  Status drain();
  // Waits for as many bytes of output.
  Status receive(std::span<std::uint8_t> to);
  Result<Event> next_event();

  UsbDevice& device() { return *device_; }
  bool reports_all_transfers() const { return reports_all_transfers_; }
  // Warnings of the chip, in words.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

 private:
  struct Outgoing {
    std::array<std::uint8_t, 8> header;
    Transfer transfer;
  };
  struct Read {
    std::vector<std::uint8_t> buffer;
    Transfer transfer;
  };

  void post(Read& read);
  Status queue_out(std::unique_ptr<Outgoing> out);
  // Waits until a transfer has ended and deals with it.
  Status pump(std::string_view what, Milliseconds limit);
  // Deals with all that have ended. True: there was one.
  Result<bool> collect();
  Status take_event(std::span<const std::uint8_t> bytes);
  Status take_interrupt(std::span<const std::uint8_t> bytes);
  void cancel_all();

  UsbBus& bus_;
  std::unique_ptr<UsbDevice> device_;
  LinkLimits limits_;
  UsbRegisters registers_;
  Milliseconds settle_{0};
  bool reports_all_transfers_ = false;
  std::deque<std::unique_ptr<Outgoing>> outgoing_;  // in the order in which they end
  std::deque<std::unique_ptr<Read>> output_reads_;  // the same
  std::unique_ptr<Read> event_read_, interrupt_read_;
  std::deque<Event> events_;
  std::vector<std::uint8_t> received_;
  std::size_t received_from_ = 0;  // bytes of `received_` that were taken
  std::vector<std::string> warnings_;
};

}  // namespace reef::driver
