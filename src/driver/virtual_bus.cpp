// SPDX-License-Identifier: Apache-2.0
// The bus that virtual sticks hang on, and what goes wrong there when it is asked to.
#include <algorithm>
#include <deque>

#include "driver/virtual_stick.h"

namespace reef::driver {
namespace {

constexpr Milliseconds kShortAbsence{300}, kUnplugged{1000}, kLongAbsence{3000};
constexpr Outcome kGone = {TransferEnd::kUnplugged, 0};

// How a transfer ends that a fault concerns alone; nothing for faults that are not about that.
std::optional<TransferEnd> end_of(StickFault fault) {
  switch (fault) {
    case StickFault::kTimeout:
      return TransferEnd::kTimedOut;
    case StickFault::kStall:
      return TransferEnd::kStalled;
    case StickFault::kFail:
      return TransferEnd::kFailed;
    case StickFault::kOverflow:
      return TransferEnd::kOverflow;
    case StickFault::kCancelled:
      return TransferEnd::kCancelled;
    default:
      return std::nullopt;
  }
}

// The same bytes each time.
void fill_with_noise(std::span<std::uint8_t> bytes) {
  std::uint32_t state = 0x2545f491;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
}

}  // namespace

// An open stick.
class VirtualStickHandle final : public UsbDevice {
 public:
  VirtualStickHandle(VirtualBus& bus, std::shared_ptr<VirtualStick> stick)
      : bus_(bus), stick_(std::move(stick)), generation_(stick_->generation_) {}
  ~VirtualStickHandle() override {
    const std::lock_guard lock(stick_->mutex_);
    for (Transfer* transfer : pending_) end(*transfer, {TransferEnd::kCancelled, 0});
    if (stick_->claimed_by_ == this) stick_->claimed_by_ = nullptr;
  }

  UsbSpeed speed() const override { return stick_->options_.speed; }

  Outcome control(const SetupPacket& setup, std::span<std::uint8_t> data, Milliseconds limit) override {
    const std::lock_guard lock(stick_->mutex_);
    const std::optional<StickFault> fault = meet_fault();
    if (is_gone()) return kGone;
    if (stick_->hangs_ > 0 || is_jammed()) {
      bus_.sleep(limit);
      return {TransferEnd::kTimedOut, 0};
    }
    if (fault && end_of(*fault)) {
      if (*fault == StickFault::kTimeout) bus_.sleep(limit);
      return {*end_of(*fault), 0};
    }
    if (concerns_interface(setup) && !use_interface()) return {TransferEnd::kFailed, 0};
    if (fault && !setup.is_in() && *fault == StickFault::kLost) return {TransferEnd::kDone, data.size()};
    if (fault && *fault == StickFault::kBadDfuState && !stick_->has_firmware_) {
      stick_->dfu_state_ = 10;
      stick_->dfu_error_ = 7;
    }
    Outcome outcome = stick_->control(setup, data);
    if (fault) spoil_control(*fault, setup, data, outcome);
    return outcome;
  }

  Status claim(int interface) override {
    const std::lock_guard lock(stick_->mutex_);
    const std::optional<StickFault> fault = meet_fault();
    if (is_gone()) return transfer_error("claiming the interface", kGone);
    if (fault && *fault == StickFault::kRefused) {
      return make_error(StatusCode::kIoError, "claiming interface {} failed", interface);
    }
    if (stick_->configuration_ == 0) return make_error(StatusCode::kNotFound, "there is no interface {}", interface);
    return use_interface() ? ok_status() : in_use_error("another program");
  }
  Status release(int /*interface*/) override {
    const std::lock_guard lock(stick_->mutex_);
    (void)meet_fault();
    if (is_gone()) return transfer_error("releasing the interface", kGone);
    if (stick_->claimed_by_ == this) stick_->claimed_by_ = nullptr;
    return ok_status();
  }
  Status reset() override {
    const std::lock_guard lock(stick_->mutex_);
    const std::optional<StickFault> fault = meet_fault();
    if (is_gone()) return transfer_error("resetting the port", kGone);
    if (fault && *fault == StickFault::kRefused) {
      return make_error(StatusCode::kIoError, "resetting the port failed");
    }
    for (Transfer* transfer : pending_) end(*transfer, {TransferEnd::kCancelled, transfer->outcome.bytes});
    pending_.clear();
    has_timed_out_ = false;
    const bool was_claimed = stick_->claimed_by_ == this;
    stick_->reset_port();
    if (was_claimed && !is_gone()) stick_->claimed_by_ = this;  // libusb sees to that
    return ok_status();
  }

