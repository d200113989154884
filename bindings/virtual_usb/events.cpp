// SPDX-License-Identifier: Apache-2.0
// Handling events: waiting for what comes from the devices, giving up what took too long, and calling back. One thread
// of a context does so at a time; the others wait until it has told somebody something.
#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "client.h"

extern "C" void libusb_free_transfer(reef::driver::LibusbTransfer*);

namespace reef::driver {
namespace {

constexpr std::chrono::seconds kForEver{60};  // of calls without a limit, as in libusb
constexpr std::chrono::milliseconds kHotplugLook{50};
constexpr std::uint8_t kShortIsError = 1, kFreeTransfer = 4;  // flags

Clock::time_point after(const timeval* time) {
  return Clock::now() + std::chrono::seconds(time->tv_sec) + std::chrono::microseconds(time->tv_usec);
}

bool is_valid(const timeval* time) {
  return time == nullptr || (time->tv_sec >= 0 && time->tv_usec >= 0 && time->tv_usec < 1'000'000);
}

int milliseconds_until(Clock::time_point when) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

// When the first transfer runs out of time.
Clock::time_point next_deadline(libusb_context* context) {
  auto next = Clock::time_point::max();
  const std::lock_guard lock(context->mutex);
  for (libusb_device_handle* handle : context->handles) {
    const std::lock_guard inner(handle->mutex);
    for (const auto& [id, transfer] : handle->pending) {
      if (!state_of(transfer).is_given_up) next = std::min(next, state_of(transfer).deadline);
    }
  }
  return next;
}

void give_up_late_ones(libusb_context* context) {
  const auto now = Clock::now();
  std::vector<std::pair<libusb_device_handle*, serve::CancelRequest>> late;
  {
    const std::lock_guard lock(context->mutex);
    for (libusb_device_handle* handle : context->handles) {
      const std::lock_guard inner(handle->mutex);
      for (const auto& [id, transfer] : handle->pending) {
        TransferState& state = state_of(transfer);
        if (state.is_given_up || state.deadline > now) continue;
        state.is_given_up = true;
        late.push_back({handle, {id, 1}});
      }
    }
  }
  for (const auto& [handle, cancel] : late) {
    const std::lock_guard lock(handle->write_mutex);
    (void)serve::send_message(handle->socket, serve::Kind::kCancel, 0, &cancel, sizeof cancel);
  }
}

void receive_all_that_came(libusb_context* context, int milliseconds) {
  std::vector<libusb_device_handle*> handles;
  std::vector<pollfd> files = {{context->wake_file, POLLIN, 0}};
  {
    const std::lock_guard lock(context->mutex);
    if (!context->ended.empty()) milliseconds = 0;
    handles = context->handles;
  }
  for (const libusb_device_handle* handle : handles) {
    files.push_back({handle->is_gone ? -1 : handle->socket, POLLIN, 0});
  }
  if (::poll(files.data(), files.size(), milliseconds) <= 0) return;
  std::uint64_t count = 0;
  if (files[0].revents != 0) (void)!::read(context->wake_file, &count, sizeof count);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (files[i + 1].revents == 0) continue;
    const std::lock_guard lock(handles[i]->read_mutex);
    while (receive_one(handles[i], 0)) {
    }
  }
}

void call_back_all(libusb_context* context) {
  for (;;) {
    LibusbTransfer* transfer = nullptr;
    {
      const std::lock_guard lock(context->mutex);
      if (context->ended.empty()) return;
      transfer = context->ended.front();
      context->ended.pop_front();
    }
    state_of(transfer).end();
    if (transfer->status == number::kCompleted && (transfer->flags & kShortIsError) != 0 &&
        transfer->actual_length < transfer->length - (transfer->type == number::kControl ? 8 : 0)) {
      transfer->status = number::kError;
    }
    const bool is_freed = (transfer->flags & kFreeTransfer) != 0;
    if (transfer->callback != nullptr) transfer->callback(transfer);
    if (is_freed) libusb_free_transfer(transfer);
    const std::lock_guard lock(context->waiters_mutex);
    context->waiters.notify_all();
  }
}

// With the right to handle events.
void handle_once(libusb_context* context, Clock::time_point until) {
  const auto before = context->event_thread.exchange(std::this_thread::get_id());
  bool has_hotplug = false;
  {
    const std::lock_guard lock(context->mutex);
    has_hotplug = !context->hotplug.empty();
  }
  if (has_hotplug) until = std::min(until, Clock::now() + kHotplugLook);
  receive_all_that_came(context, milliseconds_until(std::min(until, next_deadline(context))));
  give_up_late_ones(context);
  call_hotplug(context);
  call_back_all(context);
  context->event_thread = before;
}

}  // namespace

void wake(libusb_context* context) {
  constexpr std::uint64_t kOnce = 1;
  (void)!::write(context->wake_file, &kOnce, sizeof kOnce);
}

bool is_event_thread(const libusb_context* context) { return context->event_thread == std::this_thread::get_id(); }

}  // namespace reef::driver

using namespace reef::driver;

