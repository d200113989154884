// SPDX-License-Identifier: Apache-2.0
#include "driver/usb_link.h"

#include <algorithm>

namespace reef::driver {
namespace {

constexpr int kInterface = 0;
constexpr std::uint8_t kOut = 0x01, kOutputIn = 0x81, kEventIn = 0x82, kInterruptIn = 0x83;
constexpr std::size_t kEventBytes = 16, kInterruptBytes = 4;
constexpr std::size_t kMostInFlight = 3;           // transfers to the device
constexpr std::size_t kMostPerTransfer = 1 << 20;  // bytes
constexpr std::size_t kOutputReads = 32;
constexpr std::uint8_t kTagMask = 0x0f;

// Bits of what comes on endpoint 0x83.
constexpr std::uint32_t kFatalError = 1, kThermalShutdown = 2, kPcieError = 4, kSelfTest = 8, kThermalWarning = 16;

template <typename T>
T little_endian(std::span<const std::uint8_t> bytes) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8 | bytes[i]);
  return value;
}

}  // namespace

UsbLink::UsbLink(UsbBus& bus, std::unique_ptr<UsbDevice> device, const LinkLimits& limits)
    : bus_(bus), device_(std::move(device)), limits_(limits), registers_(bus, *device_, limits.control) {}

UsbLink::~UsbLink() { cancel_all(); }

Status UsbLink::start(const BringUp& options) {
  REEF_RETURN_IF_ERROR(device_->claim(kInterface));
  REEF_RETURN_IF_ERROR(wake_up_usb(registers_, options));
  settle_ = options.settle;
  reports_all_transfers_ = options.report_all_transfers;
  const auto posted = [&](std::uint8_t endpoint, std::size_t bytes) {
    auto read = std::make_unique<Read>();
    read->buffer.resize(bytes);
    read->transfer.endpoint = endpoint;
    read->transfer.buffer = read->buffer;
    post(*read);
    return read;
  };
  event_read_ = posted(kEventIn, kEventBytes);
  interrupt_read_ = posted(kInterruptIn, kInterruptBytes);
  for (std::size_t i = 0; i < kOutputReads; ++i) output_reads_.push_back(posted(kOutputIn, options.output_chunk));
  return ok_status();
}

void UsbLink::post(Read& read) { device_->submit(read.transfer); }

void UsbLink::cancel_all() {
  const auto cancel = [&](auto& item) {
    if (item != nullptr && item->transfer.is_pending) device_->cancel(item->transfer);
  };
  for (auto& out : outgoing_) cancel(out);
  for (auto& read : output_reads_) cancel(read);
  cancel(event_read_);
  cancel(interrupt_read_);
  outgoing_.clear();
  output_reads_.clear();
  event_read_.reset();
  interrupt_read_.reset();
}

Status UsbLink::stop() {
  cancel_all();
  REEF_RETURN_IF_ERROR(put_to_sleep_usb(registers_, settle_));
  return device_->release(kInterface);
}

Status UsbLink::take_event(std::span<const std::uint8_t> bytes) {
  if (bytes.size() != kEventBytes) {
    return make_error(StatusCode::kIoError, "the device sent an event of {} bytes", bytes.size());
  }
  events_.push_back({little_endian<std::uint64_t>(bytes), little_endian<std::uint32_t>(bytes.subspan(8)),
                     static_cast<std::uint8_t>(bytes[12] & kTagMask)});
  return ok_status();
}

Status UsbLink::take_interrupt(std::span<const std::uint8_t> bytes) {
  if (bytes.size() != kInterruptBytes) {
    return make_error(StatusCode::kIoError, "the device sent an interrupt of {} bytes", bytes.size());
  }
  const auto causes = little_endian<std::uint32_t>(bytes);
  if ((causes & kFatalError) != 0) return fatal_error_usb(registers_);
  if ((causes & kThermalShutdown) != 0) {
    return make_error(StatusCode::kIoError, "the device is too hot and has shut down: let it cool, or run it slower");
  }
  if ((causes & (kPcieError | kSelfTest)) != 0) {
    return make_error(StatusCode::kIoError, "the device reports an error of its own: interrupt {:#x}", causes);
  }
  if ((causes & kThermalWarning) != 0) warnings_.emplace_back("the device is hot");
  return ok_status();
}

