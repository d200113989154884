// SPDX-License-Identifier: Apache-2.0
#include "driver/stick_service.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "driver/libusb_abi.h"

namespace reef::driver {
namespace {

namespace number = libusb_number;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kSetupBytes = 8;
constexpr std::chrono::milliseconds kTick{50};
constexpr std::chrono::seconds kJammedAfter{1};

int status_of(TransferEnd end) {
  switch (end) {
    case TransferEnd::kDone:
      return number::kCompleted;
    case TransferEnd::kTimedOut:
      return number::kTimedOut;
    case TransferEnd::kStalled:
      return number::kStall;
    case TransferEnd::kUnplugged:
      return number::kGone;
    case TransferEnd::kOverflow:
      return number::kTooMuch;
    case TransferEnd::kCancelled:
      return number::kCancelled;
    case TransferEnd::kFailed:
      break;
  }
  return number::kError;
}

template <typename T>
T front_of(const std::vector<std::uint8_t>& bytes) {
  T value{};
  if (bytes.size() >= sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

void StickService::serve(const std::string& path, std::uint64_t id, std::uint64_t generation) {
  generation_ = generation;
  keep_time_();
  if (is_gone()) return reply(id, number::kNoDevice);
  auto opened = bus_.open(path);
  if (!opened.ok()) {
    return reply(id, opened.status().code() == StatusCode::kNotFound ? number::kNoDevice : number::kIo);
  }
  device_ = std::move(*opened);
  reply(id, number::kSuccess);
  std::thread reader([this] { read_messages(); });
  work();
  ::shutdown(socket_, SHUT_RDWR);  // whoever ended first, the other one ends, too
  reader.join();
  device_.reset();
}

void StickService::read_messages() {
  for (;;) {
    Message message;
    bool is_whole = serve::receive_all(socket_, &message.header, sizeof message.header) &&
                    message.header.bytes <= serve::kMostBytes;
    if (is_whole) {
      message.bytes.resize(message.header.bytes);
      is_whole = serve::receive_all(socket_, message.bytes.data(), message.bytes.size());
    }
    const std::lock_guard lock(mutex_);
    has_hung_up_ = !is_whole;
    if (is_whole) queue_.push_back(std::move(message));
    changed_.notify_one();
    if (!is_whole) return;
  }
}

void StickService::work() {
  for (;;) {
    std::optional<Message> message;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kTick, [&] { return !queue_.empty() || has_hung_up_; });
      if (!queue_.empty()) {
        message = std::move(queue_.front());
        queue_.pop_front();
      } else if (has_hung_up_) {
        return;
      }
    }
    keep_time_();
    if (message && message->header.kind == serve::Kind::kClose) {
      device_.reset();  // whoever waits for the answer may claim the interface again
      return reply(message->header.id, number::kSuccess);
    }
    if (message) {
      carry_out(*message);
    } else {
      device_->wait_any({}, Milliseconds(0));  // somebody may have pulled it out
    }
    report_ended();
  }
}

void StickService::carry_out(Message& message) {
  const std::uint64_t id = message.header.id;
  switch (message.header.kind) {
    case serve::Kind::kClaim: {
      const Status claimed = device_->claim(static_cast<int>(front_of<std::uint32_t>(message.bytes)));
      if (claimed.ok()) return reply(id, number::kSuccess);
      if (is_gone()) return reply(id, number::kNoDevice);
      return reply(id, claimed.code() == StatusCode::kNotFound ? number::kNotFound : number::kBusy);
    }
    case serve::Kind::kRelease:
      if (device_->release(static_cast<int>(front_of<std::uint32_t>(message.bytes))).ok()) {
        return reply(id, number::kSuccess);
      }
      return reply(id, number::kNoDevice);
    case serve::Kind::kReset: {
      const bool was_gone = is_gone();
      const bool is_reset = device_->reset().ok();
      report_ended();  // libusb gives transfers back before the reset returns
      // "Not found" says that the device has come back, or will, as another one.
      return reply(id, was_gone ? number::kNoDevice : is_gone() ? number::kNotFound : is_reset ? 0 : number::kIo);
    }
    case serve::Kind::kConfigure:
      if (is_gone()) return reply(id, number::kNoDevice);
      if (stick_.is_claimed()) return reply(id, number::kBusy);
      stick_.configure(front_of<std::int32_t>(message.bytes));
      return reply(id, number::kSuccess);
    case serve::Kind::kConfigured:
      return reply(id, is_gone() ? number::kNoDevice : stick_.configuration());
    case serve::Kind::kSubmit:
      return submit(id, message.bytes);
    case serve::Kind::kCancel:
      return cancel(front_of<serve::CancelRequest>(message.bytes));
    default:
      return reply(id, number::kNotSupported);
  }
}

void StickService::submit(std::uint64_t id, std::vector<std::uint8_t>& bytes) {
  const auto request = front_of<serve::SubmitRequest>(bytes);
  auto pending = std::make_unique<Pending>();
  pending->id = id;
  pending->since = SteadyClock::now();
  bytes.erase(bytes.begin(), bytes.begin() + std::min<std::ptrdiff_t>(sizeof request, std::ssize(bytes)));
  pending->buffer = std::move(bytes);
  pending->transfer.endpoint = static_cast<std::uint8_t>(request.endpoint);
  if (request.endpoint == 0) return control(std::move(pending));
  pending->buffer.resize(std::min(request.bytes, serve::kMostBytes));
  pending->transfer.buffer = pending->buffer;
  Transfer& transfer = pending->transfer;
  pending_.push_back(std::move(pending));
  device_->submit(transfer);
}

void StickService::control(std::unique_ptr<Pending> pending) {
  const std::vector<std::uint8_t>& all = pending->buffer;
  if (all.size() < kSetupBytes) return report(*pending, number::kError);
  const auto word = [&](std::size_t at) { return static_cast<std::uint16_t>(all[at] | all[at + 1] << 8); };
  const SetupPacket setup = {all[0], all[1], word(2), word(4)};
  std::vector<std::uint8_t> data(all.begin() + kSetupBytes, all.end());
  data.resize(word(6));
  notice_jam();
  pending->transfer.outcome = device_->control(setup, data, Milliseconds(0));
  pending->transfer.endpoint = setup.is_in() ? 0x80 : 0;
  pending->buffer = std::move(data);
  if (pending->transfer.outcome.end == TransferEnd::kTimedOut) {
    pending->is_held = true;
    pending_.push_back(std::move(pending));
    return;
  }
  report(*pending, status_of(pending->transfer.outcome.end));
}

void StickService::cancel(const serve::CancelRequest& request) {
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const auto& pending) { return pending->id == request.transfer; });
  if (found == pending_.end()) return;  // it has ended, and the program will hear of it
  Pending& pending = **found;
  Transfer& transfer = pending.transfer;
  int status = request.has_timed_out != 0 ? number::kTimedOut : number::kCancelled;
  if (!pending.is_held) {
    std::array<Transfer*, 1> waited = {&transfer};
    if (request.has_timed_out != 0 && !transfer.is_in()) device_->wait_any(waited, Milliseconds(1));
    if (transfer.is_pending) {
      device_->cancel(transfer);
    } else {
      status = status_of(transfer.outcome.end);
    }
  }
  report(pending, status);
  pending_.erase(found);
}

