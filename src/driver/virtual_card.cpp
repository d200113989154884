// SPDX-License-Identifier: Apache-2.0
#include "driver/virtual_card.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace reef::driver {
namespace {

constexpr std::uint64_t kUncorrectable = 1 << 14;

}  // namespace

std::string_view name_of(CardFault fault) {
  static constexpr std::array<std::string_view, kCardFaults> kNames = {
      "refused", "hangs", "loses pages", "link lost", "loses an interrupt", "fatal error", "forgets"};
  return kNames[reef::at(fault)];
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
    return card_.is_lost_ ? ~std::uint64_t{0} : card_.read_core(offset);
  }
  Status write(std::uint32_t offset, std::uint64_t value) override {
    const std::lock_guard lock(card_.mutex_);
    if (card_.meet_fault()) return refusal();
    card_.log_.push_back(fmt::format("write {} {:#x}", register_name(offset), value));
    if (!card_.is_lost_) card_.write_core(offset, value);
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
  Status enable_interrupts() override { return noted("interrupts"); }
  Result<std::uint32_t> wait_for_interrupts(Milliseconds limit) override {
    const std::lock_guard lock(card_.mutex_);
    if (card_.meet_fault()) return refusal();
    card_.work();
    const std::uint32_t fired = card_.take_fired();
    if (fired != 0 && !card_.is_lost_) return fired;
    card_.sleep(limit);  // nothing but another call could change anything
    return 0u;
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
  if (is_open_) return in_use_error("another program");
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
  return why_it_failed();
}

bool VirtualCard::meet_fault() {
  if (calls_++ != fault_at_) return false;
  switch (fault_) {
    case CardFault::kRefused:
      return true;
    case CardFault::kHangs:
      hang();
      break;
    case CardFault::kLosesPages:
      std::erase_if(pages_, [](const auto& page) { return page.first >= kExtendedAddress; });
      break;
    case CardFault::kLinkLost:
      is_lost_ = true;
      break;
    case CardFault::kLosesInterrupt:
      forget_fired();
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
  reset_core();
  is_lost_ = false;
}

// ---- Memory as the chip reaches it ----

std::uint8_t* VirtualCard::byte_at(std::uint64_t address) const {
  const auto page = pages_.find(address / kPageBytes * kPageBytes);
  return page == pages_.end() ? nullptr : page->second + address % kPageBytes;
}

}  // namespace reef::driver
