// SPDX-License-Identifier: Apache-2.0
// Real Edge TPUs that the machine shows: where each is attached, what state it is in, and how a session on it begins.
//
// A device has a name that stays the same while the process lives: the port it is plugged into, the device file, or the
// PCI address. Paths are those that Google's runtime uses, so that programs that keep one find the same device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "driver/apex.h"
#include "driver/bring_up.h"
#include "driver/session.h"
#include "driver/usb.h"
#include "formats/darwinn/package.h"

namespace reef::driver {

enum class AttachedBy : std::uint8_t { kUsb, kApex, kVfio };

struct SessionSettings {
  std::optional<Clock> clock;  // nothing: the one a device that is open has, else the highest
  // Firmware for sticks that wait for it: the image, or a library that holds it. Empty: $REEF_FIRMWARE, else the
  // libedgetpu.so.1 that is installed.
  std::string firmware_file;
  bool always_download = false;  // firmware also to a stick that runs
  // Is told every call to a card in words, from any thread (LoggedCard). Sticks are recorded by their bus (LoggedBus).
  std::function<void(const std::string&)> card_log{};
};

enum class DeviceState : std::uint8_t {
  kWaitsForFirmware,
  kRunning,       // a stick with firmware
  kReady,         // a card that may be opened
  kInUse,         // by another process, or by this one
  kNoPermission,  // the operating system does not let this user open it
  kUnusable,      // anything else
};
std::string_view name_of(DeviceState state);  // "waiting for firmware"

struct DeviceCondition {
  DeviceState state = DeviceState::kUnusable;
  std::string detail;  // a sentence where something is wrong: who holds it, what to do
  UsbSpeed speed = UsbSpeed::kUnknown;
};

class Attachment {
 public:
  virtual ~Attachment() = default;

  virtual AttachedBy kind() const = 0;
  // As Google's runtime names it: "/sys/bus/usb/devices/2-1.4", "/dev/apex_0"; of a card with VFIO, its place in sysfs.
  virtual const std::string& path() const = 0;
  // Looks without disturbing: no reset, no transfer that changes anything.
  virtual DeviceCondition condition() = 0;

  // Refuses what cannot be run over this link, with the reason.
  virtual Result<std::shared_ptr<const LoadedModel>> load(darwinn::Package package) const = 0;
  // Opens the device. What the session needs of the attachment lives as long as the session.
  virtual Result<std::unique_ptr<Session>> open(const SessionSettings& settings) = 0;
};
using Attachments = std::vector<std::shared_ptr<Attachment>>;

std::string_view name_of(AttachedBy kind);  // "USB"
// "USB 3", "USB 2": what the link's speed is called.
std::string_view name_of(UsbSpeed speed);
// "max", "high", "medium", "low", in any case.
Result<Clock> parse_clock(std::string_view text);
std::string_view name_of(Clock clock);
// Megahertz of the core.
int megahertz(Clock clock);

std::shared_ptr<Attachment> attach_usb(std::shared_ptr<UsbBus> bus, const std::string& port);
std::shared_ptr<Attachment> attach_apex(ApexKernel& kernel, const std::string& path);
std::shared_ptr<Attachment> attach_vfio(const std::string& pci_address);

struct FoundDevices {
  Attachments devices;             // sticks in the order of their ports, then cards
  std::vector<std::string> notes;  // why some of the machine's devices cannot be seen or used; sentences
};
// All devices that the machine shows. Never an error: what cannot be looked at is a note.
FoundDevices find_attached();

}  // namespace reef::driver
