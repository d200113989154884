// SPDX-License-Identifier: Apache-2.0
#include "driver/virtual_card.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

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

std::string_view name_of(CardFault fault) {
  static constexpr std::array<std::string_view, kCardFaults> kNames = {
      "refused", "hangs", "loses pages", "link lost", "loses an interrupt", "fatal error", "forgets"};
  return kNames[static_cast<std::size_t>(fault)];
}

// One opening of the card.
class VirtualCardDevice final : public PcieDevice {
 public:
  explicit VirtualCardDevice(VirtualCard& card) : card_(card) {}
  ~VirtualCardDevice() override {
    const std::lock_guard lock(card_.mutex_);
    card_.log_.push_back("close");
    card_.reset();  // as the kernel does
    card_.pages_.clear();
    card_.is_open_ = false;
  }

  Result<std::uint64_t> read(std::uint32_t offset) override {
    const std::lock_guard lock(card_.mutex_);
    if (card_.meet_fault()) return refusal();
    return card_.is_lost_ ? ~std::uint64_t{0} : card_.read_register(offset);
  }
  Status write(std::uint32_t offset, std::uint64_t value) override {
    const std::lock_guard lock(card_.mutex_);
    if (card_.meet_fault()) return refusal();
    card_.log_.push_back(fmt::format("write {} {:#x}", register_name(offset), value));
    if (!card_.is_lost_) card_.write_register(offset, value);
    return ok_status();
  }
  void sleep(Milliseconds time) override { card_.sleep(time); }
  Status set_performance(std::uint32_t level) override { return noted(fmt::format("performance {}", level)); }
  Status partition(std::uint64_t simple_slots) override { return noted(fmt::format("partition {}", simple_slots)); }
  Result<std::span<std::uint8_t>> coherent_memory(std::size_t bytes) override {
    REEF_RETURN_IF_ERROR(noted(fmt::format("coherent {:#x}", bytes)));
    card_.coherent_.assign(bytes, 0);
    return std::span(card_.coherent_);
  }
  Status map(std::span<std::uint8_t> memory, std::uint64_t address, DmaDirection direction) override {
    REEF_RETURN_IF_ERROR(noted(fmt::format("map {:#x} {:#x} {}", address, memory.size(), static_cast<int>(direction))));
    const std::lock_guard lock(card_.mutex_);
    if (memory.size() % kPageBytes != 0 || address % kPageBytes != 0) {
      return make_error(StatusCode::kIoError, "mapping something else than pages");
    }
    for (std::size_t at = 0; at < memory.size(); at += kPageBytes) {
      if (!card_.pages_.emplace(address + at, memory.data() + at).second) {
        return make_error(StatusCode::kIoError, "the page at {:#x} is mapped already", address + at);
      }
    }
    return ok_status();
  }
  Status unmap(std::span<std::uint8_t> memory, std::uint64_t address) override {
    REEF_RETURN_IF_ERROR(noted(fmt::format("unmap {:#x} {:#x}", address, memory.size())));
    const std::lock_guard lock(card_.mutex_);
    for (std::size_t at = 0; at < memory.size(); at += kPageBytes) card_.pages_.erase(address + at);
    return ok_status();
  }
  Status enable_interrupts() override {
    REEF_RETURN_IF_ERROR(noted("interrupts"));
    card_.are_interrupts_on_ = true;
    return ok_status();
  }
  Result<std::uint32_t> wait_for_interrupts(Milliseconds limit) override {
    const std::lock_guard lock(card_.mutex_);
    if (card_.meet_fault()) return refusal();
    card_.work();
    if (card_.fired_ == 0 || card_.is_lost_) {
      card_.sleep(limit);  // nothing but another call could change anything
      return 0u;
    }
    return std::exchange(card_.fired_, 0);
  }

 private:
  static Status refusal() { return make_error(StatusCode::kIoError, "the device refuses"); }
  Status noted(std::string call) {
    const std::lock_guard lock(card_.mutex_);
    if (card_.meet_fault()) return refusal();
    card_.log_.push_back(std::move(call));
    return ok_status();
  }

  VirtualCard& card_;
};

Result<std::unique_ptr<PcieDevice>> VirtualCard::open() {
  const std::lock_guard lock(mutex_);
  if (meet_fault()) return make_error(StatusCode::kIoError, "the device refuses");
  if (is_open_) return make_error(StatusCode::kIoError, "the device is in use by another program");
  log_.push_back("open");
  reset();
  is_open_ = true;
  return std::unique_ptr<PcieDevice>(std::make_unique<VirtualCardDevice>(*this));
}

void VirtualCard::inject(CardFault fault, std::int64_t at_call) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  fault_at_ = at_call;
}

std::int64_t VirtualCard::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

CardLog VirtualCard::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

std::size_t VirtualCard::mapped_pages() const {
  const std::lock_guard lock(mutex_);
  return pages_.size();
}

std::string VirtualCard::diagnosis() const {
  const std::lock_guard lock(mutex_);
  return diagnosis_;
}

bool VirtualCard::meet_fault() {
  if (calls_++ != fault_at_) return false;
  switch (fault_) {
    case CardFault::kRefused:
      return true;
    case CardFault::kHangs:
      hangs_ = true;
      break;
    case CardFault::kLosesPages:
      std::erase_if(pages_, [](const auto& page) { return page.first >= kExtendedAddress; });
      break;
    case CardFault::kLinkLost:
      is_lost_ = true;
      break;
    case CardFault::kLosesInterrupt:
      fired_ = 0;
      break;
    case CardFault::kFatalError:
      fail(invalid_input("made to fail"), kUncorrectable);
      break;
    case CardFault::kForgets:
      reset();
      break;
  }
  return false;
}

