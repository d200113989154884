// SPDX-License-Identifier: Apache-2.0
#include "runtime/placement.h"

#include <cstdlib>

#include <fmt/format.h>

#include "runtime/devices.h"
#include "runtime/virtual_devices.h"

namespace reef::runtime {
namespace {

constexpr int kMostPlacedDevices = 64;
constexpr std::string_view kCpu = "cpu", kPlacementVirtual = "virtual", kPlacementAuto = "auto";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Placement emulated() {
  Placement placement;
  placement.name = kPlacementVirtual;
  placement.is_emulated = true;
  return placement;
}

// There is no such real device: what the machine shows instead.
Status no_real_device(std::string_view word, const RealDevices& real) {
  std::string seen;
  for (const auto& device : real.devices) seen += (seen.empty() ? "" : ", ") + device->selector();
  for (const std::string& note : real.notes) seen += (seen.empty() ? "" : "; ") + note;
  return make_error(StatusCode::kNotFound,
                    "there is no Edge TPU '{}' on this machine ({}): plug it in, or use --device virtual", word,
                    seen.empty() ? "there is none at all" : seen);
}

// The device that `word` means, opened. `auto` takes the first that can be: others may be in use.
Result<Placement> opened(std::string_view word, const DeviceList& candidates, const driver::SessionSettings& settings) {
  Placement placement;
  Status first_problem = ok_status();
  for (const auto& candidate : candidates) {
    const auto real = std::dynamic_pointer_cast<RealDevice>(candidate);
    if (real == nullptr) continue;  // REEF_DEVICES may name virtual ones behind real ones
    const driver::DeviceCondition condition = real->condition();
    auto device = open_device(candidate, settings);
    if (!device.ok()) {
      placement.notes.push_back(device.status().message());
      if (first_problem.ok()) first_problem = device.status();
      if (word == kPlacementAuto) continue;
      return device.status();
    }
    placement.device = std::move(*device);
    placement.name = placement.device->selector();
    if (condition.speed != driver::UsbSpeed::kUnknown && !condition.detail.empty()) {
      placement.notes.push_back(condition.detail);
    }
    return placement;
  }
  return first_problem.ok() ? no_real_device(word, real_devices()) : first_problem;
}

}  // namespace

std::string Placement::description() const {
  if (replicas.size() > 1) {
    std::string names;
    for (const auto& each : replicas) names += (names.empty() ? "" : ", ") + each->selector();
    return fmt::format("{} {} ({})", replicas.size(), is_emulated ? "virtual Edge TPUs" : "Edge TPUs", names);
  }
  if (device != nullptr) return describe(*device);
  return is_emulated ? "the virtual Edge TPU" : "the CPU";
}

Status check_placement(std::string_view word) {
  if (word == kCpu || word == kPlacementVirtual || word == kPlacementAuto || word.find('/') != std::string_view::npos)
    return ok_status();
  const std::size_t colon = word.find(':');
  const std::string_view kind = word.substr(0, colon);
  const bool is_known = kind == "usb" || kind == "pci" || (kind.empty() && colon == 0);
  REEF_REQUIRE(is_known && (colon == std::string_view::npos || is_number(word.substr(colon + 1))),
               "'{}' is no device: give cpu, virtual, auto, usb, usb:N, pci or pci:N, counted from 0, or a path of "
               "'reef devices'",
               word);
  return ok_status();
}

Result<Placement> find_placement(std::string_view word, const driver::SessionSettings& settings) {
  REEF_RETURN_IF_ERROR(check_placement(word));
  if (word == kCpu) return Placement{};
  if (word == kPlacementVirtual) return emulated();
  const bool are_named = std::getenv("REEF_DEVICES") != nullptr;
  REEF_ASSIGN_OR_RETURN(const DeviceList list, devices());
  const bool are_virtual = list.empty() || list.front()->is_virtual();
  if (are_virtual && word == kPlacementAuto) {
    Placement placement = emulated();
    placement.notes.emplace_back("there is no real Edge TPU: a virtual one is used");
    const std::vector<std::string> reasons = real_devices().notes;
    placement.notes.insert(placement.notes.end(), reasons.begin(), reasons.end());
    return placement;
  }
  if (are_virtual && !are_named) return no_real_device(word, real_devices());
  auto found = find_device(list, word);
  if (!found.ok() && !are_named) return no_real_device(word, real_devices());
  if (!found.ok()) return found.status();
  if ((*found)->is_virtual()) {
    Placement placement = emulated();
    placement.notes.push_back(fmt::format("{} is virtual (REEF_DEVICES)", (*found)->selector()));
    return placement;
  }
  return opened(word, word == kPlacementAuto ? list : DeviceList{*found}, settings);
}

Result<Placement> find_placements(std::string_view word, int count, const driver::SessionSettings& settings) {
  REEF_REQUIRE(count >= 1 && count <= kMostPlacedDevices, "--devices {}: 1 to {} devices work together", count,
               kMostPlacedDevices);
  REEF_RETURN_IF_ERROR(check_placement(word));
  if (count == 1) return find_placement(word, settings);
  REEF_REQUIRE(word != kCpu, "--devices means Edge TPUs: leave out --device cpu");
  REEF_REQUIRE(word.find_first_of(":/") == std::string_view::npos,
               "'{}' is one device, but --devices {} wants several: give usb, pci, virtual or auto", word, count);
  DeviceList list;
  if (word != kPlacementVirtual) {
    REEF_ASSIGN_OR_RETURN(list, devices());
  }
  const bool are_virtual = list.empty() || list.front()->is_virtual();
  Placement placement;
  if (are_virtual) {
    REEF_REQUIRE(word == kPlacementVirtual || word == kPlacementAuto || std::getenv("REEF_DEVICES") != nullptr,
                 "there is no Edge TPU on {} on this machine: plug them in, or use --device virtual", word);
    placement = emulated();
    const std::string_view kind = word == "pci" ? "pci" : "usb";
    std::string kinds(kind);
    for (int i = 1; i < count; ++i) kinds += "," + std::string(kind);
    REEF_ASSIGN_OR_RETURN(placement.replicas, make_devices(kinds));
    placement.device = nullptr;
    return placement;
  }
  for (const auto& candidate : list) {
    const bool fits = word == kPlacementAuto || word == connection_name(candidate->connection());
    if (!fits || candidate->is_virtual() || std::ssize(placement.replicas) == count) continue;
    auto device = open_device(candidate, settings);
    if (device.ok()) {
      placement.replicas.push_back(std::move(*device));
    } else {
      placement.notes.push_back(device.status().message());
    }
  }
  REEF_REQUIRE(std::ssize(placement.replicas) == count, "{} Edge TPUs are wanted, {} can be used{}{}; use --devices {}",
               count, placement.replicas.size(), placement.notes.empty() ? "" : ": ",
               placement.notes.empty() ? "" : placement.notes.front(),
               std::max<std::size_t>(placement.replicas.size(), 1));
  placement.device = placement.replicas.front();
  placement.name = fmt::format("{} x {}", count, word);
  return placement;
}

}  // namespace reef::runtime
