// SPDX-License-Identifier: Apache-2.0
// Open devices: interfaces, configurations, resets, and the connection that each one is.
#include <fcntl.h>
#include <limits.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "client.h"

extern "C" int libusb_control_transfer(reef::driver::libusb_device_handle*, std::uint8_t, std::uint8_t, std::uint16_t,
                                       std::uint16_t, unsigned char*, std::uint16_t, unsigned int);

namespace reef::driver {
namespace {

// Files the end of a transfer: its bytes are in its buffer, and its callback is due.
void file_ended(libusb_device_handle* handle, std::uint64_t id, const serve::Ended& ended,
                const std::vector<std::uint8_t>& bytes) {
  LibusbTransfer* transfer = nullptr;
  {
    const std::lock_guard lock(handle->mutex);
    const auto found = handle->pending.find(id);
    if (found == handle->pending.end()) return;
    transfer = found->second;
    handle->pending.erase(found);
    transfer->status = ended.status;
    if (ended.status == number::kGone) handle->has_left = true;
    transfer->actual_length = static_cast<int>(std::min<std::uint32_t>(ended.bytes, 1u << 30));
    constexpr int kSetupBytes = 8;
    const int offset = transfer->type == number::kControl ? kSetupBytes : 0;
    const auto room = static_cast<std::size_t>(std::max(transfer->length - offset, 0));
    if (!bytes.empty()) std::memcpy(transfer->buffer + offset, bytes.data(), std::min(bytes.size(), room));
  }
  {
    const std::lock_guard lock(handle->context->mutex);
    handle->context->ended.push_back(transfer);
  }
  wake(handle->context);
}

// Nobody is at the other end any more: as if it were unplugged.
void hang_up(libusb_device_handle* handle) {
  std::vector<std::uint64_t> left;
  {
    const std::lock_guard lock(handle->mutex);
    handle->is_gone = true;
    for (const auto& [id, transfer] : handle->pending) left.push_back(id);
    handle->answered.notify_all();
  }
  for (const std::uint64_t id : left) file_ended(handle, id, {number::kGone, 0}, {});
}

}  // namespace

bool receive_one(libusb_device_handle* handle, int milliseconds) {
  pollfd file{handle->socket, POLLIN, 0};
  if (handle->is_gone || ::poll(&file, 1, milliseconds) != 1) return false;
  serve::Header header;
  std::vector<std::uint8_t> bytes;
  serve::Ended ended;
  std::int32_t status = 0;
  const bool is_end = serve::receive_all(handle->socket, &header, sizeof header) && header.kind == serve::Kind::kEnded;
  const std::size_t fixed = is_end ? sizeof ended : sizeof status;
  void* const to = is_end ? static_cast<void*>(&ended) : &status;
  bool is_whole =
      header.bytes >= fixed && header.bytes <= serve::kMostBytes && serve::receive_all(handle->socket, to, fixed);
  if (is_whole) {
    bytes.resize(header.bytes - fixed);
    is_whole = serve::receive_all(handle->socket, bytes.data(), bytes.size());
  }
  if (!is_whole) {
    hang_up(handle);
    return false;
  }
  if (is_end) {
    file_ended(handle, header.id, ended, bytes);
    return true;
  }
  const std::lock_guard lock(handle->mutex);
  if (status == number::kNoDevice) handle->has_left = true;
  handle->replies[header.id] = status;
  handle->answered.notify_all();
  return true;
}

int request(libusb_device_handle* handle, serve::Kind kind, const void* bytes, std::size_t count) {
  constexpr int kPollMilliseconds = 10;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(handle->mutex);
    if (handle->is_gone) return number::kNoDevice;
    id = handle->next_id++;
  }
  {
    const std::lock_guard lock(handle->write_mutex);
    if (!serve::send_message(handle->socket, kind, id, bytes, count)) return number::kNoDevice;
  }
  for (;;) {
    {
      std::unique_lock lock(handle->mutex);
      if (const auto reply = handle->replies.find(id); reply != handle->replies.end()) {
        const int status = reply->second;
        handle->replies.erase(reply);
        return status;
      }
      if (handle->is_gone) return number::kNoDevice;
    }
    if (handle->read_mutex.try_lock()) {
      (void)receive_one(handle, kPollMilliseconds);
      handle->read_mutex.unlock();
    } else {  // another thread reads
      std::unique_lock lock(handle->mutex);
      handle->answered.wait_for(lock, std::chrono::milliseconds(kPollMilliseconds));
    }
  }
}

}  // namespace reef::driver

using namespace reef::driver;

