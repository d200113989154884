// SPDX-License-Identifier: Apache-2.0
#include "driver/libusb_bus.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "driver/holders.h"
#include "driver/serve_protocol.h"

namespace reef::driver {
namespace {

namespace number = libusb_number;
using SteadyClock = std::chrono::steady_clock;

// For a transfer that was cancelled to come to its end. The system answers at once; this is for one that does not.
constexpr Milliseconds kCancelLimit{5000};
constexpr int kLibusbBusInterface = 0;  // the only one, with firmware and without

TransferEnd end_of_error(int error) {
  switch (error) {
    case number::kTimeout:
      return TransferEnd::kTimedOut;
    case number::kPipe:
      return TransferEnd::kStalled;
    case number::kNoDevice:
    case number::kNotFound:
      return TransferEnd::kUnplugged;
    case number::kOverflow:
      return TransferEnd::kOverflow;
    default:
      return TransferEnd::kFailed;
  }
}

TransferEnd end_of_status(int status) {
  switch (status) {
    case number::kCompleted:
      return TransferEnd::kDone;
    case number::kTimedOut:
      return TransferEnd::kTimedOut;
    case number::kCancelled:
      return TransferEnd::kCancelled;
    case number::kStall:
      return TransferEnd::kStalled;
    case number::kGone:
      return TransferEnd::kUnplugged;
    case number::kTooMuch:
      return TransferEnd::kOverflow;
    default:
      return TransferEnd::kFailed;
  }
}

UsbId id_of(const LibusbDeviceDescriptor& descriptor) { return {descriptor.vendor, descriptor.product}; }

// A library context, for as long as something of it is in use.
class Context {
 public:
  static Result<std::shared_ptr<Context>> create(const LibusbApi& api) {
    libusb_context* context = nullptr;
    if (const int error = api.init(&context); error != number::kSuccess) {
      return make_error(StatusCode::kIoError, "libusb cannot start (error {}): is /dev/bus/usb there?", error);
    }
    return std::shared_ptr<Context>(new Context(api, context));
  }
  ~Context() { api_.exit(context_); }
  libusb_context* get() const { return context_; }

 private:
  Context(const LibusbApi& api, libusb_context* context) : api_(api), context_(context) {}
  const LibusbApi& api_;
  libusb_context* context_;
};

std::string path_of(const LibusbApi& api, libusb_device* device) {
  std::array<std::uint8_t, 8> ports{};
  const int count = std::clamp(api.get_port_numbers(device, ports.data(), static_cast<int>(ports.size())), 0, 8);
  std::string path = fmt::format("{}", api.get_bus_number(device));
  for (int i = 0; i < count; ++i) path += fmt::format("{}{}", i == 0 ? '-' : '.', ports[at(i)]);
  return path;
}

// Calls visit(device, descriptor, path) for every Edge TPU until it returns false.
template <typename Visit>
Status for_each_edge_tpu(const LibusbApi& api, libusb_context* context, const Visit& visit) {
  libusb_device** devices = nullptr;
  const ssize_t count = api.get_device_list(context, &devices);
  if (count < 0) return make_error(StatusCode::kIoError, "libusb cannot list devices (error {})", count);
  for (ssize_t i = 0; i < count; ++i) {
    LibusbDeviceDescriptor descriptor{};
    if (api.get_device_descriptor(devices[i], &descriptor) != number::kSuccess) continue;
    if (id_of(descriptor) != kDfuId && id_of(descriptor) != kApplicationId) continue;
    if (!visit(devices[i], descriptor, path_of(api, devices[i]))) break;
  }
  api.free_device_list(devices, 1);
  return ok_status();
}

// A transfer as the library has it. The library writes to a buffer of ours: should a cancelled transfer never end, it
// and its buffer are left to it.
struct Pending {
  const LibusbApi* api = nullptr;
  Transfer* transfer = nullptr;  // null: nobody waits for it any more
  LibusbTransfer* raw = nullptr;
  std::vector<std::uint8_t> buffer;  // of a read; what is sent is copied by the system when it is submitted
};

class LibusbDevice final : public UsbDevice {
 public:
  LibusbDevice(const LibusbApi& api, std::shared_ptr<Context> context, libusb_device_handle* handle, UsbSpeed speed,
               std::string file, std::string proc)
      : api_(api),
        context_(std::move(context)),
        handle_(handle),
        speed_(speed),
        file_(std::move(file)),
        proc_(std::move(proc)) {}
  ~LibusbDevice() override {
    while (!pending_.empty()) cancel(*pending_.back());
    api_.close(handle_);
  }

