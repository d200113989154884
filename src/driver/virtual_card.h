// SPDX-License-Identifier: Apache-2.0
// A virtual Edge TPU on PCIe, behind the calls that a driver makes: the chip fetches its queue, instructions and data
// by device addresses, through pages that were mapped for it, and knows nothing of the host's pointers.
//
// Faults can be made to happen at any call. Time is its own, and nothing waits for real.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/card_chip.h"
#include "driver/pcie.h"

namespace reef::driver {

enum class CardFault : std::uint8_t {
  kRefused,         // the call fails
  kHangs,           // the core does not execute anything any more, until it is opened again
  kLosesPages,      // all pages but the queue's are unmapped
  kLinkLost,        // registers read all ones, until it is opened again
  kLosesInterrupt,  // interrupts that are pending are forgotten
  kFatalError,      // the chip reports an error
  kForgets,         // the chip is as after a reset
};
inline constexpr int kCardFaults = 7;
std::string_view name_of(CardFault fault);

// One call of a driver, in words: "map 0x1000000 4096 0", "write instruction_queue_tail 0x1".
using CardLog = std::vector<std::string>;

class VirtualCard final : public PcieBus, private CardChip {
 public:
  explicit VirtualCard(int threads = 1) : CardChip(threads) {}

  Result<std::unique_ptr<PcieDevice>> open() override;
  void sleep(Milliseconds time) override { now_ += time.count(); }

  // At a call, counted from 0 since it was made.
  void inject(CardFault fault, std::int64_t at_call);
  std::int64_t calls() const;
  CardLog log() const;
  std::size_t mapped_pages() const;
  Milliseconds now() const { return Milliseconds(now_); }
  std::string diagnosis() const;

 private:
  friend class VirtualCardDevice;

  // All with mutex_ held.
  bool meet_fault();  // true: this call is refused
  void reset();
  std::uint8_t* byte_at(std::uint64_t address) const override;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint8_t*> pages_;  // by device address
  std::vector<std::uint8_t> coherent_;
  bool is_open_ = false, is_lost_ = false;
  CardLog log_;
  std::int64_t calls_ = 0, fault_at_ = -1;
  CardFault fault_ = CardFault::kRefused;
  std::atomic<Milliseconds::rep> now_{0};
};

}  // namespace reef::driver