namespace {

// A file that says which process has the device open, where programs look for that. Without one all else works.
int open_device_file(const libusb_device* device) {
  const char* const root = std::getenv(serve::kRootVariable);
  char path[PATH_MAX];
  if (root == nullptr) return -1;
  const int written = std::snprintf(path, sizeof path, "%s%s/%03d/%03d", root, serve::kUsbDevices,
                                    int{serve::kBusNumber}, int{device->record.address});
  return written > 0 && written < PATH_MAX ? ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
}

}  // namespace

REEF_LIBUSB int libusb_open(libusb_device* device, libusb_device_handle** opened) {
  const int socket = connect_to_devices();
  if (socket < 0) return number::kNoDevice;
  auto* const handle = new libusb_device_handle;
  handle->context = device->context;
  handle->device = device;
  handle->socket = socket;
  handle->process = ::getpid();
  const serve::OpenRequest where{device->record.slot, device->record.generation};
  if (const int error = request(handle, serve::Kind::kOpen, &where, sizeof where); error != number::kSuccess) {
    ::close(socket);
    delete handle;
    return error;
  }
  ++device->references;
  handle->device_file = open_device_file(device);
  {
    const std::lock_guard lock(handle->context->mutex);
    handle->context->handles.push_back(handle);
  }
  wake(handle->context);
  if (handle->context->file_added != nullptr)
    handle->context->file_added(socket, POLLIN, handle->context->file_user_data);
  *opened = handle;
  return number::kSuccess;
}

REEF_LIBUSB void libusb_close(libusb_device_handle* handle) {
  if (handle == nullptr) return;
  libusb_context* const context = handle->context;
  const bool is_inside = is_event_thread(context);
  if (!is_inside) {  // whoever handles events steps aside
    ++context->closing;
    wake(context);
    context->events_mutex.lock();
  }
  // Closing frees the claimed interfaces before it returns. A child of the process that opened the device only closes
  // its copy.
  if (::getpid() == handle->process) (void)request(handle, serve::Kind::kClose, nullptr, 0);
  std::vector<LibusbTransfer*> left;
  {
    const std::scoped_lock lock(context->mutex, handle->mutex);
    std::erase(context->handles, handle);
    for (const auto& [id, transfer] : handle->pending) left.push_back(transfer);
    std::erase_if(context->ended, [&](const LibusbTransfer* transfer) { return transfer->device == handle; });
  }
  for (LibusbTransfer* transfer : left) state_of(transfer).end();  // as libusb does: nobody hears of them any more
  if (context->file_removed != nullptr) context->file_removed(handle->socket, context->file_user_data);
  ::close(handle->socket);
  if (handle->device_file >= 0) ::close(handle->device_file);
  unref(handle->device);
  delete handle;
  if (!is_inside) {
    --context->closing;
    context->events_mutex.unlock();
    const std::lock_guard lock(context->waiters_mutex);
    context->waiters.notify_all();
  }
}

// Files that a program opened itself are real ones.
REEF_LIBUSB int libusb_wrap_sys_device(libusb_context* /*context*/, std::intptr_t /*file*/,
                                       libusb_device_handle** /*handle*/) {
  return number::kNotSupported;
}

REEF_LIBUSB libusb_device* libusb_get_device(libusb_device_handle* handle) { return handle->device; }

extern "C" ssize_t libusb_get_device_list(libusb_context*, libusb_device***);
extern "C" void libusb_free_device_list(libusb_device**, int);

REEF_LIBUSB libusb_device_handle* libusb_open_device_with_vid_pid(libusb_context* context, std::uint16_t vendor,
                                                                  std::uint16_t product) {
  libusb_device** list = nullptr;
  libusb_device_handle* handle = nullptr;
  const ssize_t count = libusb_get_device_list(context, &list);
  for (ssize_t i = 0; i < count && handle == nullptr; ++i) {
    LibusbDeviceDescriptor about{};
    std::memcpy(&about, list[i]->record.device, sizeof about);
    if (about.vendor == vendor && about.product == product) (void)libusb_open(list[i], &handle);
  }
  if (count >= 0) libusb_free_device_list(list, 1);
  return handle;
}