  UsbSpeed speed() const override { return speed_; }

  Outcome control(const SetupPacket& setup, std::span<std::uint8_t> data, Milliseconds limit) override {
    const int moved = api_.control_transfer(handle_, setup.type, setup.request, setup.value, setup.index, data.data(),
                                            static_cast<std::uint16_t>(data.size()), milliseconds(limit));
    if (moved < 0) return {end_of_error(moved), 0};
    return {TransferEnd::kDone, static_cast<std::size_t>(moved)};
  }

  Status claim(int interface) override {
    const int error = api_.claim_interface(handle_, interface);
    if (error == number::kSuccess) return ok_status();
    if (error == number::kBusy) {
      const std::string holders = holders_of(proc_, file_);
      return in_use_error(holders.empty() ? "another program, or by this one in another way" : holders);
    }
    return transfer_error("claiming the interface", {end_of_error(error), 0});
  }
  Status release(int interface) override {
    const int error = api_.release_interface(handle_, interface);
    return error == number::kSuccess ? ok_status()
                                     : transfer_error("releasing the interface", {end_of_error(error), 0});
  }
  // "Not found" says that the device came back as another one: what was wanted.
  Status reset() override {
    const int error = api_.reset_device(handle_);
    if (error == number::kSuccess || error == number::kNotFound) return ok_status();
    return transfer_error("resetting the port", {end_of_error(error), 0});
  }

  void submit(Transfer& transfer) override {
    transfer.outcome = {};
    transfer.is_pending = false;
    auto pending = std::make_unique<Pending>();
    pending->api = &api_;
    pending->transfer = &transfer;
    pending->raw = api_.alloc_transfer(0);
    if (pending->raw == nullptr) {
      transfer.outcome = {TransferEnd::kFailed, 0};
      return;
    }
    if (transfer.is_in()) pending->buffer.resize(transfer.buffer.size());
    LibusbTransfer& raw = *pending->raw;
    raw.device = handle_;
    raw.endpoint = transfer.endpoint;
    raw.type = transfer.endpoint == 0x83 ? number::kInterrupt : number::kBulk;
    raw.timeout = 0;  // whoever waits has a limit
    raw.length = static_cast<int>(transfer.buffer.size());
    raw.callback = &LibusbDevice::ended;
    raw.user_data = pending.get();
    raw.buffer = transfer.is_in() ? pending->buffer.data() : transfer.buffer.data();
    if (const int error = api_.submit_transfer(&raw); error != number::kSuccess) {
      api_.free_transfer(&raw);
      transfer.outcome = {end_of_error(error), 0};
      return;
    }
    transfer.is_pending = true;
    transfer.of_device = pending.release();
    pending_.push_back(&transfer);
  }

  void wait_any(std::span<Transfer* const> transfers, Milliseconds limit) override {
    const auto until = SteadyClock::now() + limit;
    const auto has_ended = [](const Transfer* transfer) { return !transfer->is_pending; };
    do {
      handle_events(std::chrono::duration_cast<Milliseconds>(until - SteadyClock::now()));
    } while (std::none_of(transfers.begin(), transfers.end(), has_ended) && SteadyClock::now() < until);
    forget_ended();
  }

  void cancel(Transfer& transfer) override {
    if (transfer.is_pending) (void)api_.cancel_transfer(static_cast<Pending*>(transfer.of_device)->raw);
    const auto until = SteadyClock::now() + kCancelLimit;
    while (transfer.is_pending && SteadyClock::now() < until) handle_events(Milliseconds(100));
    if (transfer.is_pending) {
      static_cast<Pending*>(transfer.of_device)->transfer = nullptr;  // stays with the library
      transfer.is_pending = false;
      transfer.outcome = {TransferEnd::kCancelled, 0};
    }
    std::erase(pending_, &transfer);
  }

