// SPDX-License-Identifier: Apache-2.0
// Transfers that are under way while the program does something else, and on top of them those that are waited for.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "client.h"

extern "C" int libusb_handle_events_completed(reef::driver::libusb_context*, int*);

namespace reef::driver {
namespace {

constexpr std::size_t kSetupBytes = 8;
constexpr std::size_t kStateBytes = (sizeof(TransferState) + 15) / 16 * 16;
constexpr std::size_t kPacketBytes = 12;         // of one packet's description, for isochronous transfers
constexpr std::size_t kMostControlBytes = 4096;  // as Linux takes
constexpr std::uint8_t kFreeBuffer = 2;          // a flag

// Returns one of libusb's errors for transfers that the operating system refuses before the device sees them; else 0.
int check(const LibusbTransfer& transfer) {
  const auto length = static_cast<std::size_t>(std::max(transfer.length, 0));
  if (transfer.length < 0) return number::kInvalidParameter;
  if (transfer.type == number::kControl) {
    if (length < kSetupBytes || transfer.buffer == nullptr || length > kSetupBytes + kMostControlBytes) {
      return number::kInvalidParameter;
    }
    const std::size_t announced = transfer.buffer[6] | transfer.buffer[7] << 8;
    return kSetupBytes + announced <= length ? number::kSuccess : number::kIo;
  }
  if (transfer.type != number::kBulk && transfer.type != number::kInterrupt) return number::kNotSupported;
  if (transfer.buffer == nullptr && length > 0) return number::kIo;
  const std::uint8_t* const endpoint = endpoint_of(transfer.device->device, transfer.endpoint);
  constexpr std::size_t kAttributes = 3;
  constexpr std::uint8_t kTypeMask = 3;
  if (endpoint == nullptr) return number::kIo;
  // A bulk transfer on an interrupt endpoint is taken for what it should be; the other way round it is refused.
  const std::uint8_t type = endpoint[kAttributes] & kTypeMask;
  return transfer.type == number::kInterrupt && type != number::kInterrupt ? number::kIo : number::kSuccess;
}

// Whoever sees it may use and free the transfer.
void mark_done(LibusbTransfer* transfer) {
  __atomic_store_n(static_cast<int*>(transfer->user_data), 1, __ATOMIC_RELEASE);
}

}  // namespace

TransferState& state_of(LibusbTransfer* transfer) {
  return *reinterpret_cast<TransferState*>(reinterpret_cast<std::uint8_t*>(transfer) - kStateBytes);
}

int error_of_status(int status) {
  switch (status) {
    case number::kCompleted:
      return number::kSuccess;
    case number::kTimedOut:
      return number::kTimeout;
    case number::kStall:
      return number::kPipe;
    case number::kTooMuch:
      return number::kOverflow;
    case number::kGone:
      return number::kNoDevice;
    default:
      return number::kIo;
  }
}

}  // namespace reef::driver

using namespace reef::driver;

REEF_LIBUSB LibusbTransfer* libusb_alloc_transfer(int packets) {
  if (packets < 0) return nullptr;
  const std::size_t bytes = kStateBytes + sizeof(LibusbTransfer) + kPacketBytes * static_cast<std::size_t>(packets);
  auto* const memory = static_cast<std::uint8_t*>(std::calloc(1, bytes));
  if (memory == nullptr) return nullptr;
  new (memory) TransferState;
  return reinterpret_cast<LibusbTransfer*>(memory + kStateBytes);
}

REEF_LIBUSB void libusb_free_transfer(LibusbTransfer* transfer) {
  if (transfer == nullptr) return;
  if ((transfer->flags & kFreeBuffer) != 0) std::free(transfer->buffer);
  std::free(reinterpret_cast<std::uint8_t*>(transfer) - kStateBytes);
}

REEF_LIBUSB int libusb_submit_transfer(LibusbTransfer* transfer) {
  libusb_device_handle* const handle = transfer->device;
  TransferState& state = state_of(transfer);
  const bool is_control = transfer->type == number::kControl;
  if (handle->has_left || handle->is_gone) return number::kNoDevice;
  if (const int error = check(*transfer); error != number::kSuccess) return error;
  const auto length = static_cast<std::size_t>(transfer->length);
  const bool is_in = ((is_control ? transfer->buffer[0] : transfer->endpoint) & 0x80) != 0;
  serve::SubmitRequest request{is_control ? 0u : transfer->endpoint, static_cast<std::uint32_t>(length)};
  const std::size_t sent = !is_in ? length : is_control ? kSetupBytes : 0;
  // Once it is sent, its callback may free it.
  libusb_context* const context = handle->context;
  const bool has_limit = transfer->timeout != 0;
  {
    // Nobody can give it up before it has been sent: a cancellation that overtakes it would be lost.
    const std::lock_guard sending(handle->write_mutex);
    std::uint64_t id = 0;
    {
      const std::lock_guard lock(handle->mutex);
      if (state.id != 0) return number::kBusy;
      if (handle->is_gone) return number::kNoDevice;
      state.is_given_up = false;
      state.deadline = transfer->timeout == 0 ? Clock::time_point::max()
                                              : Clock::now() + std::chrono::milliseconds(transfer->timeout);
      state.id = id = handle->next_id++;
      transfer->actual_length = 0;
      handle->pending[id] = transfer;
    }
    if (!serve::send_message(handle->socket, serve::Kind::kSubmit, id, &request, sizeof request, transfer->buffer,
                             sent)) {
      const std::lock_guard lock(handle->mutex);
      if (handle->pending.erase(id) == 0) return number::kSuccess;  // its callback is due: the device is gone
      state.end();
      return number::kNoDevice;
    }
  }
  if (has_limit) wake(context);  // whoever waits has to wait less
  return number::kSuccess;
}

