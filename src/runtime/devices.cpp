// SPDX-License-Identifier: Apache-2.0
#include "runtime/devices.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "base/fork.h"
#include "runtime/virtual_devices.h"

namespace reef::runtime {
namespace {

constexpr std::string_view kDefaultDevices = "usb,usb,pci,pci";
constexpr std::string_view kAuto = "auto", kReal = "real", kVirtual = "virtual", kVirtualPath = "virtual/";
constexpr char kVariable[] = "REEF_DEVICES";
constexpr std::size_t kHighestNumber = 1000;

struct Process {
  ForkSafeMutex mutex;
  std::optional<std::string> kinds;  // of set_devices() or $REEF_DEVICES, once it was looked at
  DeviceList virtuals;               // what `kinds` names, or the default
  std::vector<std::shared_ptr<RealDevice>> real;
};

Process& process() {
  static Process* const instance = new Process;  // never destroyed: threads may still run at exit
  return *instance;
}

std::atomic<Finder> finder{nullptr};

bool is_word(std::string_view kinds) { return kinds == kAuto || kinds == kReal; }

Result<DeviceList> virtuals_of(std::string_view kinds) {
  return make_devices(is_word(kinds) ? kDefaultDevices : kinds);
}

// With the lock held.
Status read_variable(Process& own) {
  if (own.kinds) return ok_status();
  const char* const wanted = std::getenv(kVariable);
  const std::string_view kinds = wanted != nullptr ? std::string_view(wanted) : kAuto;
  auto made = virtuals_of(kinds);
  if (!made.ok()) return made.status().in(kVariable);
  own.virtuals = std::move(made).value();
  own.kinds = kinds;
  return ok_status();
}

std::string list_of(const DeviceList& devices) {
  std::string text;
  for (const auto& device : devices) text += (text.empty() ? "" : ", ") + device->selector();
  return text;
}

// The decimal number that `text` is; all beyond the number of devices that there can be are the same.
std::optional<std::size_t> device_number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::size_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = std::min(number * 10 + static_cast<std::size_t>(c - '0'), kHighestNumber);
  }
  return number;
}

// "virtual", "virtual:1", "virtual/usb/0".
Result<std::shared_ptr<EdgeTpu>> find_virtual(std::string_view selector) {
  DeviceList list;
  {
    const std::lock_guard lock(process().mutex);
    REEF_RETURN_IF_ERROR(read_variable(process()));
    list = process().virtuals;
  }
  if (list.empty()) {
    REEF_ASSIGN_OR_RETURN(list, make_devices(kDefaultDevices));
  }
  const bool is_path = selector.starts_with(kVirtualPath);
  return find_device(list, is_path ? selector : selector.substr(kVirtual.size()));
}

}  // namespace

void set_finder(Finder another) {
  finder = another;
  const std::lock_guard lock(process().mutex);
  process().real.clear();
}

RealDevices real_devices() {
  const Finder find = finder;
  driver::FoundDevices found = find != nullptr ? find() : driver::find_attached();  // takes a while: without the lock
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  for (std::shared_ptr<driver::Attachment>& attachment : found.devices) {
    const auto is_it = [&](const auto& device) { return device->path() == attachment->path(); };
    if (std::any_of(own.real.begin(), own.real.end(), is_it)) continue;
    const bool is_usb = attachment->kind() == driver::AttachedBy::kUsb;
    const auto same_kind = std::count_if(own.real.begin(), own.real.end(), [&](const auto& device) {
      return (device->connection() == Connection::kUsb) == is_usb;
    });
    own.real.push_back(std::make_shared<RealDevice>(std::move(attachment), static_cast<int>(same_kind)));
  }
  return {own.real, std::move(found.notes)};
}

Result<DeviceList> devices() {
  Process& own = process();
  std::string kinds;
  DeviceList virtuals;
  {
    const std::lock_guard lock(own.mutex);
    REEF_RETURN_IF_ERROR(read_variable(own));
    kinds = *own.kinds;
    virtuals = own.virtuals;
  }
  if (!is_word(kinds)) return virtuals;
  const RealDevices real = real_devices();
  if (real.devices.empty() && kinds == kAuto) return virtuals;
  return DeviceList(real.devices.begin(), real.devices.end());
}

Status set_devices(std::string_view kinds) {
  REEF_ASSIGN_OR_RETURN(DeviceList made, virtuals_of(kinds));
  const std::lock_guard lock(process().mutex);
  process().virtuals = std::move(made);
  process().kinds = kinds;
  return ok_status();
}

Result<std::shared_ptr<EdgeTpu>> find_device(const DeviceList& devices, std::string_view selector) {
  if (devices.empty()) {
    return make_error(StatusCode::kNotFound,
                      "there is no Edge TPU: plug one in, or set {} to virtual ones such as usb,pci", kVariable);
  }
  for (const auto& device : devices) {
    if (device->path() == selector) return device;
  }
  if (selector == kAuto) selector = "";
  const std::size_t colon = selector.find(':');
  const std::string_view kind = selector.substr(0, colon);
  const std::optional<std::size_t> number =
      colon == std::string_view::npos ? std::size_t{0} : device_number(selector.substr(colon + 1));
  REEF_REQUIRE((kind.empty() || kind == "usb" || kind == "pci") && number,
               "'{}' is no device; give :N, usb, usb:N, pci or pci:N, counted from 0, a path, or virtual", selector);
  std::size_t left = *number;
  for (const auto& device : devices) {
    if (!kind.empty() && kind != connection_name(device->connection())) continue;
    if (left-- == 0) return device;
  }
  return make_error(StatusCode::kNotFound, "there is no Edge TPU '{}'; there are {} ({})", selector, list_of(devices),
                    devices.front()->is_virtual() ? "virtual; REEF_DEVICES changes that" : "'reef devices' lists them");
}

Result<std::shared_ptr<EdgeTpu>> open_device(const std::shared_ptr<EdgeTpu>& device,
                                             const driver::SessionSettings& settings) {
  const auto real = std::dynamic_pointer_cast<RealDevice>(device);
  if (real == nullptr) return device;
  return RealDevice::acquire(real, settings);
}

Result<std::shared_ptr<EdgeTpu>> open_device(std::string_view selector, const driver::SessionSettings& settings) {
  const bool is_virtual = selector == kVirtual || selector.starts_with("virtual:");
  if (is_virtual || selector.starts_with(kVirtualPath)) return find_virtual(selector);
  REEF_ASSIGN_OR_RETURN(const DeviceList list, devices());
  REEF_ASSIGN_OR_RETURN(const std::shared_ptr<EdgeTpu> device, find_device(list, selector));
  return open_device(device, settings);
}

}  // namespace reef::runtime