void VirtualCard::reset() {
  registers_ = {{reg::kQueueDescriptorSize, kEntryBytes}};
  runner_.power_cycle();
  forget_transfers();
  chunks_.clear();
  fired_ = 0;
  are_interrupts_on_ = hangs_ = is_lost_ = false;
  diagnosis_.clear();
}

// ---- The chip ----

std::uint64_t VirtualCard::read_register(std::uint32_t offset) const {
  const auto found = registers_.find(offset);
  return found == registers_.end() ? 0 : found->second;
}

void VirtualCard::write_register(std::uint32_t offset, std::uint64_t value) {
  registers_[offset] = value;
  if (offset == reg::kQueueControl) registers_[reg::kQueueStatus] = value & 1;
  if (offset == reg::kDmaPause) registers_[reg::kDmaPaused] = value & 1;
  if (offset == reg::kQueueTail) fetch_queue();
  work();
}

void VirtualCard::fetch_queue() {
  const std::uint64_t size = read_register(reg::kQueueSize), tail = read_register(reg::kQueueTail);
  if ((read_register(reg::kQueueControl) & 1) == 0 || size == 0 || tail >= size) return;
  std::uint64_t head = read_register(reg::kQueueFetchedHead);
  while (head != tail) {
    std::array<std::uint8_t, kEntryBytes> entry{};
    if (!copy_from(read_register(reg::kQueueBase) + head * kEntryBytes, entry.data(), entry.size())) {
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
    fire(static_cast<int>(PcieInterrupt::kInstructionQueue), reg::kQueueInterruptControl, 1);
  }
}

void VirtualCard::work() {
  const bool runs = std::all_of(kRunControls.begin(), kRunControls.end(),
                                [&](std::uint32_t control) { return read_register(control) == 1; });
  while (runs && !hangs_ && diagnosis_.empty()) {
    if (const Status status = runner_.advance(); !status.ok()) return fail(status, kUncorrectable);
    if (!runner_.is_free() || chunks_.empty()) return;
    const std::vector<std::uint8_t> chunk = std::move(chunks_.front());
    chunks_.erase(chunks_.begin());
    if (const Status status = runner_.start(chunk, *this); !status.ok()) return fail(status, kUncorrectable);
  }
}

void VirtualCard::fire(int interrupt, std::uint32_t control, std::uint64_t bit) {
  if (are_interrupts_on_ && (read_register(control) & bit) != 0) fired_ |= 1u << interrupt;
}

void VirtualCard::fail(const Status& status, std::uint64_t error_bits) {
  if (!diagnosis_.empty()) return;
  diagnosis_ = status.message();
  registers_[reg::kErrorStatus] |= error_bits;
  registers_[reg::kFirstErrorStatus] = error_bits;
  fire(static_cast<int>(PcieInterrupt::kFatalError), reg::kFatalControl, 1);
}

// ---- Memory as the chip reaches it ----

std::uint8_t* VirtualCard::byte_at(std::uint64_t address) const {
  const auto page = pages_.find(page_of(address));
  return page == pages_.end() ? nullptr : page->second + address % kPageBytes;
}

bool VirtualCard::copy_from(std::uint64_t address, std::uint8_t* to, std::size_t bytes) const {
  while (bytes > 0) {
    const std::size_t part = std::min<std::size_t>(bytes, kPageBytes - address % kPageBytes);
    const std::uint8_t* const from = byte_at(address);
    if (from == nullptr) return false;
    std::copy_n(from, part, to);
    address += part;
    to += part;
    bytes -= part;
  }
  return true;
}

Status VirtualCard::check(std::uint64_t address, std::uint64_t bytes) const {
  for (std::uint64_t page = page_of(address); page < address + bytes; page += kPageBytes) {
    REEF_REQUIRE(pages_.contains(page), "a transfer of {} bytes at {:#x}, which is not mapped", bytes, address);
  }
  return ok_status();
}

// A page that was unmapped in the middle of a transfer reads as nothing; the driver never does that.
void VirtualCard::load(std::uint64_t address, std::uint8_t* to, std::uint8_t* known, std::size_t bytes) const {
  const bool is_there = copy_from(address, to, bytes);
  std::fill_n(known, bytes, static_cast<std::uint8_t>(is_there ? 1 : 0));
}

void VirtualCard::store(std::uint64_t address, const std::uint8_t* data, const std::uint8_t* /*known*/,
                        std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t part = std::min<std::size_t>(bytes, kPageBytes - address % kPageBytes);
    if (std::uint8_t* const to = byte_at(address); to != nullptr) std::copy_n(data, part, to);
    address += part;
    data += part;
    bytes -= part;
  }
}

void VirtualCard::interrupted() {
  runner_.interrupted();
  const std::uint64_t count = read_register(reg::kHostInterruptCount);
  registers_[reg::kHostInterruptCount] = (count & ~std::uint64_t{0xffff}) | ((count + 1) & 0xffff);
  registers_[reg::kHostInterruptStatus] |= 1;
  fire(static_cast<int>(PcieInterrupt::kScalarCore0), reg::kHostInterruptControl, 1);
}

}  // namespace reef::driver