REEF_LIBUSB int libusb_try_lock_events(libusb_context* context) {
  context = context_of(context);
  if (context->closing > 0) return 1;
  return context->events_mutex.try_lock() ? 0 : 1;
}
REEF_LIBUSB void libusb_lock_events(libusb_context* context) { context_of(context)->events_mutex.lock(); }
REEF_LIBUSB void libusb_unlock_events(libusb_context* context) {
  context = context_of(context);
  context->events_mutex.unlock();
  const std::lock_guard lock(context->waiters_mutex);
  context->waiters.notify_all();
}
REEF_LIBUSB int libusb_event_handling_ok(libusb_context* context) { return context_of(context)->closing > 0 ? 0 : 1; }
REEF_LIBUSB int libusb_event_handler_active(libusb_context* context) {
  context = context_of(context);
  if (context->closing > 0) return 1;
  if (!context->events_mutex.try_lock()) return 1;
  context->events_mutex.unlock();
  return 0;
}
REEF_LIBUSB void libusb_interrupt_event_handler(libusb_context* context) { wake(context_of(context)); }
REEF_LIBUSB void libusb_lock_event_waiters(libusb_context* context) { context_of(context)->waiters_mutex.lock(); }
REEF_LIBUSB void libusb_unlock_event_waiters(libusb_context* context) { context_of(context)->waiters_mutex.unlock(); }
// With the waiters' lock held. 1: the time is over.
REEF_LIBUSB int libusb_wait_for_event(libusb_context* context, timeval* time) {
  context = context_of(context);
  if (!is_valid(time)) return number::kInvalidParameter;
  if (time == nullptr) {
    context->waiters.wait(context->waiters_mutex);
    return 0;
  }
  return context->waiters.wait_until(context->waiters_mutex, after(time)) == std::cv_status::timeout ? 1 : 0;
}

REEF_LIBUSB int libusb_handle_events_timeout_completed(libusb_context* context, timeval* time, int* is_completed) {
  context = context_of(context);
  if (context == nullptr) return number::kInvalidParameter;
  if (!is_valid(time)) return number::kInvalidParameter;
  if (is_event_thread(context)) return number::kBusy;  // called by a callback
  const auto until = time != nullptr ? after(time) : Clock::now() + kForEver;
  const auto is_done = [&] { return is_completed != nullptr && __atomic_load_n(is_completed, __ATOMIC_ACQUIRE) != 0; };
  for (;;) {
    if (is_done()) return number::kSuccess;
    if (libusb_try_lock_events(context) == 0) {
      if (!is_done()) handle_once(context, until);
      libusb_unlock_events(context);
      return number::kSuccess;
    }
    std::unique_lock lock(context->waiters_mutex);
    if (is_done()) return number::kSuccess;
    if (libusb_event_handler_active(context) == 0) continue;  // it has just ended
    context->waiters.wait_until(lock, std::min(until, Clock::now() + kHotplugLook));
    if (is_done() || Clock::now() >= until) return number::kSuccess;
  }
}

REEF_LIBUSB int libusb_handle_events_timeout(libusb_context* context, timeval* time) {
  return libusb_handle_events_timeout_completed(context, time, nullptr);
}
REEF_LIBUSB int libusb_handle_events_completed(libusb_context* context, int* is_completed) {
  return libusb_handle_events_timeout_completed(context, nullptr, is_completed);
}
REEF_LIBUSB int libusb_handle_events(libusb_context* context) {
  return libusb_handle_events_timeout_completed(context, nullptr, nullptr);
}
// By a thread that has the right to handle events.
REEF_LIBUSB int libusb_handle_events_locked(libusb_context* context, timeval* time) {
  if (!is_valid(time)) return number::kInvalidParameter;
  if (is_event_thread(context_of(context))) return number::kBusy;  // called by a callback
  handle_once(context_of(context), time != nullptr ? after(time) : Clock::now() + kForEver);
  return number::kSuccess;
}

// ---- For programs that poll by themselves ----

// Deadlines are theirs to watch.
REEF_LIBUSB int libusb_pollfds_handle_timeouts(libusb_context* /*context*/) { return 0; }
REEF_LIBUSB int libusb_get_next_timeout(libusb_context* context, timeval* time) {
  context = context_of(context);
  auto next = next_deadline(context);
  {
    const std::lock_guard lock(context->mutex);
    if (!context->hotplug.empty()) next = std::min(next, Clock::now() + kHotplugLook);
  }
  if (next == Clock::time_point::max()) return 0;
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(next - Clock::now()).count();
  const auto positive = std::max<decltype(left)>(left, 0);
  time->tv_sec = static_cast<decltype(time->tv_sec)>(positive / 1'000'000);
  time->tv_usec = static_cast<decltype(time->tv_usec)>(positive % 1'000'000);
  return 1;
}

namespace {
struct PollFile {
  int file;
  short events;
};
}  // namespace

REEF_LIBUSB const PollFile** libusb_get_pollfds(libusb_context* context) {
  context = context_of(context);
  const std::lock_guard lock(context->mutex);
  const std::size_t count = context->handles.size() + 1;
  // A list of pointers with what they point to behind it.
  auto* const list =
      static_cast<const PollFile**>(std::calloc(1, (count + 1) * sizeof(PollFile*) + count * sizeof(PollFile)));
  if (list == nullptr) return nullptr;
  auto* const files = reinterpret_cast<PollFile*>(list + count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    files[i] = {i == 0 ? context->wake_file : context->handles[i - 1]->socket, POLLIN};
    list[i] = &files[i];
  }
  return list;
}
REEF_LIBUSB void libusb_free_pollfds(const PollFile** list) { std::free(static_cast<void*>(list)); }
REEF_LIBUSB void libusb_set_pollfd_notifiers(libusb_context* context, void (*added)(int, short, void*),
                                             void (*removed)(int, void*), void* user_data) {
  context = context_of(context);
  context->file_added = added;
  context->file_removed = removed;
  context->file_user_data = user_data;
}
