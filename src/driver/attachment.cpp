// SPDX-License-Identifier: Apache-2.0
#include "driver/attachment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "driver/firmware.h"
#include "driver/holders.h"
#include "driver/libusb_bus.h"
#include "driver/model.h"
#include "driver/pcie_session.h"
#include "driver/pcie_transcript.h"
#include "driver/usb_session.h"
#include "driver/vfio.h"
#include "driver/vfio_system.h"

namespace reef::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUsbFolder = "/sys/bus/usb/devices/", kPciFolder = "/sys/bus/pci/devices/";
constexpr char kFirmwareVariable[] = "REEF_FIRMWARE";

struct ClockName {
  Clock clock;
  std::string_view name;
  int megahertz;
};
constexpr std::array<ClockName, 4> kClocks = {{{Clock::kLow, "low", 63},
                                               {Clock::kMedium, "medium", 125},
                                               {Clock::kHigh, "high", 250},
                                               {Clock::kMax, "max", 500}}};

const ClockName& entry_of(Clock clock) { return kClocks[at(clock)]; }

// Tells the device's state from the error with which opening it failed.
DeviceState state_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::kResourceExhausted:
      return DeviceState::kInUse;
    case StatusCode::kUnsupported:
      return DeviceState::kNoPermission;
    default:
      return DeviceState::kUnusable;
  }
}

// A session together with what it must not outlive.
class OwningSession final : public Session {
 public:
  OwningSession(std::vector<std::shared_ptr<void>> owned, std::unique_ptr<Session> session)
      : owned_(std::move(owned)), session_(std::move(session)) {}
  Result<Tensors> run(const std::shared_ptr<const LoadedModel>& model, const Inputs& inputs) override {
    return session_->run(model, inputs);
  }
  Status close() override { return session_->close(); }
  std::vector<std::string> take_notes() override { return session_->take_notes(); }
  std::int64_t parameter_loads() const override { return session_->parameter_loads(); }
  int opened() const override { return session_->opened(); }

 private:
  std::vector<std::shared_ptr<void>> owned_;
  std::unique_ptr<Session> session_;  // ends before them
};

// The session on a bus that it owns, with whatever the bus rests on.
template <typename Opened>
Result<std::unique_ptr<Session>> owning(std::vector<std::shared_ptr<void>> owned, Opened opened) {
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Session>(std::make_unique<OwningSession>(std::move(owned), std::move(opened).value()));
}

template <typename Model>
Result<std::shared_ptr<const LoadedModel>> loaded(Result<std::shared_ptr<const Model>> model) {
  if (!model.ok()) return model.status();
  return std::shared_ptr<const LoadedModel>(std::move(model).value());
}

Result<Bytes> firmware_for(const SessionSettings& settings) {
  const char* const variable = std::getenv(kFirmwareVariable);
  const std::string file = !settings.firmware_file.empty() || variable == nullptr ? settings.firmware_file : variable;
  return find_firmware(file, usual_libraries());
}

// The session on a card, which is recorded if the settings say so. `owned` is what the card rests on.
Result<std::unique_ptr<Session>> open_card(std::vector<std::shared_ptr<void>> owned, std::shared_ptr<PcieBus> card,
                                           const SessionSettings& settings) {
  owned.push_back(card);
  if (settings.card_log) {
    card = std::make_shared<LoggedCard>(*card, settings.card_log);
    owned.push_back(card);
  }
  PcieSessionOptions options;
  options.clock = settings.clock.value_or(Clock::kMax);
  return owning(std::move(owned), PcieSession::open(*card, options));
}

class UsbAttachment final : public Attachment {
 public:
  UsbAttachment(std::shared_ptr<UsbBus> bus, std::string port)
      : bus_(std::move(bus)), port_(std::move(port)), path_(std::string(kUsbFolder) + port_) {}

  AttachedBy kind() const override { return AttachedBy::kUsb; }
  const std::string& path() const override { return path_; }