void StickService::notice_jam() {
  const auto now = SteadyClock::now();
  const bool is_full = std::any_of(pending_.begin(), pending_.end(), [&](const auto& pending) {
    return !pending->transfer.is_in() && pending->transfer.is_pending && now - pending->since > kJammedAfter;
  });
  if (is_full) device_->wait_any({}, Milliseconds(1));
}

void StickService::report_ended() {
  for (auto at = pending_.begin(); at != pending_.end();) {
    Pending& pending = **at;
    Outcome& outcome = pending.transfer.outcome;
    if (!pending.transfer.is_pending && outcome.end == TransferEnd::kTimedOut) {
      pending.is_held = !is_gone();  // until the program's own clock says so
      if (is_gone()) outcome.end = TransferEnd::kUnplugged;
    }
    if (pending.transfer.is_pending || pending.is_held) {
      ++at;
      continue;
    }
    report(pending, status_of(pending.transfer.outcome.end));
    at = pending_.erase(at);
  }
}

void StickService::report(const Pending& pending, int status) {
  const std::size_t moved = std::min(pending.transfer.outcome.bytes, pending.buffer.size());
  const serve::Ended ended{status, static_cast<std::uint32_t>(moved)};
  (void)serve::send_message(socket_, serve::Kind::kEnded, pending.id, &ended, sizeof ended, pending.buffer.data(),
                            pending.transfer.is_in() ? moved : 0);
}

void StickService::reply(std::uint64_t id, int status) {
  const std::int32_t value = status;
  (void)serve::send_message(socket_, serve::Kind::kReply, id, &value, sizeof value);
}

}  // namespace reef::driver