REEF_LIBUSB int libusb_claim_interface(libusb_device_handle* handle, int interface) {
  if (interface < 0 || interface > 31) return number::kInvalidParameter;
  if (interface != 0) return number::kNotFound;
  const std::lock_guard lock(handle->claim_mutex);
  if (handle->is_claimed) return handle->has_left ? number::kNoDevice : number::kSuccess;
  const auto which = static_cast<std::uint32_t>(interface);
  const int error = request(handle, serve::Kind::kClaim, &which, sizeof which);
  handle->is_claimed = error == number::kSuccess;
  return error;
}
REEF_LIBUSB int libusb_release_interface(libusb_device_handle* handle, int interface) {
  if (interface < 0 || interface > 31) return number::kInvalidParameter;
  const std::lock_guard lock(handle->claim_mutex);
  if (interface != 0 || !handle->is_claimed) return number::kNotFound;
  const auto which = static_cast<std::uint32_t>(interface);
  const int error = request(handle, serve::Kind::kRelease, &which, sizeof which);
  if (error == number::kSuccess) handle->is_claimed = false;
  return error;
}
// Interfaces stay claimed, unless the device comes back as another one.
REEF_LIBUSB int libusb_reset_device(libusb_device_handle* handle) {
  const std::lock_guard lock(handle->claim_mutex);
  const int error = request(handle, serve::Kind::kReset, nullptr, 0);
  if (error == number::kNotFound) handle->has_left = true;
  if (error != number::kSuccess) handle->is_claimed = false;
  return error;
}

namespace {

// A standard request without data.
int standard(libusb_device_handle* handle, std::uint8_t type, std::uint8_t what, int value, int index) {
  constexpr unsigned int kLimit = 1000;
  const int moved = libusb_control_transfer(handle, type, what, static_cast<std::uint16_t>(value),
                                            static_cast<std::uint16_t>(index), nullptr, 0, kLimit);
  return moved < 0 ? moved : number::kSuccess;
}

}  // namespace

// The kernel sets the configuration itself, unless somebody has claimed an interface, and knows which one is set.
REEF_LIBUSB int libusb_set_configuration(libusb_device_handle* handle, int configuration) {
  if (configuration < -1 || configuration > 0xff) return number::kInvalidParameter;
  if (configuration > 1) return handle->has_left ? number::kNoDevice : number::kNotFound;
  const std::int32_t value = std::max(configuration, 0);
  return request(handle, serve::Kind::kConfigure, &value, sizeof value);
}
REEF_LIBUSB int libusb_get_configuration(libusb_device_handle* handle, int* configuration) {
  const int answer = request(handle, serve::Kind::kConfigured, nullptr, 0);
  if (answer >= 0) *configuration = answer;
  return std::min(answer, number::kSuccess);
}
REEF_LIBUSB int libusb_set_interface_alt_setting(libusb_device_handle* handle, int interface, int alternate) {
  if (interface < 0 || interface > 31 || alternate < 0 || alternate > 0xff) return number::kInvalidParameter;
  if (handle->has_left) return number::kNoDevice;
  {
    const std::lock_guard lock(handle->claim_mutex);
    if (interface != 0 || alternate != 0 || !handle->is_claimed) return number::kNotFound;
  }
  return standard(handle, 0x01, 11, alternate, interface);
}
REEF_LIBUSB int libusb_clear_halt(libusb_device_handle* handle, unsigned char endpoint) {
  if (handle->has_left) return number::kNoDevice;
  if (endpoint_of(handle->device, endpoint) == nullptr) return number::kNotFound;
  const int error = standard(handle, 0x02, 1, 0, endpoint);
  return error == number::kSuccess || error == number::kNoDevice ? error : number::kOther;
}

// No driver of the kernel ever takes an Edge TPU.
REEF_LIBUSB int libusb_kernel_driver_active(libusb_device_handle* handle, int interface) {
  if (interface < 0 || interface > 31) return number::kInvalidParameter;
  return handle->has_left ? number::kNoDevice : 0;
}
REEF_LIBUSB int libusb_detach_kernel_driver(libusb_device_handle* handle, int interface) {
  if (interface < 0 || interface > 31) return number::kInvalidParameter;
  return handle->has_left ? number::kNoDevice : number::kNotFound;
}
REEF_LIBUSB int libusb_attach_kernel_driver(libusb_device_handle* handle, int interface) {
  return libusb_detach_kernel_driver(handle, interface);
}
REEF_LIBUSB int libusb_set_auto_detach_kernel_driver(libusb_device_handle* /*handle*/, int /*enable*/) {
  return number::kSuccess;
}

// Sticks have no strings.
REEF_LIBUSB int libusb_get_string_descriptor_ascii(libusb_device_handle* handle, std::uint8_t index,
                                                   unsigned char* text, int length) {
  if (index == 0) return number::kInvalidParameter;
  unsigned char bytes[255];
  const int moved = libusb_control_transfer(handle, 0x80, 6, static_cast<std::uint16_t>(0x300 | index), 0x409, bytes,
                                            sizeof bytes, 1000);
  if (moved < 0) return moved;
  int count = 0;
  for (int at = 2; at + 1 < moved && count + 1 < length; at += 2) text[count++] = bytes[at + 1] == 0 ? bytes[at] : '?';
  if (length > 0) text[count] = 0;
  return count;
}