  void submit(Transfer& transfer) override {
    const std::lock_guard lock(stick_->mutex_);
    transfer.outcome = {};
    transfer.is_pending = true;
    transfer.of_device = nullptr;
    if (is_gone()) return end(transfer, kGone);
    if (!use_interface()) return end(transfer, {TransferEnd::kFailed, 0});
    pending_.push_back(&transfer);
    pump();
  }
  void wait_any(std::span<Transfer* const> transfers, Milliseconds limit) override {
    const std::lock_guard lock(stick_->mutex_);
    const auto has_ended = [](const Transfer* transfer) { return !transfer->is_pending; };
    pump();
    if (std::any_of(transfers.begin(), transfers.end(), has_ended)) return;
    bus_.sleep(limit);  // nothing but another call could change anything
    if (limit > Milliseconds(0)) has_timed_out_ = true;
    pump();
  }
  void cancel(Transfer& transfer) override {
    const std::lock_guard lock(stick_->mutex_);
    if (is_jammed()) stick_->hangs_ = std::max(stick_->hangs_, 1);
    std::erase(pending_, &transfer);
    if (transfer.is_pending) end(transfer, {TransferEnd::kCancelled, transfer.outcome.bytes});
  }

  // An operation begins. Faults that concern more than one transfer happen here. With the mutex held.
  std::optional<StickFault> meet_fault() {
    const std::optional<StickFault> fault = stick_->next_fault();
    if (!fault) return fault;
    switch (*fault) {
      case StickFault::kUnplug:
        stick_->lose_power();
        stick_->leave_bus(kUnplugged);
        break;
      case StickFault::kLosesFirmware:
        stick_->lose_power();
        stick_->leave_bus(Milliseconds(0));
        break;
      case StickFault::kResetsItself:
      case StickFault::kSlowReturn:
        stick_->wake_core();
        stick_->leave_bus(*fault == StickFault::kSlowReturn ? kLongAbsence : kShortAbsence);
        break;
      case StickFault::kHang:
        stick_->hangs_ = 1;
        break;
      case StickFault::kHangTwice:
        stick_->hangs_ = 2;
        break;
      case StickFault::kFatalError:
        stick_->interrupt(1);
        break;
      case StickFault::kThermalShutdown:
        stick_->interrupt(2);
        break;
      case StickFault::kPcieError:
        stick_->interrupt(4);
        break;
      case StickFault::kSelfTest:
        stick_->interrupt(8);
        break;
      case StickFault::kThermalWarning:
        stick_->interrupt(16);
        break;
      case StickFault::kCoreStops:
        stick_->core_.set_running(false);
        break;
      case StickFault::kForgetsRegisters:
        stick_->wake_core();
        break;
      default:
        break;
    }
    return fault;
  }

