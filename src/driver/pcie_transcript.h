// SPDX-License-Identifier: Apache-2.0
// Every call to a card, in order and in words, for whoever wants to know what a driver did: a report has them. A
// LoggedCard stands before any other card. Addresses of the host's memory are left out: they differ from run to run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "driver/pcie.h"

namespace reef::driver {

class LoggedCard final : public PcieBus {
 public:
  // One line for each call: "write instruction_queue_tail = 0x1", "map 0x8000000000000000, 4096 bytes". Called by any
  // thread.
  using Log = std::function<void(const std::string&)>;
  // The card must outlive it.
  LoggedCard(PcieBus& card, Log log) : card_(card), log_(std::move(log)) {}
  Result<std::unique_ptr<PcieDevice>> open() override;
  void sleep(Milliseconds time) override { card_.sleep(time); }

 private:
  PcieBus& card_;
  const Log log_;
};

}  // namespace reef::driver