  DeviceCondition condition() override {
    DeviceCondition condition;
    const auto devices = bus_->list();
    if (!devices.ok()) return {DeviceState::kUnusable, devices.status().message()};
    const auto found = std::find_if(devices->begin(), devices->end(),
                                    [&](const UsbDeviceInfo& device) { return device.path == port_; });
    if (found == devices->end()) return {DeviceState::kUnusable, "it is not plugged in any more"};
    condition.speed = found->speed;
    if (const auto opened = bus_->open(port_); !opened.ok()) {
      condition.state = state_of(opened.status());
      condition.detail = opened.status().message();
      return condition;
    }
    condition.state = found->id == kDfuId ? DeviceState::kWaitsForFirmware : DeviceState::kRunning;
    if (condition.speed == UsbSpeed::kHigh || condition.speed == UsbSpeed::kFull) {
      condition.detail = "the link is USB 2, about ten times slower: use a USB 3 port, and the cable of the stick";
    }
    return condition;
  }

  Result<std::shared_ptr<const LoadedModel>> load(darwinn::Package package) const override {
    return loaded(Model::load(std::move(package)));
  }
  Result<std::unique_ptr<Session>> open(const SessionSettings& settings) override {
    UsbSessionOptions options;
    options.path = port_;
    options.clock = settings.clock.value_or(Clock::kMax);
    options.always_download = settings.always_download;
    options.firmware = [settings] { return firmware_for(settings); };
    return owning({bus_}, UsbSession::open(*bus_, std::move(options)));
  }

 private:
  const std::shared_ptr<UsbBus> bus_;
  const std::string port_, path_;
};

class ApexAttachment final : public Attachment {
 public:
  ApexAttachment(ApexKernel& kernel, std::string path) : kernel_(kernel), path_(std::move(path)) {}
  AttachedBy kind() const override { return AttachedBy::kApex; }
  const std::string& path() const override { return path_; }
  // Opening a card resets it: only files are looked at.
  DeviceCondition condition() override {
    if (::access(path_.c_str(), R_OK | W_OK) != 0 && errno == EACCES) {
      return {DeviceState::kNoPermission, apex_permission_error(path_).message()};
    }
    if (const std::string owner = apex_owner(path_); !owner.empty()) {
      return {DeviceState::kInUse, in_use_error(owner).message()};
    }
    return {DeviceState::kReady, ""};
  }
  Result<std::shared_ptr<const LoadedModel>> load(darwinn::Package package) const override {
    return loaded(PcieModel::load(std::move(package)));
  }
  Result<std::unique_ptr<Session>> open(const SessionSettings& settings) override {
    return open_card({}, std::make_shared<ApexBus>(kernel_, path_), settings);
  }

 private:
  ApexKernel& kernel_;
  const std::string path_;
};

class VfioAttachment final : public Attachment {
 public:
  explicit VfioAttachment(std::string address)
      : address_(std::move(address)), path_(std::string(kPciFolder) + address_) {}
  AttachedBy kind() const override { return AttachedBy::kVfio; }
  const std::string& path() const override { return path_; }
  DeviceCondition condition() override {
    const CardBinding binding = binding_of(address_);
    if (binding.iommu_group.empty()) return {DeviceState::kUnusable, "the machine's IOMMU is off"};
    const std::string file = "/dev/vfio/" + binding.iommu_group;
    if (::access(file.c_str(), R_OK | W_OK) != 0) {
      return {DeviceState::kNoPermission,
              fmt::format("there is no permission to use {}: give it to your group with a udev rule, or run as root",
                          file)};
    }
    if (const std::string holders = holders_of("/proc", file); !holders.empty()) {
      return {DeviceState::kInUse, in_use_error(holders).message()};
    }
    return {DeviceState::kReady, ""};
  }
  Result<std::shared_ptr<const LoadedModel>> load(darwinn::Package package) const override {
    return loaded(PcieModel::load(std::move(package)));
  }
  Result<std::unique_ptr<Session>> open(const SessionSettings& settings) override {
    const std::shared_ptr<VfioKernel> kernel = make_system_vfio(address_);
    return open_card({kernel}, std::make_shared<VfioBus>(*kernel), settings);
  }

