// SPDX-License-Identifier: Apache-2.0
// The chip of a virtual card: registers, the instruction queue, interrupts, and a core that fetches everything by
// device addresses. Who derives from it says what is behind an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver/core_runner.h"
#include "driver/registers.h"
#include "execute/device/scalar_core.h"

namespace reef::driver {

class CardChip : public device::AddressedHost {
 public:
  explicit CardChip(int threads, const device::OtherChip* other = nullptr) : runner_(threads, other) { reset_core(); }

  // As after a reset: everything from 0x40000 on is forgotten.
  void reset_core();
  std::uint64_t read_core(std::uint32_t offset) const;
  void write_core(std::uint32_t offset, std::uint64_t value);
  // Works as far as it can.
  void work();
  // Sources of interrupts (PcieInterrupt) that have fired since the last call.
  std::uint32_t take_fired();
  void forget_fired() { fired_ = 0; }
  // It does not execute anything any more.
  void hang() { hangs_ = true; }
  void fail(const Status& status, std::uint64_t error_bits);
  // Why it has stopped; empty: it has not.
  const std::string& why_it_failed() const { return diagnosis_; }

 protected:
  // The byte at a device address, and those behind it up to the end of its page; null: nothing is mapped there, or it
  // is not this process's memory.
  virtual std::uint8_t* byte_at(std::uint64_t /*address*/) const { return nullptr; }
  // Bytes of one page, wherever they are. False: nothing is mapped there.
  virtual bool is_mapped(std::uint64_t address) const { return byte_at(address) != nullptr; }
  virtual bool read_page(std::uint64_t address, std::uint8_t* to, std::size_t bytes) const;
  virtual bool write_page(std::uint64_t address, const std::uint8_t* from, std::size_t bytes);

 private:
  void fetch_queue();
  void write_status_block();
  void fire(int interrupt, std::uint32_t control, std::uint32_t status);
  bool copy_from(std::uint64_t address, std::uint8_t* to, std::size_t bytes) const;

  Status check(std::uint64_t address, std::uint64_t bytes) const override;
  void load(std::uint64_t address, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) const override;
  void store(std::uint64_t address, const std::uint8_t* data, const std::uint8_t* known, std::size_t bytes) override;
  void interrupted() override;

  CoreRunner runner_;
  std::map<std::uint32_t, std::uint64_t> registers_;
  std::vector<std::vector<std::uint8_t>> chunks_;  // fetched, not yet executed
  std::uint32_t fired_ = 0;
  bool hangs_ = false;
  std::string diagnosis_;
};

}  // namespace reef::driver