 private:
  // The only interface is this handle's from now on, if it is nobody else's: as in Linux, which claims it for those who
  // use its endpoints without having done so.
  bool use_interface() {
    if (stick_->configuration_ == 0) return false;
    if (stick_->claimed_by_ == nullptr) stick_->claimed_by_ = this;
    return stick_->claimed_by_ == this;
  }
  // Requests for which Linux wants the interface to be claimed. Those of vendors, registers among them, are free.
  static bool concerns_interface(const SetupPacket& setup) {
    constexpr std::uint8_t kVendor = 0x40, kTypeMask = 0x60, kRecipientMask = 0x1f, kInterface = 1, kEndpoint = 2;
    if ((setup.type & kTypeMask) == kVendor) return false;
    const int recipient = setup.type & kRecipientMask;
    return recipient == kInterface || (recipient == kEndpoint && (setup.index & 0x7f) != 0);
  }
  bool is_gone() const {
    return generation_ != stick_->generation_ || !stick_->is_present(Milliseconds(bus_.now_.load()));
  }
  // A pipe that is full and was waited for: a real stick then does not answer for its registers either.
  bool is_jammed() const {
    return has_timed_out_ && stick_->options_.is_strict &&
           std::any_of(pending_.begin(), pending_.end(), [](const Transfer* t) { return !t->is_in(); });
  }
  static void end(Transfer& transfer, Outcome outcome) {
    transfer.is_pending = false;
    transfer.outcome = outcome;
  }

  void spoil_control(StickFault fault, const SetupPacket& setup, std::span<std::uint8_t> data, Outcome& outcome) {
    const auto answer = data.first(std::min(data.size(), outcome.bytes));
    switch (fault) {
      case StickFault::kShort:
        outcome.bytes /= 2;
        break;
      case StickFault::kEmpty:
        outcome.bytes = 0;
        break;
      case StickFault::kGarbage:
        if (setup.is_in()) fill_with_noise(answer);
        break;
      case StickFault::kAllOnes:
        if (setup.is_in()) std::fill(answer.begin(), answer.end(), std::uint8_t{0xff});
        break;
      case StickFault::kAllZeros:
        if (setup.is_in()) std::fill(answer.begin(), answer.end(), std::uint8_t{0});
        break;
      case StickFault::kOtherFirmware:
        if (setup.type == 0x21 && !stick_->firmware_.empty()) stick_->firmware_.back() ^= 1;
        break;
      default:
        break;
    }
  }

  // Moves what can be moved. With the mutex held.
  void pump() {
    for (bool moved = true; moved;) {
      moved = false;
      if (is_gone()) {
        for (Transfer* transfer : pending_) end(*transfer, {TransferEnd::kUnplugged, transfer->outcome.bytes});
        pending_.clear();
        return;
      }
      if (stick_->hangs_ > 0) return;
      std::array<bool, 4> is_blocked{};  // the first of an endpoint is served before the others
      for (std::size_t i = 0; i < pending_.size() && !moved; ++i) {
        Transfer& transfer = *pending_[i];
        const std::size_t endpoint = transfer.is_in() ? transfer.endpoint & 3 : 0;
        if (is_blocked[endpoint]) continue;
        moved = transfer.is_in() ? serve_in(transfer) : serve_out(transfer);
        is_blocked[endpoint] = true;
        if (!transfer.is_pending) std::erase(pending_, &transfer);
      }
    }
  }

  bool serve_out(Transfer& transfer) {
    if (stick_->is_halted_[0]) return finish(transfer, {TransferEnd::kStalled, 0});
    std::size_t& sent = transfer.outcome.bytes;
    if (transfer.of_device != this) {  // it is served for the first time
      transfer.of_device = this;
      const std::optional<StickFault> fault = meet_fault();
      if (is_gone() || stick_->hangs_ > 0) return true;
      if (fault && end_of(*fault)) {
        if (*fault == StickFault::kStall) stick_->is_halted_[0] = true;
        return finish(transfer, {*end_of(*fault), 0});
      }
      if (fault && *fault == StickFault::kLost) return finish(transfer, {TransferEnd::kDone, transfer.buffer.size()});
      if (fault && *fault == StickFault::kEmpty) return finish(transfer, {TransferEnd::kDone, 0});
      if (fault && *fault == StickFault::kShort) {
        return finish(transfer,
                      {TransferEnd::kDone, stick_->write_bulk(transfer.buffer.first(transfer.buffer.size() / 2))});
      }
    }
    const std::size_t part = stick_->write_bulk(transfer.buffer.subspan(sent));
    sent += part;
    if (sent == transfer.buffer.size()) return finish(transfer, {TransferEnd::kDone, sent});
    return part > 0;
  }

