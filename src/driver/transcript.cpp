// SPDX-License-Identifier: Apache-2.0
#include "driver/transcript.h"

#include <algorithm>

#include <fmt/format.h>

#include "driver/registers.h"

namespace reef::driver {
namespace {

using Kind = TranscriptEntry::Kind;

std::string hexadecimal(const std::vector<std::uint8_t>& data, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(data.size(), most); ++i) text += fmt::format("{:02x}", data[i]);
  return data.size() > most ? text + "..." : text;
}

std::string ending(const Outcome& outcome) { return outcome.ok() ? "" : fmt::format(" ({})", name_of(outcome.end)); }

std::string control_text(const TranscriptEntry& entry) {
  const SetupPacket& setup = entry.setup;
  if ((setup.type == 0xc0 || setup.type == 0x40) && setup.request <= 1) {
    std::uint64_t value = 0;
    for (std::size_t i = std::min<std::size_t>(entry.data.size(), 8); i-- > 0;) value = value << 8 | entry.data[i];
    return fmt::format("{} {} = {:#x}{}", setup.is_in() ? "read" : "write",
                       register_name(setup.value | std::uint32_t{setup.index} << 16), value, ending(entry.outcome));
  }
  return fmt::format("control {:02x} {:02x} {:04x} {:04x}, {} of {} bytes: {}{}", setup.type, setup.request,
                     setup.value, setup.index, entry.outcome.bytes, entry.asked, hexadecimal(entry.data, 16),
                     ending(entry.outcome));
}

class LoggedDevice final : public UsbDevice {
 public:
  LoggedDevice(std::unique_ptr<UsbDevice> device, Transcript& transcript)
      : device_(std::move(device)), transcript_(transcript) {}
  ~LoggedDevice() override {
    device_.reset();
    transcript_.add({.kind = Kind::kClose});
  }

  UsbSpeed speed() const override { return device_->speed(); }
  Outcome control(const SetupPacket& setup, std::span<std::uint8_t> data, Milliseconds limit) override {
    const Outcome outcome = device_->control(setup, data, limit);
    const std::size_t moved = setup.is_in() ? std::min(outcome.bytes, data.size()) : data.size();
    add({.kind = Kind::kControl, .setup = setup, .asked = data.size(), .outcome = outcome}, data.first(moved));
    return outcome;
  }
  Status claim(int interface) override { return noted(Kind::kClaim, device_->claim(interface)); }
  Status release(int interface) override { return noted(Kind::kRelease, device_->release(interface)); }
  Status reset() override { return noted(Kind::kReset, device_->reset()); }

  void submit(Transfer& transfer) override {
    if (transfer.is_in()) {
      add({.kind = Kind::kSubmitIn, .endpoint = transfer.endpoint, .asked = transfer.buffer.size()}, {});
    }
    pending_.push_back(&transfer);
    device_->submit(transfer);
    note_ended();
  }
  void wait_any(std::span<Transfer* const> transfers, Milliseconds limit) override {
    device_->wait_any(transfers, limit);
    note_ended();
  }
  void cancel(Transfer& transfer) override {
    device_->cancel(transfer);
    std::erase(pending_, &transfer);  // only what was moved is noted
  }

 private:
  void add(TranscriptEntry entry, std::span<const std::uint8_t> data) {
    const auto kept = data.first(std::min(data.size(), transcript_.most_bytes()));
    entry.data.assign(kept.begin(), kept.end());
    transcript_.add(std::move(entry));
  }
  Status noted(Kind kind, Status status) {
    const Outcome outcome = {status.ok() ? TransferEnd::kDone : TransferEnd::kFailed, 0};
    add({.kind = kind, .outcome = outcome}, {});
    return status;
  }
  void note_ended() {
    for (const Transfer* transfer : pending_) {
      if (transfer->is_pending) continue;
      const std::size_t moved = std::min(transfer->outcome.bytes, transfer->buffer.size());
      add({.kind = Kind::kTransfer,
           .endpoint = transfer->endpoint,
           .asked = transfer->buffer.size(),
           .outcome = transfer->outcome},
          transfer->buffer.first(moved));
    }
    std::erase_if(pending_, [](const Transfer* transfer) { return !transfer->is_pending; });
  }

  std::unique_ptr<UsbDevice> device_;
  Transcript& transcript_;
  std::vector<Transfer*> pending_;
};

}  // namespace

std::string TranscriptEntry::text() const {
  switch (kind) {
    case Kind::kOpen:
      return "open " + path;
    case Kind::kClose:
      return "close";
    case Kind::kClaim:
      return "claim" + ending(outcome);
    case Kind::kRelease:
      return "release" + ending(outcome);
    case Kind::kReset:
      return "reset port" + ending(outcome);
    case Kind::kControl:
      return control_text(*this);
    case Kind::kSubmitIn:
      return fmt::format("wait for {:02x}, {} bytes", endpoint, asked);
    case Kind::kTransfer:
      return fmt::format("{} {:02x}, {} of {} bytes: {}{}", (endpoint & 0x80) != 0 ? "in" : "out", endpoint,
                         outcome.bytes, asked, hexadecimal(data, 16), ending(outcome));
  }
  return "";
}

void Transcript::add(TranscriptEntry entry) {
  const std::lock_guard lock(mutex_);
  if (sink_) return sink_(entry);
  entries_.push_back(std::move(entry));
}

std::vector<TranscriptEntry> Transcript::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::string Transcript::text() const {
  std::string text;
  for (const TranscriptEntry& entry : entries()) text += entry.text() + "\n";
  return text;
}

Result<std::unique_ptr<UsbDevice>> LoggedBus::open(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(std::unique_ptr<UsbDevice> device, bus_.open(path));
  TranscriptEntry entry;
  entry.path = path;
  transcript_.add(std::move(entry));
  return std::unique_ptr<UsbDevice>(std::make_unique<LoggedDevice>(std::move(device), transcript_));
}

}  // namespace reef::driver
