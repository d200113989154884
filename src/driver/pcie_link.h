// SPDX-License-Identifier: Apache-2.0
// A card that is open and started: programs go into the queue of its chip one behind the other, and their outputs come
// back in the same order.
//
// A program that was launched owns the memory that the chip reaches for it. It is over when its interrupt has been
// counted and the queue's head has passed its entries; only then is the memory unmapped. As Google's runtime does, each
// program is taken to ask for one interrupt, at its end.
//
// One thread at a time, except for wait(). No error is fatal: call halt() and throw the link away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/bring_up.h"
#include "driver/pcie.h"
#include "formats/darwinn/package.h"

namespace reef::driver {

class PcieLink {
 public:
  using Tensors = std::vector<std::vector<std::uint8_t>>;

  // `settle`: for a register to follow.
  PcieLink(std::unique_ptr<PcieDevice> device, Milliseconds settle);
  ~PcieLink();
  PcieLink(const PcieLink&) = delete;
  PcieLink& operator=(const PcieLink&) = delete;

  Status start(Clock clock);
  // Only when no program is under way.
  Status stop();
  // Halts a chip that does not do what it should: it must not reach memory that is about to be freed.
  void halt();

  // Looks after the chip; before a program.
  Status tend() { return device_->tend(); }
  std::vector<std::string> take_warnings() { return device_->take_warnings(); }

  // Maps everything that the program addresses and puts its instructions into the queue. kResourceExhausted: there is
  // no memory, or no room in the queue; nothing was launched.
  Status launch(const darwinn::Executable& executable, const Tensors& inputs);
  // A program of more chunks can never be launched.
  static constexpr std::size_t kMostChunks = 255;
  std::size_t under_way() const { return programs_.size(); }

  // Interrupts since the last call; none within the limit: 0. Beside calls of other threads, itself by one.
  Result<std::uint32_t> wait(Milliseconds limit) { return device_->wait_for_interrupts(limit); }
  // Handles these interrupts: returns the outputs, as the chip wrote them, of finished programs, oldest first.
  Result<std::vector<Tensors>> collect(std::uint32_t interrupts);
  // An error if the chip reports one.
  Status check_fatal_error();

 private:
  class Pages;  // memory of whole pages, mapped for the time of a program
  struct Program {
    std::vector<std::unique_ptr<Pages>> memory;
    std::vector<Pages*> outputs;  // of `memory`
    std::size_t entries = 0;      // of the queue
  };

  Status start_queue(Clock clock);
  bool has_room(std::size_t chunks) const;
  Result<Pages*> add(Program& program, std::unique_ptr<Pages> pages, DmaDirection direction);
  Status add_buffers(Program& program, const darwinn::Executable& executable, const Tensors& inputs,
                     std::vector<std::uint64_t>& addresses);
  Status enqueue(const Pages& instructions);
  Result<std::vector<Tensors>> take_ended();
  Result<Tensors> outputs_of(Program& program);

  const std::unique_ptr<PcieDevice> device_;
  const Milliseconds settle_;
  std::span<std::uint8_t> queue_memory_;  // the queue's page, then the status block's
  std::uint64_t next_address_ = kExtendedAddress;
  std::uint32_t tail_ = 0, head_ = 0;  // places in the queue: of the next entry, and of the oldest program's first
  std::uint16_t counted_ = 0;          // interrupts of the scalar core, as the chip counts them
  std::size_t ended_ = 0;              // programs whose interrupt was counted and that are still here
  std::deque<Program> programs_;       // launched, oldest first
};

}  // namespace reef::driver
