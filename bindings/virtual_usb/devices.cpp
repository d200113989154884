// SPDX-License-Identifier: Apache-2.0
// Devices: lists, where they are, hotplug. Descriptors have their own file.
#include <algorithm>
#include <cstdlib>

#include "client.h"

namespace reef::driver {
namespace {

bool is_same(const serve::DeviceRecord& a, const serve::DeviceRecord& b) {
  return a.slot == b.slot && a.generation == b.generation;
}

// All that are plugged in now. False: nobody answers any more.
bool ask_for_list(libusb_context* context, std::vector<serve::DeviceRecord>& records) {
  serve::Header header;
  std::int32_t status = 0;
  if (!serve::send_message(context->bus_socket, serve::Kind::kList, 0, nullptr, 0) ||
      !serve::receive_all(context->bus_socket, &header, sizeof header) || header.bytes < sizeof status ||
      header.bytes > serve::kMostBytes || !serve::receive_all(context->bus_socket, &status, sizeof status)) {
    return false;
  }
  records.resize((header.bytes - sizeof status) / sizeof(serve::DeviceRecord));
  return serve::receive_all(context->bus_socket, records.data(), header.bytes - sizeof status);
}

libusb_device* ref(libusb_device* device) {
  ++device->references;
  return device;
}

bool wants(const HotplugCallback& callback, const libusb_device* device, int event) {
  LibusbDeviceDescriptor about{};
  std::memcpy(&about, device->record.device, sizeof about);
  const auto fits = [](int wanted, int found) { return wanted == -1 || wanted == found; };
  return (callback.events & event) != 0 && fits(callback.vendor, about.vendor) &&
         fits(callback.product, about.product) && fits(callback.device_class, about.device_class);
}

// A callback may have been taken back by the one before it.
bool is_registered(libusb_context* context, int id) {
  const std::lock_guard lock(context->mutex);
  return std::any_of(context->hotplug.begin(), context->hotplug.end(),
                     [&](const HotplugCallback& callback) { return callback.id == id; });
}

}  // namespace

void unref(libusb_device* device) {
  if (--device->references == 0) delete device;
}

void update_devices(libusb_context* context) {
  const std::scoped_lock lock(context->bus_mutex, context->mutex);
  std::vector<serve::DeviceRecord> records;
  if (context->discovers_nothing || !ask_for_list(context, records)) records.clear();
  const bool is_wanted = !context->hotplug.empty();
  std::vector<libusb_device*> now;
  for (const serve::DeviceRecord& record : records) {
    const auto known = std::find_if(context->devices.begin(), context->devices.end(),
                                    [&](const libusb_device* device) { return is_same(device->record, record); });
    if (known != context->devices.end()) {
      now.push_back(ref(*known));
      continue;
    }
    auto* const device = new libusb_device;
    device->context = context;
    device->record = record;
    now.push_back(device);
    if (is_wanted) context->plugged.emplace_back(ref(device), kArrived);
  }
  for (libusb_device* device : context->devices) {
    const bool is_there = std::find(now.begin(), now.end(), device) != now.end();
    if (is_wanted && !is_there) context->plugged.emplace_front(ref(device), kLeft);
    unref(device);
  }
  context->devices = std::move(now);
}

void call_hotplug(libusb_context* context) {
  constexpr std::chrono::milliseconds kBetweenLooks{50};
  {
    const std::lock_guard lock(context->mutex);
    if (context->hotplug.empty() || Clock::now() < context->next_look) return;
    context->next_look = Clock::now() + kBetweenLooks;
  }
  update_devices(context);
  for (;;) {
    std::pair<libusb_device*, int> event;
    std::vector<HotplugCallback> callbacks;
    {
      const std::lock_guard lock(context->mutex);
      if (context->plugged.empty()) return;
      event = context->plugged.front();
      context->plugged.pop_front();
      callbacks.assign(context->hotplug.begin(), context->hotplug.end());
    }
    for (const HotplugCallback& callback : callbacks) {
      if (!wants(callback, event.first, event.second) || !is_registered(context, callback.id)) continue;
      if (callback.function(context, event.first, event.second, callback.user_data) == 0) continue;
      const std::lock_guard lock(context->mutex);  // it does not want to be called again
      context->hotplug.remove_if([&](const HotplugCallback& other) { return other.id == callback.id; });
    }
    unref(event.first);
  }
}

}  // namespace reef::driver