  bool serve_in(Transfer& transfer) {
    const std::size_t endpoint = transfer.endpoint & 3;
    if (stick_->is_halted_[endpoint]) return finish(transfer, {TransferEnd::kStalled, 0});
    if (transfer.endpoint == 0x82 && repeated_event_ && repeated_event_->size() <= transfer.buffer.size()) {
      std::copy(repeated_event_->begin(), repeated_event_->end(), transfer.buffer.begin());
      repeated_event_.reset();
      return finish(transfer, {TransferEnd::kDone, 16});
    }
    const std::optional<std::size_t> found = stick_->read_bulk(transfer.endpoint, transfer.buffer);
    if (!found) return false;
    std::size_t bytes = *found;
    const std::optional<StickFault> fault = meet_fault();
    if (is_gone() || stick_->hangs_ > 0) return true;
    if (bytes > transfer.buffer.size()) return finish(transfer, {TransferEnd::kOverflow, 0});
    if (!fault) return finish(transfer, {TransferEnd::kDone, bytes});
    if (end_of(*fault)) {
      if (*fault == StickFault::kStall) stick_->is_halted_[endpoint] = true;
      return finish(transfer, {*end_of(*fault), 0});
    }
    if (*fault == StickFault::kLost) return true;
    if (*fault == StickFault::kShort) bytes /= 2;
    if (*fault == StickFault::kEmpty) bytes = 0;
    if (transfer.endpoint == 0x82) {
      if (*fault == StickFault::kWrongTag) transfer.buffer[12] ^= 1;
      if (*fault == StickFault::kGarbage) fill_with_noise(transfer.buffer.first(bytes));
      if (*fault == StickFault::kRepeatedEvent) {
        repeated_event_.emplace();
        std::copy_n(transfer.buffer.begin(), 16, repeated_event_->begin());
      }
    }
    return finish(transfer, {TransferEnd::kDone, bytes});
  }

  bool finish(Transfer& transfer, Outcome outcome) {
    end(transfer, outcome);
    return true;
  }

  VirtualBus& bus_;
  std::shared_ptr<VirtualStick> stick_;
  std::uint64_t generation_;
  std::deque<Transfer*> pending_;  // in the order in which they were submitted
  bool has_timed_out_ = false;
  std::optional<std::array<std::uint8_t, 16>> repeated_event_;
};

VirtualBus::VirtualBus(std::span<const StickOptions> sticks) {
  for (const StickOptions& options : sticks) {
    sticks_.push_back(std::make_shared<VirtualStick>(options));
    sticks_.back()->clock_ = &now_;
  }
}

Result<std::vector<UsbDeviceInfo>> VirtualBus::list() {
  std::vector<UsbDeviceInfo> devices;
  for (std::size_t i = 0; i < sticks_.size(); ++i) {
    const std::lock_guard lock(sticks_[i]->mutex_);
    if (!sticks_[i]->is_present(now())) continue;
    devices.push_back(
        {sticks_[i]->has_firmware_ ? kApplicationId : kDfuId, fmt::format("1-{}", i + 1), sticks_[i]->options_.speed});
  }
  return devices;
}

Result<std::unique_ptr<UsbDevice>> VirtualBus::open(const std::string& path) {
  for (std::size_t i = 0; i < sticks_.size(); ++i) {
    if (path != fmt::format("1-{}", i + 1)) continue;
    std::unique_lock lock(sticks_[i]->mutex_);
    if (!sticks_[i]->is_present(now())) break;
    if (!may_be_shared_ && sticks_[i]->claimed_by_ != nullptr) return in_use_error("another program");
    auto handle = std::make_unique<VirtualStickHandle>(*this, sticks_[i]);
    const std::optional<StickFault> fault = handle->meet_fault();
    lock.unlock();
    if (fault && *fault == StickFault::kRefused) {
      return make_error(StatusCode::kIoError, "opening the device at {} failed", path);
    }
    return std::unique_ptr<UsbDevice>(std::move(handle));
  }
  return make_error(StatusCode::kNotFound, "there is no device at {}", path);
}

}  // namespace reef::driver
