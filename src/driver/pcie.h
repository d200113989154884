// SPDX-License-Identifier: Apache-2.0
// The driver's interface to a PCIe device and the kernel: registers, memory that the chip can reach, interrupts.
// /dev/apex_N is one implementation; a card in software is another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "driver/register_port.h"

namespace reef::driver {

inline constexpr std::size_t kPageBytes = 4096;  // of the chip, whatever the host's are

constexpr std::size_t in_pages(std::size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// The chip translates two kinds of addresses: the lowest pages are looked up in its own table, those with bit 63 in
// tables in host memory. The first are for the queue and its status block.
inline constexpr std::uint64_t kSimpleAddress = 0x1000000, kExtendedAddress = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kExtendedBytes = std::uint64_t{1} << 32;

// Sources of interrupts, as gasket numbers them.
enum class PcieInterrupt : std::uint8_t { kInstructionQueue = 0, kScalarCore0 = 4, kTopLevel0 = 8, kFatalError = 12 };
inline constexpr int kPcieInterrupts = 13;

enum class DmaDirection : std::uint8_t { kBoth = 0, kToDevice = 1, kFromDevice = 2 };

// An open device, ready for its core to be started. One thread at a time; another may be in wait_for_interrupts().
class PcieDevice : public RegisterPort {
 public:
  // The core's clock; 0..3 as Clock. Until it is closed, if nothing gets too hot.
  virtual Status set_performance(std::uint32_t level) = 0;
  // Splits the chip's page table: so many simple slots, the others are extended.
  virtual Status partition(std::uint64_t simple_slots) = 0;
  // Memory that chip and host may use at the same time, for the life of the device; once. Filled with zeros.
  virtual Result<std::span<std::uint8_t>> coherent_memory(std::size_t bytes) = 0;

  // Whole pages of host memory that may be mapped, filled with zeros; empty: there are none left.
  virtual std::span<std::uint8_t> allocate(std::size_t bytes);
  virtual void release(std::span<std::uint8_t> memory);
  // Makes whole pages of host memory visible to the chip. Both addresses are those of a page.
  virtual Status map(std::span<std::uint8_t> memory, std::uint64_t device_address, DmaDirection direction) = 0;
  virtual Status unmap(std::span<std::uint8_t> memory, std::uint64_t device_address) = 0;

  // Looks after the chip before a program runs: its temperature, where no kernel driver watches it. An error: the
  // device is lost.
  virtual Status tend() { return ok_status(); }
  // Returns, in words, what tend() has done since the last call.
  virtual std::vector<std::string> take_warnings() { return {}; }

  // Interrupts are delivered from now on.
  virtual Status enable_interrupts() = 0;
  // Bits of interrupts since the last call. None within the limit: 0.
  virtual Result<std::uint32_t> wait_for_interrupts(Milliseconds limit) = 0;
};

// Opens the device; again after a failure.
class PcieBus {
 public:
  virtual ~PcieBus() = default;
  virtual Result<std::unique_ptr<PcieDevice>> open() = 0;
  virtual void sleep(Milliseconds time) = 0;
};

}  // namespace reef::driver