using namespace reef::driver;

REEF_LIBUSB ssize_t libusb_get_device_list(libusb_context* context, libusb_device*** list) {
  context = context_of(context);
  if (context == nullptr) return number::kInvalidParameter;
  update_devices(context);
  const std::lock_guard lock(context->bus_mutex);
  *list = static_cast<libusb_device**>(std::calloc(context->devices.size() + 1, sizeof(libusb_device*)));
  if (*list == nullptr) return number::kNoMemory;
  for (std::size_t i = 0; i < context->devices.size(); ++i) (*list)[i] = ref(context->devices[i]);
  return static_cast<ssize_t>(context->devices.size());
}

REEF_LIBUSB void libusb_free_device_list(libusb_device** list, int unref_devices) {
  if (list == nullptr) return;
  for (libusb_device** device = list; unref_devices != 0 && *device != nullptr; ++device) unref(*device);
  std::free(list);
}

REEF_LIBUSB libusb_device* libusb_ref_device(libusb_device* device) { return ref(device); }
REEF_LIBUSB void libusb_unref_device(libusb_device* device) {
  if (device != nullptr) unref(device);
}

REEF_LIBUSB std::uint8_t libusb_get_bus_number(libusb_device* /*device*/) { return serve::kBusNumber; }
REEF_LIBUSB std::uint8_t libusb_get_port_number(libusb_device* device) { return device->record.port; }
REEF_LIBUSB std::uint8_t libusb_get_device_address(libusb_device* device) { return device->record.address; }
REEF_LIBUSB int libusb_get_device_speed(libusb_device* device) { return device->record.speed; }
// Hubs are not shown.
REEF_LIBUSB libusb_device* libusb_get_parent(libusb_device* /*device*/) { return nullptr; }

REEF_LIBUSB int libusb_get_port_numbers(libusb_device* device, std::uint8_t* ports, int count) {
  if (count < 1) return number::kInvalidParameter;
  ports[0] = device->record.port;
  return 1;
}
REEF_LIBUSB int libusb_get_port_path(libusb_context* /*context*/, libusb_device* device, std::uint8_t* ports,
                                     std::uint8_t count) {
  return libusb_get_port_numbers(device, ports, count);
}

REEF_LIBUSB int libusb_hotplug_register_callback(libusb_context* context, int events, int flags, int vendor,
                                                 int product, int device_class,
                                                 int (*function)(libusb_context*, libusb_device*, int, void*),
                                                 void* user_data, int* id) {
  constexpr int kEnumerate = 1, kEvents = kArrived | kLeft;
  context = context_of(context);
  const auto fits = [](int wanted, int mask) { return wanted == -1 || (wanted & ~mask) == 0; };
  if (context == nullptr || function == nullptr || (events & kEvents) == 0 || (events & ~kEvents) != 0 ||
      (flags & ~kEnumerate) != 0 || !fits(vendor, 0xffff) || !fits(product, 0xffff) || !fits(device_class, 0xff)) {
    return number::kInvalidParameter;
  }
  update_devices(context);
  HotplugCallback callback{0, events, vendor, product, device_class, function, user_data};
  std::vector<libusb_device*> present;
  {
    const std::scoped_lock lock(context->bus_mutex, context->mutex);
    callback.id = context->next_hotplug++;
    context->hotplug.push_back(callback);
    if ((flags & kEnumerate) != 0 && (events & kArrived) != 0) {
      for (libusb_device* device : context->devices) present.push_back(ref(device));
    }
  }
  if (id != nullptr) *id = callback.id;
  for (libusb_device* device : present) {
    if (wants(callback, device, kArrived)) (void)function(context, device, kArrived, user_data);
    unref(device);
  }
  wake(context);
  return number::kSuccess;
}

REEF_LIBUSB void libusb_hotplug_deregister_callback(libusb_context* context, int id) {
  context = context_of(context);
  if (context == nullptr) return;
  const std::lock_guard lock(context->mutex);
  context->hotplug.remove_if([&](const HotplugCallback& callback) { return callback.id == id; });
}

REEF_LIBUSB void* libusb_hotplug_get_user_data(libusb_context* context, int id) {
  context = context_of(context);
  if (context == nullptr) return nullptr;
  const std::lock_guard lock(context->mutex);
  for (const HotplugCallback& callback : context->hotplug) {
    if (callback.id == id) return callback.user_data;
  }
  return nullptr;
}
