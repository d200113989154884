// SPDX-License-Identifier: Apache-2.0
#include "runtime/virtual_devices.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "base/fork.h"

namespace reef::runtime {
namespace {

constexpr std::string_view kDefaultDevices = "usb,usb,pci,pci";
constexpr char kVariable[] = "REEF_DEVICES";
constexpr std::size_t kMostDevices = 64;

struct Process {
  ForkSafeMutex mutex;
  std::optional<DeviceList> devices;
};

Process& process() {
  static Process* const instance = new Process;  // never destroyed: threads may still run at exit
  return *instance;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
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
    number = std::min(number * 10 + static_cast<std::size_t>(c - '0'), kMostDevices);
  }
  return number;
}

}  // namespace

std::string_view connection_name(Connection connection) { return connection == Connection::kUsb ? "usb" : "pci"; }

VirtualDevice::VirtualDevice(Connection connection, int index, int index_of_kind)
    : connection_(connection),
      index_(index),
      selector_(fmt::format("{}:{}", connection_name(connection), index_of_kind)),
      path_(fmt::format("virtual/{}/{}", connection_name(connection), index_of_kind)),
      state_(new State{fork_generation()}) {}

VirtualDevice::~VirtualDevice() {
  State* const state = state_;
  if (state->generation == fork_generation()) delete state;
}

VirtualDevice::State& VirtualDevice::state() const {
  State* now = state_;
  while (now->generation != fork_generation()) {
    std::unique_ptr<State> fresh(new State{fork_generation()});
    if (state_.compare_exchange_strong(now, fresh.get())) return *fresh.release();
  }
  return *now;
}

Status VirtualDevice::run(const EdgeTpuCall& call, std::span<std::byte* const> inputs,
                          std::span<std::byte* const> outputs) {
  State& own = state();
  const std::lock_guard lock(own.mutex);
  if (!own.device) own.device.emplace();
  REEF_RETURN_IF_ERROR(call.run(*own.device, inputs, outputs));
  ++own.runs;
  return ok_status();
}

VirtualDevice::Use VirtualDevice::use() const {
  State& own = state();
  const std::lock_guard lock(own.mutex);
  return {own.runs, own.device ? own.device->parameter_loads() : 0};
}

Result<DeviceList> make_devices(std::string_view kinds) {
  DeviceList devices;
  std::array<int, 2> counts{};
  kinds = trimmed(kinds);
  if (kinds.empty() || kinds == "none") return devices;
  for (std::size_t begin = 0; begin <= kinds.size();) {
    const std::size_t end = std::min(kinds.find(',', begin), kinds.size());
    const std::string_view kind = trimmed(kinds.substr(begin, end - begin));
    REEF_REQUIRE(kind == "usb" || kind == "pci",
                 "'{}' is no list of virtual devices: it is made of usb and pci with commas between them, such as "
                 "usb,usb,pci, or it is none",
                 kinds);
    REEF_REQUIRE(devices.size() < kMostDevices, "more than {} virtual devices are asked for", kMostDevices);
    const Connection connection = kind == "usb" ? Connection::kUsb : Connection::kPci;
    devices.push_back(std::make_shared<VirtualDevice>(connection, static_cast<int>(devices.size()),
                                                      counts[static_cast<std::size_t>(connection)]++));
    begin = end + 1;
  }
  return devices;
}

Result<DeviceList> virtual_devices() {
  const std::lock_guard lock(process().mutex);
  if (!process().devices) {
    const char* const wanted = std::getenv(kVariable);
    auto made = make_devices(wanted != nullptr ? std::string_view(wanted) : kDefaultDevices);
    if (!made.ok()) return made.status().in(kVariable);
    process().devices = std::move(made).value();
  }
  return *process().devices;
}

Status set_virtual_devices(std::string_view kinds) {
  REEF_ASSIGN_OR_RETURN(DeviceList made, make_devices(kinds));
  const std::lock_guard lock(process().mutex);
  process().devices = std::move(made);
  return ok_status();
}

Result<std::shared_ptr<VirtualDevice>> find_device(const DeviceList& devices, std::string_view selector) {
  if (devices.empty()) {
    return make_error(StatusCode::kNotFound,
                      "there is no virtual Edge TPU; set {} to a list such as usb,pci, or unset it", kVariable);
  }
  for (const auto& device : devices) {
    if (device->path() == selector) return device;
  }
  const std::size_t colon = selector.find(':');
  const std::string_view kind = selector.substr(0, colon);
  const std::optional<std::size_t> number =
      colon == std::string_view::npos ? std::size_t{0} : device_number(selector.substr(colon + 1));
  REEF_REQUIRE((kind.empty() || kind == "usb" || kind == "pci") && number,
               "'{}' is no device; give :N, usb, usb:N, pci or pci:N, counted from 0", selector);
  std::size_t left = *number;
  for (const auto& device : devices) {
    if (!kind.empty() && kind != connection_name(device->connection())) continue;
    if (left-- == 0) return device;
  }
  return make_error(StatusCode::kNotFound,
                    "there is no virtual Edge TPU '{}'; there are {} (REEF_DEVICES changes that)", selector,
                    list_of(devices));
}

}  // namespace reef::runtime