 private:
  const std::string address_, path_;
};

std::string first_line(const fs::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// Sticks that the kernel shows, whether or not they can be used: 1a6e:089a and 18d1:9302.
int sticks_in_sysfs() {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry(kUsbFolder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string id = first_line(entry->path() / "idVendor") + ":" + first_line(entry->path() / "idProduct");
    if (id == "1a6e:089a" || id == "18d1:9302") ++count;
  }
  return count;
}

void find_sticks(FoundDevices& found) {
  const auto api = load_libusb();
  if (!api.ok()) {
    if (sticks_in_sysfs() > 0) found.notes.push_back(api.status().message());
    return;
  }
  const auto bus = std::make_shared<LibusbBus>(**api);
  const auto devices = bus->list();
  if (!devices.ok()) {
    if (sticks_in_sysfs() > 0) found.notes.push_back(devices.status().message());
    return;
  }
  for (const UsbDeviceInfo& device : *devices) found.devices.push_back(attach_usb(bus, device.path));
}

void find_cards(FoundDevices& found) {
  const std::vector<std::string> apex = list_apex_devices();
  for (const std::string& path : apex) found.devices.push_back(attach_apex(system_kernel(), path));
  for (const std::string& address : list_pci_edge_tpus()) {
    const CardBinding binding = binding_of(address);
    if (binding.driver == "vfio-pci") {
      found.devices.push_back(attach_vfio(address));
    } else if (binding.driver.empty()) {
      found.notes.push_back(fmt::format(
          "the card at {} has no driver: bind it to vfio-pci (docs/driver.md), or load Google's apex module", address));
    }
  }
}

}  // namespace

std::string_view name_of(DeviceState state) {
  switch (state) {
    case DeviceState::kWaitsForFirmware:
      return "waiting for firmware";
    case DeviceState::kRunning:
      return "running";
    case DeviceState::kReady:
      return "ready";
    case DeviceState::kInUse:
      return "in use";
    case DeviceState::kNoPermission:
      return "no permission";
    case DeviceState::kUnusable:
      return "not usable";
  }
  return "not usable";
}

std::string_view name_of(AttachedBy kind) {
  switch (kind) {
    case AttachedBy::kUsb:
      return "USB";
    case AttachedBy::kApex:
      return "PCIe (apex)";
    case AttachedBy::kVfio:
      return "PCIe (VFIO)";
  }
  return "USB";
}

std::string_view name_of(UsbSpeed speed) {
  switch (speed) {
    case UsbSpeed::kSuper:
      return "USB 3";
    case UsbSpeed::kHigh:
      return "USB 2";
    case UsbSpeed::kFull:
      return "USB 1";
    case UsbSpeed::kUnknown:
      return "USB of unknown speed";
  }
  return "USB of unknown speed";
}

Result<Clock> parse_clock(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const ClockName& entry : kClocks) {
    if (entry.name == lower) return entry.clock;
  }
  return invalid_input("'{}' is no clock: give max, high, medium or low", text);
}
std::string_view name_of(Clock clock) { return entry_of(clock).name; }
int megahertz(Clock clock) { return entry_of(clock).megahertz; }

std::shared_ptr<Attachment> attach_usb(std::shared_ptr<UsbBus> bus, const std::string& port) {
  return std::make_shared<UsbAttachment>(std::move(bus), port);
}
std::shared_ptr<Attachment> attach_apex(ApexKernel& kernel, const std::string& path) {
  return std::make_shared<ApexAttachment>(kernel, path);
}
std::shared_ptr<Attachment> attach_vfio(const std::string& pci_address) {
  return std::make_shared<VfioAttachment>(pci_address);
}

FoundDevices find_attached() {
  FoundDevices found;
  find_sticks(found);
  find_cards(found);
  return found;
}

}  // namespace reef::driver
