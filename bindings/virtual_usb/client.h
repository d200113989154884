// SPDX-License-Identifier: Apache-2.0
// The inside of our libusb-1.0.so.0: what its contexts, devices, handles and transfers are, and the connection to the
// process that has the virtual sticks (`reef virtual-usb`, src/driver/device_server).
//
// It runs in programs of others. Therefore it depends on nothing but the C library, starts no thread, installs no
// handler, and throws nothing. Files of a context: one connection for lists of devices, one for each open device, which
// programs may poll themselves (libusb_get_pollfds), and one to wake whoever waits.
//
// As in libusb itself, calls that wait are made of calls that do not: one thread of a context handles events for all,
// the others wait for it.
#pragma once

#include <sys/time.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "connection.h"
#include "driver/libusb_abi.h"
#include "driver/serve_protocol.h"

#define REEF_LIBUSB extern "C" __attribute__((visibility("default")))

namespace reef::driver {

namespace number = libusb_number;

// The answer to questions for what virtual sticks do not have.
inline int none(void** found) {
  *found = nullptr;
  return number::kNotFound;
}
using Clock = std::chrono::steady_clock;

struct HotplugCallback {
  int id = 0;
  int events = 0, vendor = -1, product = -1, device_class = -1;  // -1: any
  int (*function)(libusb_context*, libusb_device*, int, void*) = nullptr;
  void* user_data = nullptr;
};

inline constexpr int kArrived = 1, kLeft = 2;  // events of hotplug

// A device as it was when it showed itself: one that comes back is another one.
struct libusb_device {
  libusb_context* context = nullptr;
  std::atomic<int> references = 1;
  serve::DeviceRecord record;
};

// The header that libusb_alloc_transfer() puts in front of each transfer.
struct TransferState {
  std::atomic<std::uint64_t> id = 0;  // 0: it is not under way
  Clock::time_point deadline = Clock::time_point::max();
  bool is_given_up = false;

  void end() {
    deadline = Clock::time_point::max();
    is_given_up = false;
    id = 0;
  }
};

struct libusb_device_handle {
  libusb_context* context = nullptr;
  libusb_device* device = nullptr;
  int socket = -1;
  pid_t process = 0;       // that opened it
  std::mutex write_mutex;  // of what is sent
  std::mutex read_mutex;   // of what is received; taken before `mutex`
  std::mutex mutex;        // of what follows
  std::condition_variable answered;
  std::atomic<bool> is_gone = false;   // the connection has ended
  std::atomic<bool> has_left = false;  // the device has: nothing can be started any more
  std::mutex claim_mutex;              // of what follows; taken before all others
  bool is_claimed = false;             // its only interface
  int device_file = -1;                // open for as long as the device is; -1: there is none
  std::uint64_t next_id = 1;
  std::map<std::uint64_t, LibusbTransfer*> pending;
  std::map<std::uint64_t, int> replies;
};

struct libusb_context {
  int references = 1;              // of the default context
  bool discovers_nothing = false;  // its list of devices stays empty
  int bus_socket = -1;
  int wake_file = -1;
  std::mutex bus_mutex;  // of bus_socket and devices
  std::vector<libusb_device*> devices;
  std::mutex mutex;  // of handles, ended, hotplug
  std::vector<libusb_device_handle*> handles;
  std::deque<LibusbTransfer*> ended;  // whose callbacks are due
  std::list<HotplugCallback> hotplug;
  std::deque<std::pair<libusb_device*, int>> plugged;  // what callbacks were not told yet, with a reference each
  int next_hotplug = 1;
  Clock::time_point next_look = Clock::time_point::min();
  // Who handles events: at most one thread.
  std::timed_mutex events_mutex;
  std::atomic<std::thread::id> event_thread{};
  std::atomic<int> closing = 0;  // handles that are about to be closed: event handlers step aside
  std::mutex waiters_mutex;
  std::condition_variable_any waiters;
  // Of a program that polls by itself.
  void (*file_added)(int, short, void*) = nullptr;
  void (*file_removed)(int, void*) = nullptr;
  void* file_user_data = nullptr;
};

// The context that is meant: itself; for null the default one, or the first that was made, as in libusb since 1.0.25.
libusb_context* context_of(libusb_context* context);
TransferState& state_of(LibusbTransfer* transfer);

// Brings context->devices up to date.
void update_devices(libusb_context* context);
// Looks for devices that came and went, if somebody wants to know, and tells them.
void call_hotplug(libusb_context* context);
void unref(libusb_device* device);

// The descriptor of an endpoint of the device; null if the device has no such endpoint.
const std::uint8_t* endpoint_of(const libusb_device* device, unsigned char endpoint);

// A request that is answered; one of libusb's errors.
int request(libusb_device_handle* handle, serve::Kind kind, const void* bytes, std::size_t count);
// Waits for one message and files it. False: none came.
bool receive_one(libusb_device_handle* handle, int milliseconds);
void wake(libusb_context* context);
bool is_event_thread(const libusb_context* context);
// The end of a transfer as an error, or kSuccess.
int error_of_status(int status);

}  // namespace reef::driver
