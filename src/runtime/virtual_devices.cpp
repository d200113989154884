// SPDX-License-Identifier: Apache-2.0
#include "runtime/virtual_devices.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace reef::runtime {
namespace {

constexpr std::size_t kMostDevices = 64;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

Result<EdgeTpu::Loaded> load_for_chip(const darwinn::Package& package) {
  REEF_ASSIGN_OR_RETURN(auto loaded, device::LoadedPackage::load(package));
  return EdgeTpu::Loaded(std::move(loaded));
}

Result<EdgeTpu::Tensors> run_on(device::Device& chip, const EdgeTpu::Loaded& package, const EdgeTpu::Inputs& inputs) {
  return chip.run(std::static_pointer_cast<const device::LoadedPackage>(package), inputs);
}

class BorrowedChip final : public EdgeTpu {
 public:
  explicit BorrowedChip(std::shared_ptr<device::Device> chip) : chip_(std::move(chip)) {}
  Connection connection() const override { return Connection::kUsb; }
  bool is_virtual() const override { return true; }
  const std::string& selector() const override { return name_; }
  const std::string& path() const override { return name_; }
  Result<Loaded> load(const darwinn::Package& package) const override { return load_for_chip(package); }
  Result<Tensors> run(const Loaded& package, const Inputs& inputs) override {
    auto results = run_on(*chip_, package, inputs);
    if (results.ok()) ++runs_;
    return results;
  }
  Use use() const override { return {runs_, chip_->parameter_loads()}; }

 private:
  const std::shared_ptr<device::Device> chip_;
  const std::string name_ = "virtual";
  std::int64_t runs_ = 0;
};

}  // namespace

VirtualDevice::VirtualDevice(Connection connection, int index_of_kind)
    : connection_(connection),
      selector_(fmt::format("{}:{}", connection_name(connection), index_of_kind)),
      path_(fmt::format("virtual/{}/{}", connection_name(connection), index_of_kind)) {}

Result<EdgeTpu::Loaded> VirtualDevice::load(const darwinn::Package& package) const { return load_for_chip(package); }

Result<EdgeTpu::Tensors> VirtualDevice::run(const Loaded& package, const Inputs& inputs) {
  State& own = state_.get();
  const std::lock_guard lock(own.mutex);
  if (!own.device) own.device.emplace();
  auto results = run_on(*own.device, package, inputs);
  if (results.ok()) ++own.runs;
  return results;
}

EdgeTpu::Use VirtualDevice::use() const {
  State& own = state_.get();
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
                 "'{}' is no list of devices: it is auto, real or none, or virtual devices with commas between them, "
                 "such as usb,usb,pci",
                 kinds);
    REEF_REQUIRE(devices.size() < kMostDevices, "more than {} virtual devices are asked for", kMostDevices);
    const Connection connection = kind == "usb" ? Connection::kUsb : Connection::kPci;
    devices.push_back(std::make_shared<VirtualDevice>(connection, counts[at(connection)]++));
    begin = end + 1;
  }
  return devices;
}

std::shared_ptr<EdgeTpu> as_edge_tpu(std::shared_ptr<device::Device> chip) {
  return std::make_shared<BorrowedChip>(std::move(chip));
}

}  // namespace reef::runtime