 private:
  static unsigned int milliseconds(Milliseconds time) {
    return static_cast<unsigned int>(std::max<Milliseconds::rep>(time.count(), 1));  // 0 would be for ever
  }
  void handle_events(Milliseconds most) {
    const auto time = std::max<Milliseconds::rep>(most.count(), 0);
    timeval limit{};
    limit.tv_sec = static_cast<decltype(limit.tv_sec)>(time / 1000);
    limit.tv_usec = static_cast<decltype(limit.tv_usec)>(time % 1000 * 1000);
    (void)api_.handle_events_timeout_completed(context_->get(), &limit, nullptr);
  }
  static void ended(LibusbTransfer* raw) {
    const std::unique_ptr<Pending> pending(static_cast<Pending*>(raw->user_data));
    if (Transfer* const transfer = pending->transfer; transfer != nullptr) {
      const auto bytes = static_cast<std::size_t>(std::clamp(raw->actual_length, 0, raw->length));
      if (transfer->is_in()) std::copy_n(pending->buffer.begin(), bytes, transfer->buffer.begin());
      transfer->outcome = {end_of_status(raw->status), bytes};
      transfer->is_pending = false;
    }
    pending->api->free_transfer(raw);
  }
  void forget_ended() {
    std::erase_if(pending_, [](const Transfer* transfer) { return !transfer->is_pending; });
  }

  const LibusbApi& api_;
  std::shared_ptr<Context> context_;
  libusb_device_handle* handle_;
  UsbSpeed speed_;
  std::string file_, proc_;
  std::vector<Transfer*> pending_;
};

UsbSpeed speed_of(int speed) {
  if (speed >= number::kSuperSpeed) return UsbSpeed::kSuper;
  return speed == number::kHighSpeed ? UsbSpeed::kHigh : speed > 0 ? UsbSpeed::kFull : UsbSpeed::kUnknown;
}

}  // namespace

std::string usb_device_files() {
  const char* const root = std::getenv(serve::kRootVariable);
  return std::string(root != nullptr ? root : "") + serve::kUsbDevices;
}

Result<std::vector<UsbDeviceInfo>> LibusbBus::list() {
  REEF_ASSIGN_OR_RETURN(const std::shared_ptr<Context> context, Context::create(api_));
  std::vector<UsbDeviceInfo> found;
  REEF_RETURN_IF_ERROR(for_each_edge_tpu(
      api_, context->get(), [&](libusb_device* device, const LibusbDeviceDescriptor& descriptor, std::string path) {
        found.push_back({id_of(descriptor), std::move(path), speed_of(api_.get_device_speed(device))});
        return true;
      }));
  std::sort(found.begin(), found.end(), [](const UsbDeviceInfo& a, const UsbDeviceInfo& b) { return a.path < b.path; });
  return found;
}

Result<std::unique_ptr<UsbDevice>> LibusbBus::open(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(std::shared_ptr<Context> context, Context::create(api_));
  std::unique_ptr<UsbDevice> opened;
  Status failure = make_error(StatusCode::kNotFound, "there is no Edge TPU at USB port {}", path);
  REEF_RETURN_IF_ERROR(for_each_edge_tpu(
      api_, context->get(), [&](libusb_device* device, const LibusbDeviceDescriptor&, const std::string& found) {
        if (found != path) return true;
        const std::string file =
            fmt::format("{}/{:03}/{:03}", devices_, api_.get_bus_number(device), api_.get_device_address(device));
        libusb_device_handle* handle = nullptr;
        const int error = api_.open(device, &handle);
        if (error == number::kSuccess) {
          auto usable = std::make_unique<LibusbDevice>(api_, context, handle, speed_of(api_.get_device_speed(device)),
                                                       file, proc_);
          // Whoever opens a device resets its port next, which would end the work of another program.
          failure = usable->claim(kLibusbBusInterface);
          if (failure.ok()) failure = usable->release(kLibusbBusInterface);
          if (failure.ok()) opened = std::move(usable);
        } else if (error == number::kAccess) {
          failure = make_error(StatusCode::kUnsupported,
                               "there is no permission to use {}: copy Reef's udev rule (60-reef-edgetpu.rules) to "
                               "/etc/udev/rules.d and plug the stick in again, or run as root",
                               file);
        } else {
          failure = transfer_error("opening " + file, {end_of_error(error), 0});
        }
        return false;
      }));
  if (opened == nullptr) return failure;
  return opened;
}

void LibusbBus::sleep(Milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace reef::driver
