// SPDX-License-Identifier: Apache-2.0
#include "driver/card_chip.h"

#include <algorithm>
#include <array>
#include <utility>

#include "driver/pcie.h"

namespace reef::driver {
namespace {

constexpr std::uint64_t kPageFault = 1, kUncorrectable = 1 << 14;
constexpr std::size_t kEntryBytes = 16;
constexpr std::array kRunControls = {
    reg::kScalarCoreRun, reg::kAvDataPopRun,    reg::kParameterPopRun,  reg::kInfeedRun,        reg::kOutfeedRun,
    reg::kOpRun,         reg::kNarrowToWideRun, reg::kWideToNarrowRun,  reg::kMesh0Run,         reg::kMesh1Run,
    reg::kMesh2Run,      reg::kMesh3Run,        reg::kRingConsumer0Run, reg::kRingConsumer1Run, reg::kRingProducerRun};

std::uint64_t page_of(std::uint64_t address) { return address / kPageBytes * kPageBytes; }

}  // namespace

void CardChip::reset_core() {
  registers_ = {{reg::kQueueDescriptorSize, kEntryBytes}};
  runner_.power_cycle();
  forget_transfers();
  chunks_.clear();
  fired_ = 0;
  hangs_ = false;
  diagnosis_.clear();
}

std::uint64_t CardChip::read_core(std::uint32_t offset) const {
  const auto found = registers_.find(offset);
  return found == registers_.end() ? 0 : found->second;
}

void CardChip::write_core(std::uint32_t offset, std::uint64_t value) {
  constexpr std::array kStatuses = {reg::kQueueInterruptStatus, reg::kHostInterruptStatus, reg::kTopLevelStatus,
                                    reg::kFatalStatus};
  const bool is_status = std::find(kStatuses.begin(), kStatuses.end(), offset) != kStatuses.end();
  registers_[offset] = is_status ? registers_[offset] & value : value;  // a status is cleared by writing 0
  if (offset == reg::kQueueControl) registers_[reg::kQueueStatus] = value & 1;
  if (offset == reg::kDmaPause) registers_[reg::kDmaPaused] = value & 1;
  if (offset == reg::kQueueTail) fetch_queue();
  work();
}

void CardChip::fetch_queue() {
  const std::uint64_t size = read_core(reg::kQueueSize), tail = read_core(reg::kQueueTail);
  if ((read_core(reg::kQueueControl) & 1) == 0 || size == 0 || tail >= size) return;
  std::uint64_t head = read_core(reg::kQueueFetchedHead);
  while (head != tail) {
    std::array<std::uint8_t, kEntryBytes> entry{};
    if (!copy_from(read_core(reg::kQueueBase) + head * kEntryBytes, entry.data(), entry.size())) {
      return fail(invalid_input("the queue is not mapped"), kPageFault);
    }
    std::uint64_t address = 0, bytes = 0;
    for (std::size_t i = 8; i-- > 0;) address = address << 8 | entry[i];
    for (std::size_t i = 4; i-- > 0;) bytes = bytes << 8 | entry[8 + i];
    if (const Status status = check(address, bytes); !status.ok()) return fail(status, kPageFault);
    std::vector<std::uint8_t> chunk(bytes);
    (void)copy_from(address, chunk.data(), chunk.size());
    chunks_.push_back(std::move(chunk));
    head = (head + 1) % size;
    registers_[reg::kQueueFetchedHead] = registers_[reg::kQueueCompletedHead] = head;
    write_status_block();
    fire(static_cast<int>(PcieInterrupt::kInstructionQueue), reg::kQueueInterruptControl, reg::kQueueInterruptStatus);
  }
}

// The head and whether something is wrong, where the host asked for them. A host that maps no page for it does not want
// it.
void CardChip::write_status_block() {
  constexpr std::uint64_t kWritesStatus = 4;  // of the queue's control register
  if ((read_core(reg::kQueueControl) & kWritesStatus) == 0) return;
  std::array<std::uint8_t, 16> block{};
  const std::uint64_t head = read_core(reg::kQueueCompletedHead);
  for (std::size_t i = 0; i < 4; ++i) block[i] = static_cast<std::uint8_t>(head >> (8 * i));
  block[4] = diagnosis_.empty() ? 0 : 1;
  (void)write_page(read_core(reg::kQueueStatusBlock), block.data(), block.size());
}

void CardChip::work() {
  const bool runs = std::all_of(kRunControls.begin(), kRunControls.end(),
                                [&](std::uint32_t control) { return read_core(control) == 1; });
  while (runs && !hangs_ && diagnosis_.empty()) {
    if (const Status status = runner_.advance(); !status.ok()) return fail(status, kUncorrectable);
    if (!runner_.is_free() || chunks_.empty()) return;
    const std::vector<std::uint8_t> chunk = std::move(chunks_.front());
    chunks_.erase(chunks_.begin());
    if (const Status status = runner_.start(chunk, *this); !status.ok()) return fail(status, kUncorrectable);
  }
}

// Whether it is delivered is decided by its control register; its status is set in any case.
void CardChip::fire(int interrupt, std::uint32_t control, std::uint32_t status) {
  registers_[status] |= 1;
  if ((read_core(control) & 1) != 0) fired_ |= 1u << interrupt;
}

std::uint32_t CardChip::take_fired() { return std::exchange(fired_, 0); }

void CardChip::fail(const Status& status, std::uint64_t error_bits) {
  if (!diagnosis_.empty()) return;
  diagnosis_ = status.message();
  registers_[reg::kErrorStatus] |= error_bits;
  registers_[reg::kFirstErrorStatus] = error_bits;
  fire(static_cast<int>(PcieInterrupt::kFatalError), reg::kFatalControl, reg::kFatalStatus);
}

// ---- Memory as the chip reaches it ----

bool CardChip::read_page(std::uint64_t address, std::uint8_t* to, std::size_t bytes) const {
  const std::uint8_t* const from = byte_at(address);
  if (from != nullptr) std::copy_n(from, bytes, to);
  return from != nullptr;
}

bool CardChip::write_page(std::uint64_t address, const std::uint8_t* from, std::size_t bytes) {
  std::uint8_t* const to = byte_at(address);
  if (to != nullptr) std::copy_n(from, bytes, to);
  return to != nullptr;
}

bool CardChip::copy_from(std::uint64_t address, std::uint8_t* to, std::size_t bytes) const {
  while (bytes > 0) {
    const std::size_t part = std::min<std::size_t>(bytes, kPageBytes - address % kPageBytes);
    if (!read_page(address, to, part)) return false;
    address += part;
    to += part;
    bytes -= part;
  }
  return true;
}

Status CardChip::check(std::uint64_t address, std::uint64_t bytes) const {
  for (std::uint64_t page = page_of(address); page < address + bytes; page += kPageBytes) {
    REEF_REQUIRE(is_mapped(page), "a transfer of {} bytes at {:#x}, which is not mapped", bytes, address);
  }
  return ok_status();
}

// A page that was unmapped in the middle of a transfer reads as nothing; the driver never does that.
void CardChip::load(std::uint64_t address, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) const {
  const bool is_there = copy_from(address, to, bytes);
  std::fill_n(known, bytes, static_cast<std::uint8_t>(is_there ? 1 : 0));
}

void CardChip::store(std::uint64_t address, const std::uint8_t* data, const std::uint8_t* /*known*/,
                     std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t part = std::min<std::size_t>(bytes, kPageBytes - address % kPageBytes);
    (void)write_page(address, data, part);
    address += part;
    data += part;
    bytes -= part;
  }
}

void CardChip::interrupted() {
  runner_.interrupted();
  const std::uint64_t count = read_core(reg::kHostInterruptCount);
  registers_[reg::kHostInterruptCount] = (count & ~std::uint64_t{0xffff}) | ((count + 1) & 0xffff);
  fire(static_cast<int>(PcieInterrupt::kScalarCore0), reg::kHostInterruptControl, reg::kHostInterruptStatus);
}

}  // namespace reef::driver