Result<bool> UsbLink::collect() {
  bool found = false;
  // Any end but a good one makes the link useless.
  const auto ended = [&](Read& read, std::string_view what) -> Result<bool> {
    if (read.transfer.is_pending) return false;
    if (!read.transfer.outcome.ok()) return transfer_error(what, read.transfer.outcome);
    found = true;
    return true;
  };
  const auto bytes_of = [](const Read& read) { return std::span(read.buffer).first(read.transfer.outcome.bytes); };
  REEF_ASSIGN_OR_RETURN(const bool has_interrupt, ended(*interrupt_read_, "reading interrupts"));
  if (has_interrupt) {
    REEF_RETURN_IF_ERROR(take_interrupt(bytes_of(*interrupt_read_)));
    post(*interrupt_read_);
  }
  REEF_ASSIGN_OR_RETURN(const bool has_event, ended(*event_read_, "reading events"));
  if (has_event) {
    REEF_RETURN_IF_ERROR(take_event(bytes_of(*event_read_)));
    post(*event_read_);
  }
  while (!output_reads_.front()->transfer.is_pending) {
    REEF_RETURN_IF_ERROR(ended(*output_reads_.front(), "reading output").status());
    std::unique_ptr<Read> read = std::move(output_reads_.front());
    output_reads_.pop_front();
    const auto bytes = bytes_of(*read);
    received_.insert(received_.end(), bytes.begin(), bytes.end());
    post(*read);
    output_reads_.push_back(std::move(read));
  }
  while (!outgoing_.empty() && !outgoing_.front()->transfer.is_pending) {
    const Transfer& transfer = outgoing_.front()->transfer;
    if (!transfer.outcome.ok() || transfer.outcome.bytes != transfer.buffer.size()) {
      return transfer_error(fmt::format("sending {} bytes", transfer.buffer.size()), transfer.outcome);
    }
    outgoing_.pop_front();
    found = true;
  }
  return found;
}

Status UsbLink::pump(std::string_view what, Milliseconds limit) {
  if (event_read_ == nullptr) return internal_error("the link was not started");
  REEF_ASSIGN_OR_RETURN(const bool found, collect());
  if (found) return ok_status();
  std::vector<Transfer*> waiting = {&event_read_->transfer, &interrupt_read_->transfer,
                                    &output_reads_.front()->transfer};
  if (!outgoing_.empty()) waiting.push_back(&outgoing_.front()->transfer);
  device_->wait_any(waiting, limit);
  REEF_ASSIGN_OR_RETURN(const bool has_ended, collect());
  if (has_ended) return ok_status();
  return make_error(StatusCode::kIoError, "{}: the device does nothing for {} ms", what, limit.count());
}

Status UsbLink::expect_quiet() {
  if (event_read_ == nullptr) return internal_error("the link was not started");
  for (;;) {
    const std::array<Transfer*, 3> reads = {&event_read_->transfer, &interrupt_read_->transfer,
                                            &output_reads_.front()->transfer};
    device_->wait_any(reads, Milliseconds(0));
    REEF_ASSIGN_OR_RETURN(const bool found, collect());
    if (!found) break;
  }
  if (events_.empty() && received_from_ == received_.size()) return ok_status();
  return make_error(StatusCode::kIoError, "the device sent {} events and {} bytes that nobody waits for",
                    events_.size(), received_.size() - received_from_);
}

Status UsbLink::queue_out(std::unique_ptr<Outgoing> out) {
  while (outgoing_.size() >= kMostInFlight) REEF_RETURN_IF_ERROR(pump("sending", limits_.progress));
  out->transfer.endpoint = kOut;
  outgoing_.push_back(std::move(out));
  device_->submit(outgoing_.back()->transfer);
  return ok_status();
}

Status UsbLink::send(Tag tag, std::span<const std::uint8_t> data) {
  auto header = std::make_unique<Outgoing>();
  header->header = {};
  for (std::size_t i = 0; i < 4; ++i) header->header[i] = static_cast<std::uint8_t>(data.size() >> (8 * i));
  header->header[4] = static_cast<std::uint8_t>(tag);
  header->transfer.buffer = header->header;
  REEF_RETURN_IF_ERROR(queue_out(std::move(header)));
  for (std::size_t at = 0; at < data.size(); at += kMostPerTransfer) {
    auto part = std::make_unique<Outgoing>();
    const auto bytes = data.subspan(at, std::min(kMostPerTransfer, data.size() - at));
    // A transfer to the device only reads its buffer; the type serves both directions.
    part->transfer.buffer = {const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    REEF_RETURN_IF_ERROR(queue_out(std::move(part)));
  }
  return ok_status();
}

Status UsbLink::drain() {
  while (!outgoing_.empty()) REEF_RETURN_IF_ERROR(pump("sending", limits_.progress));
  return ok_status();
}

Status UsbLink::receive(std::span<std::uint8_t> to) {
  while (received_.size() - received_from_ < to.size()) {
    REEF_RETURN_IF_ERROR(pump("waiting for output", limits_.progress));
  }
  std::copy_n(received_.begin() + static_cast<std::ptrdiff_t>(received_from_), to.size(), to.begin());
  received_from_ += to.size();
  if (received_from_ == received_.size()) {
    received_.clear();
    received_from_ = 0;
  }
  return ok_status();
}

Result<Event> UsbLink::next_event() {
  while (events_.empty()) REEF_RETURN_IF_ERROR(pump("waiting for the end of the program", limits_.progress));
  const Event event = events_.front();
  events_.pop_front();
  return event;
}

}  // namespace reef::driver