REEF_LIBUSB int libusb_cancel_transfer(LibusbTransfer* transfer) {
  libusb_device_handle* const handle = transfer->device;
  serve::CancelRequest cancel;
  if (handle == nullptr || state_of(transfer).id == 0) return number::kNotFound;  // the handle may be closed
  {
    const std::lock_guard lock(handle->mutex);
    TransferState& state = state_of(transfer);
    if (state.id == 0 || state.is_given_up || handle->pending.count(state.id) == 0) return number::kNotFound;
    state.is_given_up = true;
    cancel.transfer = state.id;
  }
  const std::lock_guard lock(handle->write_mutex);
  return serve::send_message(handle->socket, serve::Kind::kCancel, 0, &cancel, sizeof cancel) ? number::kSuccess
                                                                                              : number::kNoDevice;
}

REEF_LIBUSB void libusb_transfer_set_stream_id(LibusbTransfer* /*transfer*/, std::uint32_t /*stream*/) {}
REEF_LIBUSB std::uint32_t libusb_transfer_get_stream_id(LibusbTransfer* /*transfer*/) { return 0; }
REEF_LIBUSB int libusb_alloc_streams(libusb_device_handle*, std::uint32_t, unsigned char*, int) {
  return number::kNotSupported;
}
REEF_LIBUSB int libusb_free_streams(libusb_device_handle*, unsigned char*, int) { return number::kNotSupported; }
// Programs then use memory of their own.
REEF_LIBUSB unsigned char* libusb_dev_mem_alloc(libusb_device_handle* /*handle*/, std::size_t /*bytes*/) {
  return nullptr;
}
REEF_LIBUSB int libusb_dev_mem_free(libusb_device_handle* /*handle*/, unsigned char* /*memory*/,
                                    std::size_t /*bytes*/) {
  return number::kNotSupported;
}

namespace {

// Starts a transfer and waits for its end. Its status in the transfer.
int run(LibusbTransfer* transfer) {
  libusb_context* const context = transfer->device->context;
  if (is_event_thread(context)) return number::kBusy;  // nobody would ever tell it the end
  int is_done = 0;
  transfer->callback = mark_done;
  transfer->user_data = &is_done;
  if (const int error = libusb_submit_transfer(transfer); error != number::kSuccess) return error;
  while (__atomic_load_n(&is_done, __ATOMIC_ACQUIRE) == 0) {
    const int error = libusb_handle_events_completed(context, &is_done);
    if (error < 0 && error != number::kInterrupted) (void)libusb_cancel_transfer(transfer);
  }
  return number::kSuccess;
}

int run_on_endpoint(libusb_device_handle* handle, unsigned char type, unsigned char endpoint, unsigned char* data,
                    int length, int* moved, unsigned int timeout) {
  LibusbTransfer* const transfer = libusb_alloc_transfer(0);
  if (transfer == nullptr) return number::kNoMemory;
  transfer->device = handle;
  transfer->type = type;
  transfer->endpoint = endpoint;
  transfer->buffer = data;
  transfer->length = length;
  transfer->timeout = timeout;
  int error = run(transfer);
  if (error == number::kSuccess) {
    if (moved != nullptr) *moved = transfer->actual_length;
    error = error_of_status(transfer->status);
  }
  libusb_free_transfer(transfer);
  return error;
}

}  // namespace

REEF_LIBUSB int libusb_bulk_transfer(libusb_device_handle* handle, unsigned char endpoint, unsigned char* data,
                                     int length, int* moved, unsigned int timeout) {
  return run_on_endpoint(handle, number::kBulk, endpoint, data, length, moved, timeout);
}
REEF_LIBUSB int libusb_interrupt_transfer(libusb_device_handle* handle, unsigned char endpoint, unsigned char* data,
                                          int length, int* moved, unsigned int timeout) {
  return run_on_endpoint(handle, number::kInterrupt, endpoint, data, length, moved, timeout);
}

REEF_LIBUSB int libusb_control_transfer(libusb_device_handle* handle, std::uint8_t type, std::uint8_t what,
                                        std::uint16_t value, std::uint16_t index, unsigned char* data,
                                        std::uint16_t length, unsigned int timeout) {
  LibusbTransfer* const transfer = libusb_alloc_transfer(0);
  auto* const buffer = static_cast<unsigned char*>(std::calloc(1, kSetupBytes + length));
  int result = number::kNoMemory;
  if (transfer != nullptr && buffer != nullptr) {
    const auto byte = [](int number) { return static_cast<unsigned char>(number); };
    const unsigned char setup[kSetupBytes] = {
        type, what, byte(value), byte(value >> 8), byte(index), byte(index >> 8), byte(length), byte(length >> 8)};
    std::memcpy(buffer, setup, kSetupBytes);
    const bool is_in = (type & 0x80) != 0;
    if (!is_in && length > 0) std::memcpy(buffer + kSetupBytes, data, length);
    transfer->device = handle;
    transfer->type = number::kControl;
    transfer->buffer = buffer;
    transfer->length = static_cast<int>(kSetupBytes) + length;
    transfer->timeout = timeout;
    result = run(transfer);
    if (result == number::kSuccess) {
      const int moved = transfer->actual_length;
      result = error_of_status(transfer->status);
      if (result == number::kSuccess) result = moved;
      if (is_in && result > 0) std::memcpy(data, buffer + kSetupBytes, static_cast<std::size_t>(result));
    }
  }
  std::free(buffer);
  libusb_free_transfer(transfer);
  return result;
}
