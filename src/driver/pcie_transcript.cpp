// SPDX-License-Identifier: Apache-2.0
#include "driver/pcie_transcript.h"

#include <utility>

#include <fmt/format.h>

#include "driver/registers.h"

namespace reef::driver {
namespace {

std::string ending(const Status& status) { return status.ok() ? "" : fmt::format(" ({})", status.message()); }

class LoggedCardDevice final : public PcieDevice {
 public:
  LoggedCardDevice(std::unique_ptr<PcieDevice> device, LoggedCard::Log log)
      : device_(std::move(device)), log_(std::move(log)) {}
  ~LoggedCardDevice() override {
    device_.reset();
    log_("close");
  }

  Result<std::uint64_t> read(std::uint32_t offset) override {
    Result<std::uint64_t> value = device_->read(offset);
    log_(value.ok() ? fmt::format("read {} = {:#x}", register_name(offset), *value)
                    : fmt::format("read {}{}", register_name(offset), ending(value.status())));
    return value;
  }
  Status write(std::uint32_t offset, std::uint64_t value) override {
    return noted(fmt::format("write {} = {:#x}", register_name(offset), value), device_->write(offset, value));
  }
  void sleep(Milliseconds time) override { device_->sleep(time); }

  Status set_performance(std::uint32_t level) override {
    return noted(fmt::format("performance {}", level), device_->set_performance(level));
  }
  Status partition(std::uint64_t simple_slots) override {
    return noted(fmt::format("partition {}", simple_slots), device_->partition(simple_slots));
  }
  Result<std::span<std::uint8_t>> coherent_memory(std::size_t bytes) override {
    auto memory = device_->coherent_memory(bytes);
    log_(fmt::format("coherent memory, {} bytes{}", bytes, ending(memory.status())));
    return memory;
  }
  std::span<std::uint8_t> allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  void release(std::span<std::uint8_t> memory) override { device_->release(memory); }
  Status map(std::span<std::uint8_t> memory, std::uint64_t device_address, DmaDirection direction) override {
    return noted(
        fmt::format("map {:#x}, {} bytes, direction {}", device_address, memory.size(), static_cast<int>(direction)),
        device_->map(memory, device_address, direction));
  }
  Status unmap(std::span<std::uint8_t> memory, std::uint64_t device_address) override {
    return noted(fmt::format("unmap {:#x}, {} bytes", device_address, memory.size()),
                 device_->unmap(memory, device_address));
  }

  Status tend() override {
    Status status = device_->tend();
    if (!status.ok()) log_("look after the chip" + ending(status));
    return status;
  }
  std::vector<std::string> take_warnings() override { return device_->take_warnings(); }
  Status enable_interrupts() override { return noted("enable interrupts", device_->enable_interrupts()); }
  Result<std::uint32_t> wait_for_interrupts(Milliseconds limit) override {
    Result<std::uint32_t> fired = device_->wait_for_interrupts(limit);
    log_(fired.ok() ? fmt::format("interrupts {:#x}", *fired) : "interrupts" + ending(fired.status()));
    return fired;
  }

 private:
  Status noted(const std::string& line, Status status) {
    log_(line + ending(status));
    return status;
  }

  std::unique_ptr<PcieDevice> device_;
  const LoggedCard::Log log_;
};

}  // namespace

Result<std::unique_ptr<PcieDevice>> LoggedCard::open() {
  auto opened = card_.open();
  log_("open" + ending(opened.status()));
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<PcieDevice>(std::make_unique<LoggedCardDevice>(std::move(*opened), log_));
}

}  // namespace reef::driver
